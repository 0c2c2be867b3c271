// The page: what there is to see, in which mode, and what is said beside it.

import { Chart, History, number, palette } from "./charts.js";
import { project } from "./geometry.js";
import { CityMap } from "./map.js";
import { Density } from "./density.js";
import { showNotice } from "./notice.js";
import { Streets } from "./streets.js";
import { Refused, follow, getInts, getJson } from "./stream.js";
import { Views } from "./views.js";

/** The words of the settings, and what they mean. */
const NAME = { session: "session: lasting groups", snapshot: "snapshot: fresh groups", adka: "adka: one by one" };
const PROMISE = {
  session: "Devices form groups of at least k. A group shares every region as long as its pseudonyms live: whoever follows a pseudonym still cannot tell to which of at least k devices it belongs.",
  snapshot: "Each time, at least k devices publish the same region, but not always the same devices: following a pseudonym from time to time can still single out its device.",
  adka: "Each device grows its own region, as the ADKA algorithm was published. At least k devices are in it, but its shape can give away whose it is.",
};
/** What the gateway calls a reason, in the reader's words. */
const REASON = {
  "suppressed superseded": "replaced by a newer position of the same device before its group was due",
  "suppressed never grouped": "left before a group was formed",
  "suppressed too few devices": "too few devices near",
  "suppressed off graph": "too far from any road",
  "suppressed region too large": "region too large",
  "suppressed region too small": "too few roads near",
  "suppressed privacy zone": "in a privacy zone",
  "suppressed trip end": "near an end of the trip",
  "suppressed overload": "more than the gateway can take",
  "suppressed unverified": "failed the check before publishing",
  "suppressed undelivered": "refused by the broker",
  "suppressed other": "other reasons",
  late: "older than the one before",
  duplicate: "repeated",
  invalid: "cannot be read",
};
const reasons = (counts) =>
  Object.fromEntries(Object.entries(counts).map(([name, n]) => [REASON[name] ?? name, n]));
const CHARTS = () => [
  new Chart("Positions", "/s", [["in", "rate_in"], ["out", "rate_out"]]),
  new Chart("Age of information", " s", [["mean", "age_mean_s"], ["95 % below", "age_p95_s"]]),
  new Chart("Arrival to publication", " ms", [["median", "latency_p50_ms"], ["99 % below", "latency_p99_ms"]]),
  new Chart("Nodes per region", "", [["mean", "region_mean"], ["90 % below", "region_p90"]]),
  new Chart("Devices that share a region", "", [["median", "k_median"], ["least", "k_least"]]),
  new Chart("Not published", "/s", [], (pulse) => reasons(pulse.suppressed)),
];

/** Whole units alone: where less than one device is expected at a junction, so many share one. */
const perJunction = (top) => Math.round(1 / top) < 2
  ? `devices on these roads; most: ${Math.round(top) || 1} at each junction`
  : `devices on these roads; most: 1 at every ${Math.round(1 / top)} junctions`;

const $ = (id) => document.getElementById(id);
const seconds = (s) => (s < 90 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`);
const metres = (m) => (m < 950 ? `${Math.round(m / 10) * 10} m` : `${(m / 1000).toFixed(1)} km`);

class Page {
  async open() {
    showNotice(await getJson("/map/notice"));
    this.about = await getJson("/map/about");
    const at = project(await getInts("/map/nodes"));
    this.history = new History();
    this.charts = CHARTS();
    this.map = new CityMap($("map"), { about: this.about, at, onChoose: (region) => this.tell(region) });
    this.density = new Density(this.map, this.about);
    this.views = new Views(fail);
    this.view = "positions";
    this.streets = new Streets(this.map.map, (text) => ($("streets-said").textContent = text));
    $("charts").append(...this.charts.map((chart) => chart.figure));
    this.mode = this.about.modes[0];
    this.layOut();
    this.listen();
    await this.map.loadRoads();
    this.look();
  }

  layOut() {
    const { raw, demo, streets, rule } = this.about;
    $("least-k").textContent = Math.min(...rule.map(({ k }) => k));
    const phone = matchMedia("(max-width: 760px)");
    const fold = () => ($("legend").open = !phone.matches); // it would hide a third of a phone's map
    phone.addEventListener("change", fold);
    fold();
    $("streets-toggle").hidden = !streets;
    this.layOutModes(this.about.modes);
    $("truth-toggle").hidden = $("about-truth").hidden = !raw;
    $("truth").checked = raw && demo;
    $("truth-whose").textContent = demo ? "simulated" : "for the auditor";
    $("about-flow").textContent = demo ? "Demo: simulated devices. " : "";
    document.documentElement.dataset.ready = "yes";
    this.paintRamp();
  }

  /** Modes may join while the page is open: a demo compares when its machine has time. */
  layOutModes(modes) {
    this.about.modes = modes;
    $("mode-switch").replaceChildren(...modes.map((mode) => {
      const label = document.createElement("label");
      label.innerHTML = "<input type=radio name=mode>";
      label.firstChild.value = mode;
      label.firstChild.checked = mode === this.mode;
      label.append(NAME[mode]);
      label.title = `region.mode = "${mode}"`;
      return label;
    }));
    $("comparison").hidden = $("mode-switch").hidden = modes.length < 2;
    $("comparison").querySelector("tbody").replaceChildren(...modes.map((mode) => {
      const row = document.createElement("tr");
      row.innerHTML = "<th scope=row></th><td></td><td></td><td></td>";
      row.firstChild.textContent = NAME[mode];
      return row;
    }));
  }

  listen() {
    $("mode-switch").addEventListener("change", (event) => {
      this.mode = event.target.value;
      this.map.choose(null);
      this.look();
    });
    $("views").addEventListener("change", (event) => this.turnTo(event.target.value));
    $("truth").addEventListener("change", () => this.look());
    $("areas").addEventListener("change", (event) => this.map.showAreas(event.target.checked));
    $("streets").addEventListener("change", (event) => this.streets.show(event.target.checked).catch(fail));
    $("fit").addEventListener("click", () => this.map.fit());
    $("save-png").addEventListener("click", () => this.map.savePng());
    $("save-geojson").addEventListener("click", () => this.map.saveGeoJson());
    $("pause").addEventListener("change", () => this.say(this.state));
    $("previous").addEventListener("click", () => this.map.step(-1));
    $("next").addEventListener("click", () => this.map.step(1));
    $("let-go").addEventListener("click", () => this.letGo());
    $("map").addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.paintRamp();
      this.density.layOut();
      this.draw();
    });
    // A page that is kept for the way back would hold its stream, and a browser has six for a gateway.
    addEventListener("pagehide", () => this.leave?.abort());
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.look();
    });
  }

  /** Show another view. */
  turnTo(view) {
    this.view = view;
    for (const section of document.querySelectorAll("[data-view]")) section.hidden = section.dataset.view !== view;
    $("no-records").hidden = true;
    $("legend").hidden = view === "density";
    this.map.choose(null);
    this.views.show(view, this.about.records);
    this.look();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const does = {
      Enter: () => this.map.pickCentre(), n: () => this.map.step(1), p: () => this.map.step(-1),
      f: () => this.map.fit(), Escape: () => this.map.choose(null),
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
    const density = this.view === "density";
    const truth = !density && this.about.raw && $("truth").checked;
    const shown = truth ? "truth" : density && this.about.raw ? "density" : "public";
    $("truth-key").hidden = !truth;
    this.density.show(density);
    $("ended-key").hidden = this.mode !== "session"; // only lasting groups end
    $("promise").textContent = PROMISE[this.mode] + (this.mode === this.about.modes[0] ? "" : " Shown for comparison.");
    this.map.showTruth(null);
    if (this.frame?.mode !== this.mode) this.map.show([]);
    this.draw();
    follow(`/map/events?mode=${this.mode}&shown=${shown}`, {
      signal,
      onEvent: (kind, data) => this.take(kind, data),
      onState: (state) => this.say(state),
    }).catch(fail);
  }

  take(kind, data) {
    if ($("pause").checked) return;
    if (kind === "history") return this.history.fill(data);
    if (kind === "truth") return this.map.showTruth(data);
    if (kind === "density") return this.density.take(data);
    this.frame = data;
    const modes = Object.keys(data.pulses);
    if (modes.length > this.about.modes.length) this.layOutModes(modes);
    document.documentElement.dataset.frame = data.number;
    this.map.show(data.regions);
    $("areas").checked = this.map.drawsAreas;
    this.history.add(data.time, data.pulses);
    this.draw();
    $("ramp-top").textContent = perJunction(this.map.painter.top);
  }

  draw() {
    const points = this.history.of.get(this.mode) ?? [];
    this.charts.forEach((chart) => chart.show(points));
    if (!this.frame) return;
    this.compare(this.frame.pulses);
    const why = this.frame.pulses[this.mode].silent;
    $("silent").hidden = !why;
    const text = why && `Nothing is published: ${why}.`;
    if ($("silent").textContent !== text) $("silent").textContent = text;
  }

  compare(pulses) {
    const rows = $("comparison").querySelectorAll("tbody tr");
    this.about.modes.forEach((mode, i) => {
      const pulse = pulses[mode];
      const [, junctions, hidden, traced] = rows[i].children;
      rows[i].className = mode === this.mode ? "now" : "";
      junctions.textContent = number(pulse.region_mean);
      hidden.textContent = number(pulse.k_median);
      traced.textContent = pulse.n_followed == null ? "–" : `${pulse.n_below_k} of ${pulse.n_followed}`;
      traced.className = !pulse.n_followed ? "" : pulse.n_below_k ? "bad" : "good";
    });
  }

  say(state) {
    this.state = state;
    const paused = $("pause").checked;
    $("status").className = paused ? "" : state;
    const pulse = this.frame?.pulses[this.mode];
    const live = pulse ? this.present(pulse) : "live";
    const text = paused ? "paused" : state === "live" ? live : "connection lost, trying again";
    if ($("status-text").textContent !== text) $("status-text").textContent = text;
  }

  /** Say what there is, and while there is nothing yet, what is waited for. */
  present({ n_devices: n, silent }) {
    if (this.frame.n_regions || silent) return `${number(n)} devices, ${this.shown()} regions`;
    return `regions appear about ${this.about.first_s} s after devices do`;
  }

  /** Return how many regions live, and how many of them are drawn if not all. */
  shown() {
    const { n_regions: all, regions } = this.frame;
    const drawn = regions.filter((row) => row.at(-1) === null).length;
    return (drawn < all ? `${number(drawn)} of ` : "") + number(all);
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
    $("r-size").textContent = `${region.nodes.length} nodes${road === null ? "" : `, ${metres(road)}`}`;
    $("r-across").textContent = metres(across);
    $("r-age").textContent = seconds(region.age);
    $("r-told").textContent = `${seconds(region.told)} ago`;
    $("r-ended").hidden = region.ended === null;
    $("r-ended").textContent = region.ended === null ? "" :
      `Its group ended ${seconds(region.ended)} ago, and no newer region covers this place yet.`;
    $("r-truth").hidden = inside === null;
    $("r-truth").textContent = inside === null ? "" : `Devices truly inside: ${inside}`;
  }

  paintRamp() {
    $("ramp").style.background = `linear-gradient(90deg, ${palette("--ramp").join(", ")})`;
    const ended = palette("--ended")[0];
    $("ended-ramp").style.background = `linear-gradient(90deg, ${ended}bf 33%, ${ended}80 33% 67%, ${ended}4d 67%)`;
  }
}

/** Ask for the token if that is what is missing; say so if it is something else. */
function fail(error) {
  if (!(error instanceof Refused)) {
    $("status").className = "lost";
    $("status-text").textContent = "the map cannot be loaded";
    throw error;
  }
  $("door-said").textContent = sessionStorage.getItem("token") ? "The gateway refuses this token." : "";
  $("door").showModal();
}

$("door").addEventListener("close", () => {
  sessionStorage.setItem("token", $("token").value);
  $("token").value = "";
  location.reload();
});

new Page().open().catch(fail);
