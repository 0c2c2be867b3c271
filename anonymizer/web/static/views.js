// What is to be seen beside the map: records and tolls as they were published last.

import { getJson } from "./stream.js";

const AGAIN_MS = 5_000;
export const TOLLS = "/api/analytics/truck/exit-hourly-flow-k-anonymized";

const $ = (id) => document.getElementById(id);
const clock = (s) => new Date(s * 1000).toLocaleTimeString("en-GB");

/** Make an element with text, or with children. */
function make(name, content, attributes = {}) {
  const element = Object.assign(document.createElement(name), attributes);
  if (Array.isArray(content)) element.append(...content);
  else element.textContent = content;
  return element;
}

function table(title, caption, columns, rows) {
  const head = make("thead", [make("tr", columns.map((name) => make("th", name, { scope: "col" })))]);
  const body = make("tbody", rows.map((row) => make("tr", row.map((cell) => make("td", cell)))));
  const scroll = make("div", [make("table", [make("caption", caption, { className: "fine" }), head, body])], { className: "scroll", tabIndex: 0 });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `${title}: ${caption}`);
  return scroll;
}

/** Say a generalized value as a reader would. */
export function readable(value) {
  const missing = value.missing ? " or unknown" : "";
  if (value.range) return (value.range[0] === value.range[1] ? `${value.range[0]}` : value.range.join("–")) + missing;
  if (value.hours) return `${value.hours.join("–")} h${missing}`;
  if (value.prefix !== undefined) return `${value.prefix}…${missing}`;
  const said = value.values?.join(", ") ?? value.label ?? value.value;
  return (said == null ? "unknown" : `${said}`) + missing;
}

/** Say how often each sensitive value occurs. */
function counted(values) {
  const n = new Map();
  for (const value of values) n.set(value, (n.get(value) ?? 0) + 1);
  return [...n].sort((a, b) => b[1] - a[1]).map(([value, times]) => `${times} × ${value ?? "unknown"}`).join(", ");
}

function windowOf(view) {
  const title = `${view.title}: ${view.stream}`;
  const parts = [make("h2", title), make("p", view.promise, { className: "fine" })];
  if (view.start === null) {
    parts.push(make("p", "No window has been published yet: one is when it ends.", { className: "fine" }));
  } else if (!view.classes.length) {
    parts.push(make("p", `The window until ${clock(view.end)} had ${view.n_records} records, too few to publish any.`, { className: "fine" }));
  } else {
    const [first] = view.classes;
    const names = [...Object.keys(first.qis), ...Object.keys(first.sensitive)];
    const rows = view.classes.map((each) => [
      `${each.k}`,
      ...Object.values(each.qis).map(readable),
      ...Object.values(each.sensitive).map(counted),
    ]);
    const shown = view.classes.length < view.n_classes ? `; the first ${view.classes.length} rows` : "";
    const said = `${clock(view.start)} to ${clock(view.end)}: ${view.n_published} of ${view.n_records} records in ${view.n_classes} rows${shown}`;
    parts.push(table(title, said, ["vehicles", ...names], rows));
  }
  return make("article", parts);
}

async function records() {
  const views = await getJson("/map/records");
  $("records").replaceChildren(...views.map(windowOf));
}

async function tolls() {
  const lang = document.querySelector("input[name=lang]:checked").value;
  const { data, privacy_protection: how, category } = await getJson(`${TOLLS}?lang=${lang}&limit=50`);
  $("toll-said").textContent = data.length ? "" : "No exits have been published yet: a window is published when it ends.";
  const rows = data.map((row) => [row.section_region, row.time_period, `${row.truck_count ?? "–"}`, `${row.avg_toll ?? "–"}`]);
  $("toll-rows").replaceChildren(table("KACA", `${category}, k = ${how.k_value}`, ["region", "time", "trucks", "mean toll"], rows));
}

const LOADS = { records, tolls };

/** Load what a view shows, again and again while it is open. */
export class Views {
  constructor(onFail) {
    this.onFail = onFail;
    for (const input of document.querySelectorAll("input[name=lang]")) {
      input.addEventListener("change", () => this.load());
    }
  }

  /** Show a view; `hasRecords`: whether there are streams of records. */
  show(view, hasRecords) {
    clearInterval(this.timer);
    this.view = view;
    if (!LOADS[view]) return;
    $("no-records").hidden = hasRecords;
    if (!hasRecords) return;
    this.load();
    this.timer = setInterval(() => this.load(), AGAIN_MS);
  }

  load() {
    const view = this.view;
    LOADS[view]?.().catch((error) => {
      if (view === "tolls" && error.message === "404") $("toll-said").textContent = "No stream of toll exits is declared here.";
      else if (error.name !== "Error") this.onFail(error); // asked again in some seconds
    });
  }
}
