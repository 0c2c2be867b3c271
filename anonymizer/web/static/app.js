// The page: what there is to see, in which mode, and what is said beside it.

import { Chart, History, number, palette } from "./charts.js";
import { project } from "./geometry.js";
import { CityMap } from "./map.js";
import { Refused, follow, getInts, getJson } from "./stream.js";

const PROMISE = {
  session: "For the whole life of a pseudonym, at least k of them share every region: following one over time leaves k candidates.",
  snapshot: "At each instant at least k devices publish the same region. Who follows a pseudonym from instant to instant can still single it out.",
  bfs: "ADKA as it was published: each device grows its own region. It holds k devices, and its form gives away which one.",
};
const CHARTS = () => [
  new Chart("Positions", "/s", [["in", "rate_in"], ["out", "rate_out"]]),
  new Chart("Latency", " ms", [["median", "latency_p50_ms"], ["99 %", "latency_p99_ms"]]),
  new Chart("Junctions a region", "", [["mean", "region_mean"], ["90 % to", "region_p90"]]),
  new Chart("Hidden among", "", [["median devices", "k_median"], ["least", "k_least"]]),
  new Chart("Not published", "/s", [], (pulse) => pulse.suppressed),
];

const $ = (id) => document.getElementById(id);
const seconds = (s) => (s < 90 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`);
const metres = (m) => (m < 950 ? `${Math.round(m / 10) * 10} m` : `${(m / 1000).toFixed(1)} km`);

class Page {
  async open() {
    this.about = await getJson("/map/about");
    const at = project(await getInts("/map/nodes"));
    this.history = new History();
    this.charts = CHARTS();
    this.map = new CityMap($("map"), { about: this.about, at, onChoose: (region) => this.tell(region) });
    $("charts").append(...this.charts.map((chart) => chart.figure));
    this.mode = this.about.modes[0];
    this.layOut();
    this.listen();
    await this.map.loadRoads();
    this.look();
  }

  layOut() {
    const { modes, raw, demo } = this.about;
    $("mode-switch").replaceChildren(...modes.map((mode) => {
      const label = document.createElement("label");
      label.innerHTML = "<input type=radio name=mode>";
      label.firstChild.value = mode;
      label.firstChild.checked = mode === this.mode;
      label.append(mode);
      return label;
    }));
    $("comparison").hidden = modes.length < 2;
    $("comparison").querySelector("tbody").replaceChildren(...modes.map((mode) => {
      const row = document.createElement("tr");
      row.innerHTML = "<th scope=row></th><td></td><td></td><td></td>";
      row.firstChild.textContent = mode;
      return row;
    }));
    $("truth-toggle").hidden = !raw;
    $("truth-whose").textContent = demo ? "simulated" : "for the auditor";
    $("about-flow").textContent = demo ? "Demo: simulated devices. " : "";
    document.documentElement.dataset.ready = "yes";
    this.paintRamp();
  }

  listen() {
    $("mode-switch").addEventListener("change", (event) => {
      this.mode = event.target.value;
      this.map.choose(null);
      this.look();
    });
    $("truth").addEventListener("change", () => this.look());
    $("pause").addEventListener("change", () => this.say(this.state));
    $("previous").addEventListener("click", () => this.map.step(-1));
    $("next").addEventListener("click", () => this.map.step(1));
    $("let-go").addEventListener("click", () => this.letGo());
    $("map").addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.paintRamp();
      this.charts.forEach((chart) => chart.draw());
    });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const does = {
      Enter: () => this.map.pickCentre(), n: () => this.map.step(1), p: () => this.map.step(-1),
      Escape: () => this.map.choose(null),
    }[event.key];
    if (!does || event.target !== $("map")) return;
    event.preventDefault();
    does();
  }

  letGo() {
    this.map.choose(null);
    $("map").focus();
  }

  /** Follow the stream of the chosen mode, and no other any more. */
  look() {
    this.leave?.abort();
    const { signal } = (this.leave = new AbortController());
    const raw = this.about.raw && $("truth").checked;
    $("truth-key").hidden = !raw;
    $("promise").textContent = PROMISE[this.mode] + (this.mode === this.about.modes[0] ? "" : " Shown for comparison.");
    this.map.showTruth(null);
    this.map.show([]);
    this.draw();
    follow(`/map/events?mode=${this.mode}&raw=${raw}`, {
      signal,
      onEvent: (kind, data) => this.take(kind, data),
      onState: (state) => this.say(state),
    }).catch(fail);
  }

  take(kind, data) {
    if ($("pause").checked) return;
    if (kind === "truth") return this.map.showTruth(data);
    this.frame = data;
    document.documentElement.dataset.frame = data.number;
    this.map.show(data.regions);
    this.history.add(data.time, data.pulses);
    this.draw();
    $("ramp-top").textContent = `0 to ${number(this.map.top)}`;
  }

  draw() {
    const points = this.history.of.get(this.mode) ?? [];
    this.charts.forEach((chart) => chart.show(points));
    if (this.frame) this.compare(this.frame.pulses);
  }

  compare(pulses) {
    const rows = $("comparison").querySelectorAll("tbody tr");
    this.about.modes.forEach((mode, i) => {
      const pulse = pulses[mode];
      const [, junctions, hidden, traced] = rows[i].children;
      rows[i].className = mode === this.mode ? "now" : "";
      junctions.textContent = number(pulse.region_mean);
      hidden.textContent = number(pulse.k_median);
      traced.textContent = `${pulse.n_below_k} of ${pulse.n_followed}`;
      traced.className = !pulse.n_followed ? "" : pulse.n_below_k ? "bad" : "good";
    });
  }

  say(state) {
    this.state = state;
    const paused = $("pause").checked;
    $("status").className = paused ? "" : state;
    const pulse = this.frame?.pulses[this.mode];
    const live = pulse ? `${number(pulse.n_devices)} devices, ${this.shown()} regions` : "live";
    const text = paused ? "paused" : state === "live" ? live : "connection lost, trying again";
    if ($("status-text").textContent !== text) $("status-text").textContent = text;
  }

  /** Return how many regions there are, and how many of them are drawn if not all. */
  shown() {
    const { n_regions: all, regions } = this.frame;
    return (regions.length < all ? `${number(regions.length)} of ` : "") + number(all);
  }

  /** Say what is known of the chosen region. */
  tell(region) {
    $("chosen").hidden = !region;
    if (!region) return;
    const { across, road } = this.map.measure(region);
    const inside = this.map.trulyIn(region);
    $("r-n").textContent = region.n;
    $("r-n-word").textContent = region.n === 1 ? "pseudonym" : "pseudonyms share it";
    $("r-k").textContent = region.k;
    $("r-size").textContent = `${region.nodes.length} junctions${road === null ? "" : `, ${metres(road)}`}`;
    $("r-across").textContent = metres(across);
    $("r-age").textContent = seconds(region.age);
    $("r-told").textContent = `${seconds(region.told)} ago`;
    $("r-truth").hidden = inside === null;
    $("r-truth").textContent = inside === null ? "" : `Devices truly inside: ${inside}`;
  }

  paintRamp() {
    $("ramp").style.background = `linear-gradient(90deg, ${palette("--ramp").join(", ")})`;
  }
}

/** Ask for the token if that is what is missing; say so if it is something else. */
function fail(error) {
  if (!(error instanceof Refused)) {
    $("status").className = "lost";
    $("status-text").textContent = "the map cannot be loaded";
    throw error;
  }
  $("door-said").textContent = sessionStorage.getItem("token") ? "That was not it." : "";
  $("door").showModal();
}

$("door").addEventListener("close", () => {
  sessionStorage.setItem("token", $("token").value);
  $("token").value = "";
  location.reload();
});

new Page().open().catch(fail);
