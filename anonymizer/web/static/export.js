// Files of what is seen: a picture of the map, and the published regions as GeoJSON.

import { unproject } from "./geometry.js";

/** Let the reader save content under a name. */
export function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Return a picture of canvases as they lie in an element. */
export async function pngOf(element, canvases, ground) {
  const frame = element.getBoundingClientRect();
  const ratio = devicePixelRatio || 1;
  const whole = new OffscreenCanvas(frame.width * ratio, frame.height * ratio);
  const ink = whole.getContext("2d");
  ink.fillStyle = ground;
  ink.fillRect(0, 0, whole.width, whole.height);
  for (const canvas of canvases) {
    const at = canvas.getBoundingClientRect();
    ink.drawImage(canvas, (at.x - frame.x) * ratio, (at.y - frame.y) * ratio, at.width * ratio, at.height * ratio);
  }
  return whole.convertToBlob({ type: "image/png" });
}

/** Return regions as features: their roads as lines, or their nodes as points if it has none. */
export function geoJson(regions, { x, y }) {
  const place = (v) => unproject(x[v], y[v]).map((degrees) => Number(degrees.toFixed(6)));
  const features = regions.map(({ k, n, age, told, nodes, ended, roads }) => {
    const lines = Array.from({ length: roads.length / 2 }, (_, i) => [place(roads[2 * i]), place(roads[2 * i + 1])]);
    return {
      type: "Feature",
      properties: { k, pseudonyms: n, nodes: nodes.length, seen_for_s: age, published_s_ago: told, ended_s_ago: ended },
      geometry: lines.length
        ? { type: "MultiLineString", coordinates: lines }
        : { type: "MultiPoint", coordinates: nodes.map(place) },
    };
  });
  return { type: "FeatureCollection", features };
}
