// The density map: how many devices are at each junction and its neighbours, and the k of that.

import { palette } from "./charts.js";
import { steps } from "./geometry.js";

const NEAR_PX = 14;

const $ = (id) => document.getElementById(id);

export class Density {
  constructor(map, about) {
    this.map = map;
    this.rule = about.rule;
    this.raw = about.raw;
    this.near = new Map();
    this.layOut();
  }

  /** Lay out the rule, from sparse to dense, each band with its colour. */
  layOut() {
    const colours = steps(palette("--ramp"), Math.max(this.rule.length, 2));
    this.map.painter.tell("bands", { bands: this.rule.map(({ below }, i) => ({ below, colour: colours[i] })) });
    let from = 0;
    $("rule").querySelector("tbody").replaceChildren(...this.rule.map(({ below, k, published }, i) => {
      const row = document.createElement("tr");
      row.innerHTML = "<th scope=row><i></i><span></span></th><td></td><td>–</td>";
      row.querySelector("i").style.background = colours[i];
      row.querySelector("span").textContent = below === null ? `${from} and more` : `below ${below}`;
      row.children[1].textContent = k === published ? k : `${k} (paper: ${published})`;
      from = below;
      return row;
    }));
    $("density-secret").hidden = this.raw;
    $("junction").hidden = !this.raw;
  }

  show(shown) {
    this.shown = shown;
    this.map.showDensity(shown ? { pick: (point, reach) => this.pick(point, reach) } : null);
    if (!shown) return;
    this.chosen = null;
  }

  /** Show the density of a moment: nodes, and how many devices are at and around each. */
  take([nodes, counts]) {
    this.near = new Map(nodes.map((v, i) => [v, counts[i]]));
    const n = this.rule.map(() => 0);
    for (const count of counts) n[this.bandOf(count)]++;
    const rows = $("rule").querySelectorAll("tbody tr");
    n.forEach((junctions, i) => (rows[i].children[2].textContent = junctions));
    this.map.painter.tell("density", { density: [nodes, counts] });
    this.map.paint();
    this.say();
  }

  bandOf(density) {
    return this.rule.findIndex(({ below }) => below === null || density < below);
  }

  /** Choose the junction nearest to a point of the window. */
  pick(point, reach = NEAR_PX) {
    const { map, at } = this.map;
    const place = map.containerPointToLayerPoint(point).add(map.getPixelOrigin());
    const scale = 2 ** map.getZoom();
    let [best, found] = [reach, null];
    for (const v of this.near.keys()) {
      const far = Math.hypot(at.x[v] * scale - place.x, at.y[v] * scale - place.y);
      if (far < best) [best, found] = [far, v];
    }
    this.chosen = found;
    this.map.painter.tell("junction", { junction: found });
    this.map.paint();
    this.say();
  }

  /** Say the density of the chosen junction, and why its k is what it is. */
  say() {
    if (this.chosen == null) {
      $("junction").textContent = "Choose a junction on the map: a click, or Enter for the one in the middle.";
      return;
    }
    const density = this.near.get(this.chosen) ?? 0;
    const band = this.bandOf(density);
    const { below, k } = this.rule[band];
    const why = below === null ? `density ${density}, at least ${this.rule[band - 1]?.below ?? 0}` : `density ${density}, below ${below}`;
    $("junction").textContent = `The junction in the ring: ${why}, so k = ${k}.`;
  }
}
