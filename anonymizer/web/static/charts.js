// Small live charts on a canvas: the last two minutes, read off under the pointer.

const SPAN_S = 120;
const INSET = { left: 4, right: 44, top: 6, bottom: 16 };
const TICKS = [[120, "2 min ago"], [60, "1 min ago"], [0, "now"]];

const FORMATS = [0, 1, 2].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

export const number = (value, unit = "") => {
  if (value == null) return "–";
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
  return FORMATS[digits].format(value) + unit;
};

const palettes = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => palettes.clear());

/** Return the colours of a name in the style sheet. */
export function palette(name) {
  if (!palettes.has(name)) {
    const value = getComputedStyle(document.documentElement).getPropertyValue(name);
    palettes.set(name, value.trim().split(/\s+/));
  }
  return palettes.get(name);
}

/** Charts that wait to be drawn: one with each picture of the screen, so that none takes long. */
const waiting = new Set();

function drawNext() {
  const [chart] = waiting;
  waiting.delete(chart);
  chart.draw();
  if (waiting.size) requestAnimationFrame(drawNext);
}

function drawSoon(chart) {
  if (!waiting.size) requestAnimationFrame(drawNext);
  waiting.add(chart);
}

/** Round up to 1, 2 or 5 times a power of ten. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

export class Chart {
  /** `series`: names and how to read each from a pulse; null: whatever `read` returns by name. */
  constructor(title, unit, series, read = null) {
    this.unit = unit;
    this.title = title;
    this.series = series;
    this.read = read;
    this.points = [];
    this.size = { width: 0, height: 0 };
    this.visible = true;
    this.figure = document.createElement("figure");
    this.figure.innerHTML = "<figcaption><h2></h2><div class=key></div></figcaption><canvas role=img></canvas>";
    this.figure.querySelector("h2").textContent = title;
    this.key = this.figure.querySelector(".key");
    this.canvas = this.figure.querySelector("canvas");
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(([{ contentRect }]) => {
      this.size = contentRect;
      drawSoon(this);
    }).observe(this.canvas);
    new IntersectionObserver(([{ isIntersecting }]) => {
      this.visible = isIntersecting;
      drawSoon(this);
    }).observe(this.figure);
  }

  show(points) {
    this.points = points;
    drawSoon(this);
  }

  point(x) {
    this.pointer = x;
    drawSoon(this);
  }

  /** Return names and values by time of what there is to draw. */
  lines() {
    if (!this.read) {
      return this.series.map(([name, key]) => [name, this.points.map((p) => p.pulse[key])]);
    }
    const total = {};
    for (const { pulse } of this.points) {
      for (const [name, value] of Object.entries(this.read(pulse))) total[name] = (total[name] ?? 0) + value;
    }
    const names = Object.keys(total).sort((a, b) => total[b] - total[a]).slice(0, 5);
    return names.map((name) => [name, this.points.map((p) => this.read(p.pulse)[name] ?? 0)]);
  }

  draw() {
    const { points } = this;
    const { width, height } = this.size;
    if (!width) return;
    const colours = palette("--series");
    const lines = this.lines();
    if (!this.visible) return this.tell(lines, colours, points.length - 1);
    const ink = this.cleared();
    const now = points.at(-1)?.at ?? 0;
    const top = roundUp(Math.max(1, ...lines.flatMap(([, values]) => values.map((v) => v ?? 0))));
    const x = (at) => width - INSET.right - ((now - at) / SPAN_S) * (width - INSET.left - INSET.right);
    const y = (v) => height - INSET.bottom - (v / top) * (height - INSET.top - INSET.bottom);
    this.grid(ink, { width, top, y });
    this.axis(ink, { now, x, height });
    lines.forEach(([, values], i) => stroke(ink, points, values, { x, y, colour: colours[i], filled: i === 0, base: y(0) }));
    const at = this.pointed(x);
    if (at != null && points[at]) {
      ink.strokeStyle = palette("--dim")[0];
      ink.beginPath();
      ink.moveTo(x(points[at].at), INSET.top);
      ink.lineTo(x(points[at].at), height - INSET.bottom);
      ink.stroke();
    }
    this.tell(lines, colours, at ?? points.length - 1);
  }

  /** Return the context of the empty canvas, in pixels of the style sheet. */
  cleared() {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [Math.round(this.size.width * ratio), Math.round(this.size.height * ratio)];
    const ink = this.canvas.getContext("2d");
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.clearRect(0, 0, width, height);
    ink.lineWidth = 1;
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    return ink;
  }

  grid(ink, { width, top, y }) {
    ink.strokeStyle = palette("--line")[0];
    ink.fillStyle = palette("--dim")[0];
    ink.font = "11px system-ui, sans-serif";
    ink.textBaseline = "middle";
    for (const value of [0, top / 2, top]) {
      const level = Math.round(y(value)) + 0.5;
      ink.beginPath();
      ink.moveTo(INSET.left, level);
      ink.lineTo(width - INSET.right, level);
      ink.stroke();
      if (value) ink.fillText(number(value), width - INSET.right + 6, level);
    }
  }

  /** Write how long ago it was below the lines. */
  axis(ink, { now, x, height }) {
    ink.font = "10px system-ui, sans-serif";
    ink.textBaseline = "alphabetic";
    for (const [ago, text] of TICKS) {
      const at = Math.round(x(now - ago)) + 0.5;
      ink.textAlign = ago === SPAN_S ? "left" : ago ? "center" : "right";
      ink.fillText(text, at, height - 2);
      ink.beginPath();
      ink.moveTo(at, height - INSET.bottom);
      ink.lineTo(at, height - INSET.bottom + 3);
      ink.stroke();
    }
    ink.textAlign = "left";
  }

  pointed(x) {
    if (this.pointer == null || !this.points.length) return null;
    const far = (i) => Math.abs(x(this.points[i].at) - this.pointer);
    return this.points.reduce((best, _, i) => (far(i) < far(best) ? i : best), 0);
  }

  tell(lines, colours, at) {
    const told = lines.map(([name, values]) => [name, number(values[at], this.unit)]);
    const text = told.map((pair) => pair.join(" ")).join(", ") || "nothing";
    if (text === this.told) return;
    this.told = text;
    this.key.replaceChildren(...(told.length ? told.map((pair, i) => keyItem(colours[i], ...pair)) : ["nothing"]));
    this.canvas.setAttribute("aria-label", `${this.title}: ${text}`);
  }
}

function keyItem(colour, name, value) {
  const item = document.createElement("span");
  const swatch = document.createElement("i");
  swatch.style.background = colour;
  const bold = document.createElement("b");
  bold.textContent = value;
  item.append(swatch, `${name} `, bold);
  return item;
}

function stroke(ink, points, values, { x, y, colour, filled, base }) {
  ink.strokeStyle = ink.fillStyle = colour;
  ink.lineWidth = 1.75;
  ink.lineJoin = "round";
  let run = [];
  const flush = () => {
    if (run.length) {
      ink.beginPath();
      run.forEach(([px, py]) => ink.lineTo(px, py));
      ink.stroke();
      if (filled) {
        ink.lineTo(run.at(-1)[0], base);
        ink.lineTo(run[0][0], base);
        ink.globalAlpha = 0.13;
        ink.fill();
        ink.globalAlpha = 1;
      }
    }
    run = [];
  };
  points.forEach(({ at }, i) => {
    if (values[i] == null) flush();
    else if (x(at) >= INSET.left) run.push([x(at), y(values[i])]);
  });
  flush();
}

/** Keeps what the charts show, of each mode. */
export class History {
  constructor() {
    this.of = new Map();
  }

  /** Begin with what the gateway remembers: times and pulses. */
  fill(noted) {
    if (this.of.size) return; // the line was lost for a moment, or another mode is looked at
    for (const [at, pulses] of noted) this.add(at, pulses);
  }

  add(at, pulses) {
    for (const [mode, pulse] of Object.entries(pulses)) {
      const points = this.of.get(mode) ?? [];
      points.push({ at, pulse });
      while (points[0].at < at - SPAN_S) points.shift();
      this.of.set(mode, points);
    }
  }
}
