// The map: roads on one canvas, what is published on another, Leaflet to move about.

import { palette } from "./charts.js";
import { distance, hull, metresAt, rowsOf } from "./geometry.js";
import { getInts } from "./stream.js";

const L = window.L;
const ROAD_WIDTH = [0.8, 1.1, 1.8, 2.4];
const STEPS = 12;
const NEAR_PX = 9;
const EXACT = 0;

/** A canvas that Leaflet moves and scales along; `paint(ink, view)` draws in layer pixels. */
const Sheet = L.Renderer.extend({
  options: { padding: 0.15 },
  _initContainer() {
    this._container = document.createElement("canvas");
    this._container.setAttribute("aria-hidden", "true");
  },
  _destroyContainer() {
    this._container.remove();
    delete this._container;
  },
  _update() {
    if (this._map._animatingZoom && this._bounds) return;
    L.Renderer.prototype._update.call(this);
    const size = this._bounds.getSize();
    const ratio = devicePixelRatio || 1;
    L.DomUtil.setPosition(this._container, this._bounds.min);
    Object.assign(this._container, { width: size.x * ratio, height: size.y * ratio });
    Object.assign(this._container.style, { width: `${size.x}px`, height: `${size.y}px` });
    this.paint();
  },
  paint() {
    if (!this._bounds || this._map._animatingZoom) return;
    const ink = this._container.getContext("2d");
    const ratio = devicePixelRatio || 1;
    const { min, max } = this._bounds;
    const scale = 2 ** this._zoom;
    const origin = this._map._getNewPixelOrigin(this._center, this._zoom);
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.clearRect(0, 0, this._container.width, this._container.height);
    ink.setTransform(ratio, 0, 0, ratio, -min.x * ratio, -min.y * ratio);
    this.options.paint(ink, { scale, dx: -origin.x, dy: -origin.y, min, max, zoom: this._zoom });
  },
});

export class CityMap {
  constructor(element, { about, at, onChoose }) {
    element.city = this; // for whoever looks with the browser's own tools
    this.at = at;
    this.about = about;
    this.onChoose = onChoose;
    this.regions = [];
    this.truth = null;
    this.chosen = null;
    this.devices = new Float64Array(at.x.length);
    this.top = 1;
    this.readColours();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const [south, west, north, east] = about.bounds;
    this.bounds = L.latLngBounds([south, west], [north, east]);
    this.map = L.map(element, {
      zoomSnap: 0.25,
      zoomAnimation: !still,
      fadeAnimation: !still,
      inertia: !still,
      maxBounds: this.bounds.pad(1),
      maxZoom: 19,
      zoomControl: false,
    });
    L.control.zoom({ position: "topleft" }).addTo(this.map);
    L.control.scale({ imperial: false, position: "bottomright" }).addTo(this.map);
    this.map.attributionControl.setPrefix("Leaflet");
    this.map.fitBounds(this.bounds, { padding: [16, 16], animate: false });
    this.map.setMinZoom(this.map.getZoom() - 1.5);
    if (about.tiles) L.tileLayer(about.tiles.url, { attribution: about.tiles.attribution }).addTo(this.map);
    this.ground = new Sheet({ paint: (ink, view) => this.paintRoads(ink, view) }).addTo(this.map);
    this.sheet = new Sheet({ paint: (ink, view) => this.paintLive(ink, view) }).addTo(this.map);
    this.map.on("click", (event) => this.pick(event.containerPoint));
    this.map.on("moveend", () => this.loadRoads());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readColours();
      this.ground.paint();
      this.sheet.paint();
    });
  }

  readColours() {
    this.colours = rampOf(palette("--ramp"), STEPS);
    this.ink = Object.fromEntries(
      ["road", "road-main", "truth", "chosen", "panel"].map((name) => [name, palette(`--${name}`)[0]]),
    );
  }

  /** Load the roads in view, all of them once where there are not too many. */
  async loadRoads() {
    if (this.roads && this.about.roads === "whole") return;
    const box = this.map.getBounds().pad(0.25);
    const clamp = (v, most) => Math.max(-most, Math.min(most, v)).toFixed(6);
    const query = new URLSearchParams({
      south: clamp(box.getSouth(), 90), west: clamp(box.getWest(), 180),
      north: clamp(box.getNorth(), 90), east: clamp(box.getEast(), 180),
    });
    const asked = (this.asked = {});
    const answer = await getInts(`/map/roads?${query}`);
    if (asked !== this.asked) return;
    this.exact = answer[0] === EXACT;
    this.roads = answer.subarray(1);
    this.rows = this.exact ? rowsOf(this.roads, this.at.x.length) : null;
    this.lines = this.exact ? null : linesOf(this.roads);
    for (const region of this.regions) region.roads = null;
    this.ground.paint();
    this.sheet.paint();
  }

  /** Show the regions of a frame. */
  show(rows) {
    const chosen = this.chosen?.id;
    this.regions = rows.map(([id, k, n, age, told, nodes]) => ({ id, k, n, age, told, nodes }));
    this.devices.fill(0);
    for (const { n, nodes } of this.regions) for (const v of nodes) this.devices[v] += n / nodes.length;
    const crowd = Float64Array.from(this.devices.filter((d) => d > 0)).sort();
    // A steady scale: the 95th percentile, followed slowly.
    const top = crowd.length ? crowd[Math.floor(0.95 * (crowd.length - 1))] : this.top;
    this.top += 0.25 * (Math.max(top, 0.1) - this.top);
    this.chosen = this.regions.find(({ id }) => id === chosen) ?? null;
    if (chosen !== undefined) this.onChoose(this.chosen);
    this.sheet.paint();
  }

  showTruth(truth) {
    this.truth = truth;
    this.sheet.paint();
  }

  outlineOf(region) {
    return (region.outline ??= hull(region.nodes, this.at));
  }

  /** Return the roads within a region as pairs of nodes, and remember them. */
  roadsOf(region) {
    if (!this.rows) return [];
    if (region.roads) return region.roads;
    const { first, other } = this.rows;
    const inside = new Set(region.nodes);
    region.roads = [];
    for (const v of region.nodes) {
      for (let i = first[v]; i < first[v + 1]; i++) {
        if (v < other[i] && inside.has(other[i])) region.roads.push(v, other[i]);
      }
    }
    return region.roads;
  }

  colourOf(density) {
    const step = Math.floor(Math.sqrt(density / this.top) * STEPS);
    return this.colours[Math.max(0, Math.min(STEPS - 1, step))];
  }

  paintRoads(ink, { scale, dx, dy, zoom }) {
    if (!this.roads) return;
    const { x, y } = this.at;
    const stride = this.exact ? 3 : 5;
    const swell = Math.max(0.7, Math.min(2.6, 2 ** ((zoom - 13.5) / 2.5)));
    ink.lineCap = "round";
    for (let rank = 0; rank < ROAD_WIDTH.length; rank++) {
      ink.beginPath();
      for (let i = 0, line = 0; i < this.roads.length; i += stride, line += 4) {
        if (this.roads[i + stride - 1] !== rank) continue;
        const [ax, ay, bx, by] = this.exact
          ? [x[this.roads[i]], y[this.roads[i]], x[this.roads[i + 1]], y[this.roads[i + 1]]]
          : this.lines.subarray(line, line + 4);
        ink.moveTo(ax * scale + dx, ay * scale + dy);
        ink.lineTo(bx * scale + dx, by * scale + dy);
      }
      ink.lineWidth = ROAD_WIDTH[rank] * swell;
      ink.strokeStyle = rank > 1 ? this.ink["road-main"] : this.ink.road;
      ink.stroke();
    }
  }

  paintLive(ink, view) {
    const seen = this.regions.filter((region) => this.inView(region, view));
    ink.lineJoin = ink.lineCap = "round";
    this.paintHulls(ink, view, seen);
    this.paintDensity(ink, view, seen);
    if (this.chosen) this.paintChosen(ink, view, this.chosen);
    if (this.truth) this.paintTruth(ink, view);
  }

  inView(region, { scale, dx, dy, min, max }) {
    const { x, y } = this.at;
    const outline = this.outlineOf(region);
    let [west, east, north, south] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const v of outline) {
      west = Math.min(west, x[v]); east = Math.max(east, x[v]);
      north = Math.min(north, y[v]); south = Math.max(south, y[v]);
    }
    return east * scale + dx >= min.x && west * scale + dx <= max.x
      && south * scale + dy >= min.y && north * scale + dy <= max.y;
  }

  trace(ink, outline, { scale, dx, dy }) {
    const { x, y } = this.at;
    ink.beginPath();
    for (const v of outline) ink.lineTo(x[v] * scale + dx, y[v] * scale + dy);
    ink.closePath();
  }

  paintHulls(ink, view, regions) {
    for (const region of regions) {
      const mean = region.n / region.nodes.length;
      ink.fillStyle = ink.strokeStyle = this.colourOf(mean);
      this.trace(ink, this.outlineOf(region), view);
      ink.globalAlpha = this.rows ? 0.11 : 0.3; // where no roads are coloured, the areas are
      ink.fill();
      ink.lineWidth = 1;
      ink.globalAlpha = 0.42;
      ink.stroke();
    }
    ink.globalAlpha = 1;
  }

  /** Colour the roads of all regions, the sparse ones first so that the dense ones stay visible. */
  paintDensity(ink, { scale, dx, dy, zoom }, regions) {
    const { x, y } = this.at;
    const by = Array.from({ length: STEPS }, () => []);
    for (const region of regions) {
      const roads = this.roadsOf(region);
      for (let i = 0; i < roads.length; i += 2) {
        const density = (this.devices[roads[i]] + this.devices[roads[i + 1]]) / 2;
        const step = Math.floor(Math.sqrt(density / this.top) * STEPS);
        by[Math.max(0, Math.min(STEPS - 1, step))].push(roads[i], roads[i + 1]);
      }
    }
    ink.lineWidth = Math.max(1.6, Math.min(5, 2.1 * 2 ** ((zoom - 13.5) / 2.5)));
    by.forEach((roads, step) => {
      ink.strokeStyle = this.colours[step];
      ink.beginPath();
      for (let i = 0; i < roads.length; i += 2) {
        ink.moveTo(x[roads[i]] * scale + dx, y[roads[i]] * scale + dy);
        ink.lineTo(x[roads[i + 1]] * scale + dx, y[roads[i + 1]] * scale + dy);
      }
      ink.stroke();
    });
  }

  paintChosen(ink, view, region) {
    const { x, y } = this.at;
    const { scale, dx, dy, zoom } = view;
    const swell = Math.max(0.5, Math.min(1.4, 2 ** ((zoom - 14) / 2)));
    ink.strokeStyle = ink.fillStyle = this.ink.chosen;
    this.trace(ink, this.outlineOf(region), view);
    ink.globalAlpha = 0.10;
    ink.lineWidth = 16 * swell;
    ink.stroke();
    ink.fill();
    ink.globalAlpha = 1;
    ink.lineWidth = 2.6 * swell;
    ink.beginPath();
    const roads = this.roadsOf(region);
    for (let i = 0; i < roads.length; i += 2) {
      ink.moveTo(x[roads[i]] * scale + dx, y[roads[i]] * scale + dy);
      ink.lineTo(x[roads[i + 1]] * scale + dx, y[roads[i + 1]] * scale + dy);
    }
    ink.stroke();
    for (const v of region.nodes) this.spot(ink, x[v] * scale + dx, y[v] * scale + dy, 3 * swell);
  }

  /** A dot for each device around the junction that it is at. */
  paintTruth(ink, { scale, dx, dy, min, max }) {
    const { x, y } = this.at;
    const [nodes, counts] = this.truth;
    ink.fillStyle = this.ink.truth;
    ink.beginPath();
    for (let i = 0; i < nodes.length; i++) {
      const px = x[nodes[i]] * scale + dx;
      const py = y[nodes[i]] * scale + dy;
      if (px < min.x || px > max.x || py < min.y || py > max.y) continue;
      for (let j = 0; j < counts[i]; j++) {
        const far = 3.2 * Math.sqrt(j); // a sunflower's seeds
        const [cx, cy] = [px + far * Math.cos(2.4 * j), py + far * Math.sin(2.4 * j)];
        ink.moveTo(cx + 2, cy);
        ink.arc(cx, cy, 2, 0, 7);
      }
    }
    ink.fill();
  }

  spot(ink, px, py, radius) {
    ink.beginPath();
    ink.arc(px, py, radius, 0, 7);
    ink.fill();
  }

  /** Choose the smallest region at a point of the window; again there, the next larger one. */
  pick(point, reach = NEAR_PX) {
    const place = this.map.containerPointToLayerPoint(point).add(this.map.getPixelOrigin());
    const scale = 2 ** this.map.getZoom();
    const [px, py] = [place.x / scale, place.y / scale];
    const far = (region) => distance(px, py, this.outlineOf(region), this.at) * scale;
    const here = this.regions.map((region) => [region, far(region)]).filter(([, d]) => d <= reach);
    here.sort(([a, da], [b, db]) => (da > 0) - (db > 0) || a.nodes.length - b.nodes.length || (a.id < b.id ? -1 : 1));
    const before = here.findIndex(([region]) => region.id === this.chosen?.id);
    this.choose(here.length ? here[(before + 1) % here.length][0] : null);
  }

  /** Choose the region nearest to the middle of the window. */
  pickCentre() {
    this.pick(this.map.getSize().divideBy(2), NEAR_PX);
    if (!this.chosen) this.pick(this.map.getSize().divideBy(2), Infinity);
  }

  choose(region) {
    this.chosen = region;
    this.onChoose(region);
    this.sheet.paint();
  }

  /** Choose the next region from west to east, or the previous one, and bring it into view. */
  step(by) {
    if (!this.regions.length) return;
    const west = (region) => this.at.x[this.outlineOf(region)[0]];
    const order = [...this.regions].sort((a, b) => west(a) - west(b) || (a.id < b.id ? -1 : 1));
    const at = order.findIndex(({ id }) => id === this.chosen?.id);
    this.choose(order[at < 0 ? 0 : (at + by + order.length) % order.length]);
    this.map.panInsideBounds(this.map.getBounds()); // ends a movement under way
    this.map.panInside(this.middleOf(this.chosen), { padding: [60, 60] });
  }

  middleOf(region) {
    const { x, y } = this.at;
    const mean = (of) => region.nodes.reduce((sum, v) => sum + of[v], 0) / region.nodes.length;
    return this.map.unproject([mean(x), mean(y)], 0);
  }

  /** Return metres of road in a region (null: not known at this scale), and across it. */
  measure(region) {
    const { x, y } = this.at;
    const outline = this.outlineOf(region);
    const metres = metresAt(y[region.nodes[0]]);
    const apart = (a, b) => Math.hypot(x[a] - x[b], y[a] - y[b]) * metres;
    let across = 0;
    for (const a of outline) for (const b of outline) across = Math.max(across, apart(a, b));
    const roads = this.roadsOf(region);
    let road = 0;
    for (let i = 0; i < roads.length; i += 2) road += apart(roads[i], roads[i + 1]);
    return { across, road: this.rows ? road : null };
  }

  /** Return how many devices truly are in a region; null: not to be known. */
  trulyIn(region) {
    if (!this.truth) return null;
    const inside = new Set(region.nodes);
    const [nodes, counts] = this.truth;
    return nodes.reduce((sum, v, i) => sum + (inside.has(v) ? counts[i] : 0), 0);
  }
}

/** Project simplified lines (lat, lon, lat, lon, rank) to the plane. */
function linesOf(roads) {
  const lines = new Float64Array((roads.length / 5) * 4);
  const mercator = (lat) => {
    const sine = Math.sin((lat / 1e6) * (Math.PI / 180));
    return 256 * (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI));
  };
  for (let i = 0, j = 0; i < roads.length; i += 5, j += 4) {
    lines[j] = 256 * (roads[i + 1] / 1e6 / 360 + 0.5);
    lines[j + 1] = mercator(roads[i]);
    lines[j + 2] = 256 * (roads[i + 3] / 1e6 / 360 + 0.5);
    lines[j + 3] = mercator(roads[i + 2]);
  }
  return lines;
}

/** Return `n` colours between the given ones (hexadecimal). */
function rampOf(stops, n) {
  const rgb = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
  return Array.from({ length: n }, (_, step) => {
    const at = (step / (n - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = rgb[low].map((c, i) => Math.round(c + (at - low) * (rgb[low + 1][i] - c)));
    return `rgb(${mixed.join(" ")})`;
  });
}
