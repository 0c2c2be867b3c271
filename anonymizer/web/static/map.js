// The map: roads on one canvas, what is published on another, Leaflet to move about.

import { palette } from "./charts.js";
import { distance, hull, metresAt, rowsOf } from "./geometry.js";
import { geoJson, pngOf, save } from "./export.js";
import { getInts } from "./stream.js";

const L = window.L;
const ROAD_WIDTH = [0.8, 1.1, 1.8, 2.4];
const STEPS = 12;
const NEAR_PX = 9;
const EXACT = 0;
/** Units of paths in one of the plane: a road is some hundreds long. */
const UNIT = 2 ** 20;
/** Areas are drawn for as many regions unless the reader says otherwise: more hide each other. */
const MOST_AREAS = 150;
/** Dots are round up to so many devices; more are squares, which take a tenth of the time. */
const MOST_ROUND = 1500;

/**
 * A canvas that Leaflet moves and scales along; `paint(ink, view)` draws in layer pixels.
 *
 * It reaches beyond the window. While the map moves, the picture moves with it and is not painted
 * anew, and neither is it afterwards where it still covers the window.
 */
const Sheet = L.Renderer.extend({
  options: { padding: 0.15 },
  _initContainer() {
    this._container = document.createElement("canvas");
    this._container.setAttribute("aria-hidden", "true");
  },
  _destroyContainer() {
    cancelAnimationFrame(this._next);
    this._container.remove();
    delete this._container;
  },
  getEvents() {
    return { ...L.Renderer.prototype.getEvents.call(this), movestart: this._depart, moveend: this._arrive };
  },
  _depart() {
    this._moving = true;
  },
  _arrive() {
    this._moving = false;
    this._update();
    if (this._stale) this.paint();
  },
  _covers() {
    const corner = this._map.containerPointToLayerPoint([0, 0]);
    return this._zoom === this._map.getZoom() && this._origin?.equals(this._map.getPixelOrigin())
      && this._bounds.contains(L.bounds(corner, corner.add(this._map.getSize())));
  },
  _update() {
    if (this._bounds && (this._map._animatingZoom || this._covers())) return;
    L.Renderer.prototype._update.call(this);
    this._origin = this._map.getPixelOrigin();
    const size = this._bounds.getSize();
    const ratio = devicePixelRatio || 1;
    L.DomUtil.setPosition(this._container, this._bounds.min);
    Object.assign(this._container, { width: size.x * ratio, height: size.y * ratio });
    Object.assign(this._container.style, { width: `${size.x}px`, height: `${size.y}px` });
    this._paintNow();
  },
  /** Paint with the next picture of the screen, however often this is called before it. */
  paint() {
    this._stale = true;
    this._next ??= requestAnimationFrame(() => {
      this._next = null;
      if (this._map && !this._moving) this._paintNow();
    });
  },
  _paintNow() {
    if (!this._bounds || this._map._animatingZoom) return;
    this._stale = false;
    const ink = this._container.getContext("2d");
    const ratio = devicePixelRatio || 1;
    const { min, max } = this._bounds;
    const scale = 2 ** this._zoom;
    const origin = this._origin;
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
    this.areas = null;
    this.batches = [];
    this.mark = new Int32Array(at.x.length);
    this.turn = 0;
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
    this.fit(false);
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
    this.ink.ground = palette("--bg")[0];
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
    this.groundPaths = this.roads && this.pathsOfRoads();
    this.batch();
    this.ground.paint();
    this.sheet.paint();
  }

  /** Show the whole network. */
  fit(animate = true) {
    this.map.fitBounds(this.bounds, { padding: [16, 16], animate });
  }

  /** Show the regions of a frame. */
  show(rows) {
    const chosen = this.chosen?.id;
    // Most regions are those of the frame before: what is known of their form is kept.
    const before = new Map(this.regions.map((region) => [region.id, region]));
    this.regions = rows.map(([id, k, n, age, told, nodes]) => {
      const old = before.get(id);
      const same = old && old.nodes.length === nodes.length && old.nodes.every((v, i) => v === nodes[i]);
      return Object.assign(same ? old : { id, nodes }, { k, n, age, told });
    });
    this.devices.fill(0);
    for (const { n, nodes } of this.regions) for (const v of nodes) this.devices[v] += n / nodes.length;
    const crowd = Float64Array.from(this.devices.filter((d) => d > 0)).sort();
    // A steady scale: the 95th percentile, followed slowly.
    const top = crowd.length ? crowd[Math.floor(0.95 * (crowd.length - 1))] : this.top;
    this.top += 0.25 * (Math.max(top, 0.1) - this.top);
    this.chosen = this.regions.find(({ id }) => id === chosen) ?? null;
    if (chosen !== undefined) this.onChoose(this.chosen);
    this.batch();
    this.sheet.paint();
  }

  showAreas(areas) {
    this.areas = areas;
    this.sheet.paint();
  }

  /** Whether the areas of regions are drawn: always where there are no roads to colour. */
  get drawsAreas() {
    return !this.rows || (this.areas ?? this.regions.length <= MOST_AREAS);
  }

  /** Sort the roads of all regions by colour, each road once, as paths in the plane. */
  batch() {
    const { x, y } = this.at;
    const [ox, oy] = this.origin;
    this.batches = Array.from({ length: STEPS }, () => new Path2D());
    if (!this.rows) return;
    const { first, other } = this.rows;
    const drawn = new Uint8Array(other.length);
    for (const region of this.regions) {
      const turn = ++this.turn;
      for (const v of region.nodes) this.mark[v] = turn;
      for (const v of region.nodes) {
        for (let i = first[v]; i < first[v + 1]; i++) {
          const w = other[i];
          if (v >= w || drawn[i] || this.mark[w] !== turn) continue;
          drawn[i] = 1;
          const path = this.batches[this.stepOf((this.devices[v] + this.devices[w]) / 2)];
          path.moveTo((x[v] - ox) * UNIT, (y[v] - oy) * UNIT);
          path.lineTo((x[w] - ox) * UNIT, (y[w] - oy) * UNIT);
        }
      }
    }
  }

  /** Corner of the network: paths begin there, because canvases calculate with 24 bits. */
  get origin() {
    const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);
    return (this.corner ??= [least(this.at.x), least(this.at.y)]);
  }

  /** Draw paths of the plane, `paint` giving each its colour; lengths are then in paths' units. */
  inPlane(ink, { scale, dx, dy }, paint) {
    const [ox, oy] = this.origin;
    const unit = scale / UNIT;
    ink.save();
    ink.transform(unit, 0, 0, unit, ox * scale + dx, oy * scale + dy);
    paint(1 / unit);
    ink.restore();
  }

  pathsOfRoads() {
    const { x, y } = this.at;
    const [ox, oy] = this.origin;
    const stride = this.exact ? 3 : 5;
    const paths = ROAD_WIDTH.map(() => new Path2D());
    for (let i = 0, line = 0; i < this.roads.length; i += stride, line += 4) {
      const [ax, ay, bx, by] = this.exact
        ? [x[this.roads[i]], y[this.roads[i]], x[this.roads[i + 1]], y[this.roads[i + 1]]]
        : this.lines.subarray(line, line + 4);
      const path = paths[this.roads[i + stride - 1]];
      path.moveTo((ax - ox) * UNIT, (ay - oy) * UNIT);
      path.lineTo((bx - ox) * UNIT, (by - oy) * UNIT);
    }
    return paths;
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

  stepOf(density) {
    return Math.max(0, Math.min(STEPS - 1, Math.floor(Math.sqrt(density / this.top) * STEPS)));
  }

  colourOf(density) {
    return this.colours[this.stepOf(density)];
  }

  paintRoads(ink, view) {
    if (!this.groundPaths) return;
    const swell = Math.max(0.7, Math.min(2.6, 2 ** ((view.zoom - 13.5) / 2.5)));
    this.inPlane(ink, view, (pixel) => this.groundPaths.forEach((path, rank) => {
      ink.lineWidth = ROAD_WIDTH[rank] * swell * pixel;
      ink.strokeStyle = rank > 1 ? this.ink["road-main"] : this.ink.road;
      ink.stroke(path);
    }));
  }

  paintLive(ink, view) {
    ink.lineJoin = ink.lineCap = "round";
    if (this.drawsAreas) {
      this.paintAreas(ink, view, this.regions.filter((region) => this.inView(region, view)));
    }
    this.paintDensity(ink, view);
    if (this.chosen) this.paintChosen(ink, view, this.chosen);
    if (this.truth) this.paintTruth(ink, view);
  }

  inView(region, { scale, dx, dy, min, max }) {
    const [west, east, north, south] = this.boxOf(region);
    return east * scale + dx >= min.x && west * scale + dx <= max.x
      && south * scale + dy >= min.y && north * scale + dy <= max.y;
  }

  boxOf(region) {
    if (region.box) return region.box;
    const { x, y } = this.at;
    const box = [Infinity, -Infinity, Infinity, -Infinity];
    for (const v of this.outlineOf(region)) {
      box[0] = Math.min(box[0], x[v]); box[1] = Math.max(box[1], x[v]);
      box[2] = Math.min(box[2], y[v]); box[3] = Math.max(box[3], y[v]);
    }
    return (region.box = box);
  }

  trace(ink, outline, { scale, dx, dy }) {
    const { x, y } = this.at;
    ink.beginPath();
    for (const v of outline) ink.lineTo(x[v] * scale + dx, y[v] * scale + dy);
    ink.closePath();
  }

  paintAreas(ink, view, regions) {
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
  paintDensity(ink, view) {
    const width = Math.max(1.6, Math.min(5, 2.1 * 2 ** ((view.zoom - 13.5) / 2.5)));
    this.inPlane(ink, view, (pixel) => this.batches.forEach((path, step) => {
      ink.lineWidth = width * pixel;
      ink.lineCap = "butt"; // round ends of thin lines take most of the time, and nobody sees them
      ink.strokeStyle = this.colours[step];
      ink.stroke(path);
    }));
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
  paintTruth(ink, { scale, dx, dy, min, max, zoom }) {
    const { x, y } = this.at;
    const [nodes, counts] = this.truth;
    const round = counts.reduce((sum, n) => sum + n, 0) <= MOST_ROUND;
    const side = Math.max(1.2, Math.min(3, 1.6 * 2 ** ((zoom - 13.5) / 2)));
    ink.fillStyle = this.ink.truth;
    ink.beginPath();
    for (let i = 0; i < nodes.length; i++) {
      const px = x[nodes[i]] * scale + dx;
      const py = y[nodes[i]] * scale + dy;
      if (px < min.x || px > max.x || py < min.y || py > max.y) continue;
      for (let j = 0; j < counts[i]; j++) {
        const far = (round ? 3.2 : 1.3 * side) * Math.sqrt(j); // a sunflower's seeds
        const [cx, cy] = [px + far * Math.cos(2.4 * j), py + far * Math.sin(2.4 * j)];
        if (!round) {
          ink.fillRect(cx - side / 2, cy - side / 2, side, side);
          continue;
        }
        ink.moveTo(cx + 2, cy);
        ink.arc(cx, cy, 2, 0, 7);
      }
    }
    if (round) ink.fill();
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

  /** Save what is published as GeoJSON: the roads and nodes of each region. */
  saveGeoJson() {
    const drawn = this.regions.map((region) => ({ ...region, roads: this.roadsOf(region) }));
    save("regions.geojson", "application/geo+json", JSON.stringify(geoJson(drawn, this.at)));
  }

  /** Save what is seen as a picture, without map tiles: other hosts do not give them away. */
  async savePng() {
    const sheets = [this.ground._container, this.sheet._container];
    save("map.png", "image/png", await pngOf(this.map.getContainer(), sheets, this.ink.ground));
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
