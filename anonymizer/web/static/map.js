// The map: roads on one sheet, what is published on another, Leaflet to move about.

import { palette } from "./charts.js";
import { distance, hull, metresAt, rowsOf } from "./geometry.js";
import { geoJson, pngOf, save } from "./export.js";
import { Painter, Sheet } from "./sheet.js";
import { getInts } from "./stream.js";

const L = window.L;
const NEAR_PX = 9;
const EXACT = 0;
/** Areas are drawn for as many regions unless the reader says otherwise: more hide each other. */
const MOST_AREAS = 150;

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
    this.painter = new Painter();
    this.painter.tell("nodes", at);
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
    const sheet = (name, hasContent) => new Sheet({ name, hasContent, painter: this.painter }).addTo(this.map);
    this.ground = sheet("ground", () => this.roads);
    this.sheet = sheet("live", () => this.regions.length || this.truth || this.density);
    this.map.on("click", (event) => this.pick(event.containerPoint));
    this.map.on("moveend", () => this.loadRoads());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readColours();
      this.ground.paint();
      this.paint();
    });
  }

  readColours() {
    const names = ["road", "road-main", "truth", "chosen", "ended", "bg"];
    this.palette = Object.fromEntries(names.map((name) => [name, palette(`--${name}`)[0]]));
    this.painter.tell("colours", { ramp: palette("--ramp"), palette: this.palette });
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
    for (const region of this.regions) region.roads = null;
    this.painter.tell("roads", { exact: this.exact, roads: this.roads });
    this.ground.paint();
    this.paint();
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
    this.regions = rows.map(([id, k, n, age, told, nodes, ended]) => {
      const old = before.get(id);
      const same = old && old.nodes.length === nodes.length && old.nodes.every((v, i) => v === nodes[i]);
      return Object.assign(same ? old : { id, nodes }, { k, n, age, told, ended });
    });
    this.chosen = this.regions.find(({ id }) => id === chosen) ?? null;
    if (chosen !== undefined) this.onChoose(this.chosen);
    this.painter.tell("regions", { regions: this.regions.map(({ id, n, nodes, ended }) => ({ id, n, nodes, ended })) });
    this.paint();
  }

  /** Have what is live painted anew. */
  paint() {
    this.painter.tell("shown", { areas: this.drawsAreas, chosen: this.chosen?.id ?? null });
    this.sheet.paint();
  }

  showAreas(areas) {
    this.areas = areas;
    this.paint();
  }

  /** Whether the areas of regions are drawn: always where there are no roads to colour. */
  get drawsAreas() {
    return !this.rows || (this.areas ?? this.regions.length <= MOST_AREAS);
  }

  showTruth(truth) {
    this.truth = truth;
    this.painter.tell("truth", { truth });
    this.paint();
  }

  /** Show the density map and nothing else; `pick` chooses one of its junctions. null: regions. */
  showDensity(density) {
    this.density = density;
    this.painter.tell("view", { view: density ? "density" : "regions" });
    this.paint();
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

  /** Choose the smallest living region at a point of the window; again there, the next larger one. */
  pick(point, reach = NEAR_PX) {
    if (this.density) return this.density.pick(point);
    const place = this.map.containerPointToLayerPoint(point).add(this.map.getPixelOrigin());
    const scale = 2 ** this.map.getZoom();
    const [px, py] = [place.x / scale, place.y / scale];
    const far = (region) => distance(px, py, this.outlineOf(region), this.at) * scale;
    const here = this.regions.map((region) => [region, far(region)]).filter(([, d]) => d <= reach);
    const over = (region) => region.ended !== null;
    here.sort(([a, da], [b, db]) => over(a) - over(b) || (da > 0) - (db > 0) || a.nodes.length - b.nodes.length || (a.id < b.id ? -1 : 1));
    const before = here.findIndex(([region]) => region.id === this.chosen?.id);
    this.choose(here.length ? here[(before + 1) % here.length][0] : null);
  }

  /** Choose the region nearest to the middle of the window. */
  pickCentre() {
    if (this.density) return this.density.pick(this.map.getSize().divideBy(2), Infinity);
    this.pick(this.map.getSize().divideBy(2), NEAR_PX);
    if (!this.chosen) this.pick(this.map.getSize().divideBy(2), Infinity);
  }

  choose(region) {
    this.chosen = region;
    this.onChoose(region);
    this.paint();
  }

  /** Choose the next region from west to east, or the previous one, and bring it into view. */
  step(by) {
    if (!this.regions.length || this.density) return;
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

  /** Save what is seen as a picture. */
  async savePng() {
    const sheets = [this.ground._container, this.sheet._container];
    save("map.png", "image/png", await pngOf(this.map.getContainer(), sheets, this.palette.bg));
  }

  /** Return how many devices truly are in a region; null: not to be known. */
  trulyIn(region) {
    if (!this.truth) return null;
    const inside = new Set(region.nodes);
    const [nodes, counts] = this.truth;
    return nodes.reduce((sum, v, i) => sum + (inside.has(v) ? counts[i] : 0), 0);
  }
}
