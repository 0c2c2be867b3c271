// Traffic by street: how fast it was in the hour that ended last, asked for again every minute.

import { palette } from "./charts.js";
import { steps } from "./geometry.js";
import { getJson } from "./stream.js";

const L = window.L;
const AGAIN_MS = 60_000;
const FAST_MPS = 20;
const SHADES = 8;

export class Streets {
  constructor(map, onSay) {
    this.map = map;
    this.onSay = onSay;
    this.layer = L.geoJSON(null, {
      renderer: L.canvas(),
      style: ({ properties }) => this.style(properties),
      onEachFeature: ({ properties }, line) => line.bindTooltip(said(properties), { sticky: true }),
    });
  }

  async show(wanted) {
    clearInterval(this.timer);
    if (!wanted) {
      this.layer.remove();
      this.onSay("");
      return;
    }
    this.layer.addTo(this.map);
    this.timer = setInterval(() => this.load().catch(() => {}), AGAIN_MS); // asked again in a minute
    await this.load();
  }

  async load() {
    try {
      const { features } = await getJson("/api/streets");
      this.layer.clearLayers().addData(features);
      const [{ properties: { time, every_s, privacy } }] = features;
      this.onSay(`${clock(time, 0)} to ${clock(time, every_s)}, published once (${privacy}). Point at a street for its numbers.`);
    } catch (error) {
      if (error.message !== "404") throw error;
      this.onSay("No whole hour has ended since the gateway started.");
    }
  }

  style({ speed_mps: speed, devices_low: n }) {
    this.colours ??= steps(palette("--ramp"), SHADES);
    const shade = Math.min(SHADES - 1, Math.floor(((speed ?? 0) / FAST_MPS) * SHADES));
    return { color: this.colours[shade], weight: n ? 5 : 1, opacity: speed === null ? 0.3 : 0.9 };
  }
}

function clock(time, later_s) {
  return new Date(Date.parse(time) + 1000 * later_s).toTimeString().slice(0, 5);
}

function said({ devices_low: low, devices_high: high, n_roads: roads, speed_mps: speed, speed_low: slow, speed_high: fast }) {
  const where = roads > 1 ? `on ${roads} roads together` : "on this road";
  const pace = speed === null ? "" : `, ${speed.toFixed(1)} m/s (${slow.toFixed(1)} to ${fast.toFixed(1)})`;
  return `${low} to ${high} devices ${where}${pace}`;
}
