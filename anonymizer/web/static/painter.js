// The worker that paints: it keeps what there is to see, and returns a picture when it is asked.

import { hull, project, rowsOf, steps } from "./geometry.js";

const ROAD_WIDTH = [0.8, 1.1, 1.8, 2.4];
const STEPS = 12;
/** Units of paths in one of the plane: a road is some hundreds long. */
const UNIT = 2 ** 20;
/** Dots are round up to so many devices; more are squares, which take a tenth of the time. */
const MOST_ROUND = 1500;
/** Regions that have ended fade in so many steps, for as long as they are kept. */
const FADES = [0.75, 0.5, 0.3];
const ENDED_KEPT_S = 60;

const canvas = new OffscreenCanvas(1, 1);
const ink = canvas.getContext("2d");
let at, devices, mark, corner, colours, palette, rows, lines, groundPaths;
let regions = [];
let truth = null;
let view = "regions";
let density = [[], []];
let bands = [];
let junction = null;
let chosen = null;
let areas = true;
let top = 1;
let turn = 0;
let roads = null; // paths of the roads of regions: by step of density, and of those that ended
const outlines = new Map();

const does = {
  /** Where the nodes are. */
  nodes({ x, y }) {
    at = { x, y };
    devices = new Float64Array(x.length);
    mark = new Int32Array(x.length);
    const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);
    corner = [least(x), least(y)]; // paths begin there, because canvases calculate with 24 bits
  },
  colours(data) {
    palette = data.palette;
    colours = steps(data.ramp, STEPS);
  },
  roads({ exact, roads: given }) {
    rows = exact ? rowsOf(given, at.x.length) : null;
    lines = exact ? null : linesOf(given);
    groundPaths = pathsOfRoads(given, exact);
    roads = null;
  },
  regions(data) {
    regions = data.regions;
    const living = new Set(regions.map(({ id }) => id));
    for (const id of outlines.keys()) if (!living.has(id)) outlines.delete(id);
    devices.fill(0);
    for (const { n, nodes, ended } of regions) {
      if (ended === null) for (const v of nodes) devices[v] += n / nodes.length;
    }
    const crowd = Float64Array.from(devices.filter((d) => d > 0)).sort();
    // A steady scale: the 95th percentile, followed slowly.
    const crowded = crowd.length ? crowd[Math.floor(0.95 * (crowd.length - 1))] : top;
    top += 0.25 * (Math.max(crowded, 0.1) - top);
    roads = null;
  },
  shown(data) {
    areas = data.areas;
    chosen = data.chosen;
  },
  truth(data) {
    truth = data.truth;
  },
  view(data) {
    view = data.view;
  },
  bands(data) {
    bands = data.bands;
  },
  density(data) {
    density = data.density;
  },
  junction(data) {
    junction = data.junction;
  },
  paint({ sheet, zoom, width, height, dx, dy, ratio }) {
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    (sheet === "ground" ? paintRoads : paintLive)({ scale: 2 ** zoom, dx, dy, zoom, width, height });
    const bitmap = canvas.transferToImageBitmap();
    postMessage({ sheet, bitmap, top }, [bitmap]);
  },
};

addEventListener("message", ({ data }) => does[data.kind](data));

/** Project simplified lines (lat, lon, lat, lon, rank) to the plane. */
function linesOf(given) {
  const places = new Int32Array((given.length / 5) * 4);
  for (let i = 0, j = 0; i < given.length; i += 5, j += 4) places.set(given.subarray(i, i + 4), j);
  const { x, y } = project(places);
  return Float64Array.from({ length: places.length }, (_, i) => (i % 2 ? y : x)[i >> 1]);
}

function pathsOfRoads(given, exact) {
  const { x, y } = at;
  const stride = exact ? 3 : 5;
  const paths = ROAD_WIDTH.map(() => new Path2D());
  for (let i = 0, line = 0; i < given.length; i += stride, line += 4) {
    const ends = exact
      ? [x[given[i]], y[given[i]], x[given[i + 1]], y[given[i + 1]]]
      : lines.subarray(line, line + 4);
    stretch(paths[given[i + stride - 1]], ...ends);
  }
  return paths;
}

function stretch(path, ax, ay, bx, by) {
  path.moveTo((ax - corner[0]) * UNIT, (ay - corner[1]) * UNIT);
  path.lineTo((bx - corner[0]) * UNIT, (by - corner[1]) * UNIT);
}

/** Sort the roads of all regions by colour, each road once; those of ended regions come last. */
function sortRoads() {
  const sorted = { dense: colours.map(() => new Path2D()), ended: FADES.map(() => new Path2D()) };
  if (!rows) return sorted;
  const { x, y } = at;
  const { first, other } = rows;
  const drawn = new Uint8Array(other.length);
  for (const { nodes, ended } of [...regions].sort((a, b) => (a.ended ?? -1) - (b.ended ?? -1))) {
    turn++;
    for (const v of nodes) mark[v] = turn;
    const fade = Math.min(FADES.length - 1, Math.floor((ended / ENDED_KEPT_S) * FADES.length));
    for (const v of nodes) {
      for (let i = first[v]; i < first[v + 1]; i++) {
        const w = other[i];
        if (v >= w || drawn[i] || mark[w] !== turn) continue;
        drawn[i] = 1;
        const path = ended === null ? sorted.dense[stepOf((devices[v] + devices[w]) / 2)] : sorted.ended[fade];
        stretch(path, x[v], y[v], x[w], y[w]);
      }
    }
  }
  return sorted;
}

function stepOf(density) {
  return Math.max(0, Math.min(STEPS - 1, Math.floor(Math.sqrt(density / top) * STEPS)));
}

/** Draw paths of the plane, `paint` giving each its colour; lengths are then in paths' units. */
function inPlane({ scale, dx, dy }, paint) {
  const unit = scale / UNIT;
  ink.save();
  ink.transform(unit, 0, 0, unit, corner[0] * scale + dx, corner[1] * scale + dy);
  ink.lineCap = "butt"; // round ends of thin lines take most of the time, and nobody sees them
  paint(1 / unit);
  ink.restore();
}

function paintRoads(view) {
  if (!groundPaths) return;
  const swell = Math.max(0.7, Math.min(2.6, 2 ** ((view.zoom - 13.5) / 2.5)));
  inPlane(view, (pixel) => groundPaths.forEach((path, rank) => {
    ink.lineWidth = ROAD_WIDTH[rank] * swell * pixel;
    ink.strokeStyle = rank > 1 ? palette["road-main"] : palette.road;
    ink.stroke(path);
  }));
}

function paintLive(window) {
  ink.lineJoin = ink.lineCap = "round";
  if (view === "density") return paintJunctions(window);
  if (areas) paintAreas(window);
  roads ??= sortRoads();
  paintDensity(window);
  const region = regions.find(({ id }) => id === chosen);
  if (region) paintChosen(window, region);
  if (truth) paintTruth(window);
}

function outlineOf({ id, nodes }) {
  const kept = outlines.get(id);
  if (kept && kept.nodes.length === nodes.length && kept.nodes.every((v, i) => v === nodes[i])) return kept.outline;
  const outline = hull(nodes, at);
  outlines.set(id, { nodes, outline });
  return outline;
}

function trace(outline, { scale, dx, dy }) {
  const { x, y } = at;
  ink.beginPath();
  for (const v of outline) ink.lineTo(x[v] * scale + dx, y[v] * scale + dy);
  ink.closePath();
}

function paintAreas(view) {
  for (const region of regions) {
    const mean = region.n / region.nodes.length;
    ink.fillStyle = ink.strokeStyle = region.ended === null ? colours[stepOf(mean)] : palette.ended;
    trace(outlineOf(region), view);
    ink.globalAlpha = rows ? 0.11 : 0.3; // where no roads are coloured, the areas are
    if (region.ended === null) ink.fill();
    ink.lineWidth = 1;
    ink.globalAlpha = 0.42;
    ink.stroke();
  }
  ink.globalAlpha = 1;
}

/** Colour the roads of all regions, the sparse ones first so that the dense ones stay visible. */
function paintDensity(view) {
  const width = Math.max(1.6, Math.min(5, 2.1 * 2 ** ((view.zoom - 13.5) / 2.5)));
  inPlane(view, (pixel) => {
    ink.lineWidth = width * pixel;
    ink.strokeStyle = palette.ended;
    roads.ended.forEach((path, fade) => {
      ink.globalAlpha = FADES[fade];
      ink.stroke(path);
    });
    ink.globalAlpha = 1;
    roads.dense.forEach((path, step) => {
      ink.strokeStyle = colours[step];
      ink.stroke(path);
    });
  });
}

function paintChosen(view, { id, nodes }) {
  const { x, y } = at;
  const swell = Math.max(0.5, Math.min(1.4, 2 ** ((view.zoom - 14) / 2)));
  ink.strokeStyle = ink.fillStyle = palette.chosen;
  trace(outlineOf({ id, nodes }), view);
  ink.globalAlpha = 0.10;
  ink.lineWidth = 16 * swell;
  ink.stroke();
  ink.fill();
  ink.globalAlpha = 1;
  const { first, other } = rows ?? { first: new Int32Array(x.length + 1) };
  const inside = new Set(nodes);
  const path = new Path2D();
  for (const v of nodes) {
    for (let i = first[v]; i < first[v + 1]; i++) {
      if (v < other[i] && inside.has(other[i])) stretch(path, x[v], y[v], x[other[i]], y[other[i]]);
    }
  }
  inPlane(view, (pixel) => {
    ink.lineWidth = 2.6 * swell * pixel;
    ink.stroke(path);
  });
  ink.beginPath();
  for (const v of nodes) dot(x[v] * view.scale + view.dx, y[v] * view.scale + view.dy, 3 * swell);
  ink.fill();
}

/** Return the band of a density. */
const bandOf = (n) => bands.findIndex(({ below }) => below === null || n < below);

/** A disc for each junction with devices near, in the colour of its k; the densest come last. */
function paintJunctions({ scale, dx, dy, zoom }) {
  const { x, y } = at;
  const [nodes, counts] = density;
  const swell = Math.max(1, Math.min(4, 1.5 * 2 ** ((zoom - 13) / 2)));
  bands.forEach(({ colour }, band) => {
    ink.fillStyle = colour;
    ink.beginPath();
    nodes.forEach((v, i) => {
      if (bandOf(counts[i]) === band) dot(x[v] * scale + dx, y[v] * scale + dy, swell * (1.2 + 0.4 * Math.sqrt(counts[i])));
    });
    ink.fill();
  });
  if (junction === null) return;
  ink.strokeStyle = palette.chosen;
  ink.lineWidth = 3;
  ink.beginPath();
  dot(x[junction] * scale + dx, y[junction] * scale + dy, 9);
  ink.stroke();
}

/** A dot for each device around the junction that it is at. */
function paintTruth({ scale, dx, dy, width, height, zoom }) {
  const { x, y } = at;
  const [nodes, counts] = truth;
  const round = counts.reduce((sum, n) => sum + n, 0) <= MOST_ROUND;
  const side = Math.max(1.2, Math.min(3, 1.6 * 2 ** ((zoom - 13.5) / 2)));
  ink.fillStyle = palette.truth;
  ink.beginPath();
  for (let i = 0; i < nodes.length; i++) {
    const px = x[nodes[i]] * scale + dx;
    const py = y[nodes[i]] * scale + dy;
    if (px < 0 || px > width || py < 0 || py > height) continue;
    for (let j = 0; j < counts[i]; j++) {
      const far = (round ? 3.2 : 1.3 * side) * Math.sqrt(j); // a sunflower's seeds
      const [cx, cy] = [px + far * Math.cos(2.4 * j), py + far * Math.sin(2.4 * j)];
      if (round) dot(cx, cy, 2);
      else ink.fillRect(cx - side / 2, cy - side / 2, side, side);
    }
  }
  if (round) ink.fill();
}

function dot(px, py, radius) {
  ink.moveTo(px + radius, py);
  ink.arc(px, py, radius, 0, 7);
}
