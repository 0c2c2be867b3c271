// Plane geometry in Web Mercator at zoom 0, where the world is 256 wide, and a ramp of colours.

const WORLD = 256;
const EARTH_M = 40_075_016.686;

/** Return x and y of nodes given as lat, lon in millionths of a degree. */
export function project(places) {
  const n = places.length / 2;
  const x = new Float64Array(n);
  const y = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const sine = Math.sin((places[2 * i] / 1e6) * (Math.PI / 180));
    x[i] = WORLD * (places[2 * i + 1] / 1e6 / 360 + 0.5);
    y[i] = WORLD * (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI));
  }
  return { x, y };
}

/** Return longitude and latitude in degrees of a place in the plane. */
export function unproject(x, y) {
  const lat = Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / WORLD))) * (180 / Math.PI);
  return [(x / WORLD - 0.5) * 360, lat];
}

/** Return how many metres one unit is at a height y. */
export function metresAt(y) {
  return EARTH_M / WORLD / Math.cosh(Math.PI * (1 - (2 * y) / WORLD));
}

/** Return the convex hull of nodes as indices, anticlockwise (Andrew's monotone chain). */
export function hull(nodes, { x, y }) {
  const order = [...nodes].sort((a, b) => x[a] - x[b] || y[a] - y[b]);
  if (order.length < 3) return order;
  const turn = (o, a, b) => (x[a] - x[o]) * (y[b] - y[o]) - (y[a] - y[o]) * (x[b] - x[o]);
  const half = (sequence) => {
    const chain = [];
    for (const v of sequence) {
      while (chain.length > 1 && turn(chain.at(-2), chain.at(-1), v) <= 0) chain.pop();
      chain.push(v);
    }
    chain.pop();
    return chain;
  };
  return [...half(order), ...half(order.reverse())];
}

/** Return the distance from a point to the hull: 0 inside. */
export function distance(px, py, outline, { x, y }) {
  let inside = outline.length > 2;
  let nearest = Infinity;
  for (let i = 0; i < outline.length; i++) {
    const a = outline[i];
    const b = outline[(i + 1) % outline.length];
    const dx = x[b] - x[a];
    const dy = y[b] - y[a];
    if (dx * (py - y[a]) - dy * (px - x[a]) < 0) inside = false;
    const along = dx || dy ? ((px - x[a]) * dx + (py - y[a]) * dy) / (dx * dx + dy * dy) : 0;
    const t = Math.max(0, Math.min(1, along));
    nearest = Math.min(nearest, Math.hypot(px - x[a] - t * dx, py - y[a] - t * dy));
  }
  return inside ? 0 : nearest;
}

/** Roads by node, in compressed sparse rows: those of v are other[first[v]] to other[first[v+1]-1]. */
export function rowsOf(roads, n) {
  const first = new Int32Array(n + 1);
  for (let i = 0; i < roads.length; i += 3) {
    first[roads[i] + 1]++;
    first[roads[i + 1] + 1]++;
  }
  for (let v = 0; v < n; v++) first[v + 1] += first[v];
  const other = new Int32Array(first[n]);
  const next = first.slice(0, n);
  for (let i = 0; i < roads.length; i += 3) {
    other[next[roads[i]]++] = roads[i + 1];
    other[next[roads[i + 1]]++] = roads[i];
  }
  return { first, other };
}

/** Return `n` colours between the given ones (hexadecimal). */
export function steps(stops, n) {
  const rgb = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
  return Array.from({ length: n }, (_, step) => {
    const at = (step / (n - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = rgb[low].map((c, i) => Math.round(c + (at - low) * (rgb[low + 1][i] - c)));
    return `rgb(${mixed.join(" ")})`;
  });
}
