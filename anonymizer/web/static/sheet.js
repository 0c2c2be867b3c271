// A picture over the map that a worker paints, so that the page answers while it is painted.

const L = window.L;

/** Paints pictures in a worker; each sheet of a map asks it for its own. */
export class Painter {
  constructor() {
    this.worker = new Worker("/map/static/painter.js", { type: "module" });
    this.sheets = new Map();
    /** Expected devices at a junction where the colours end. */
    this.top = 1;
    this.worker.addEventListener("message", ({ data }) => {
      this.top = data.top;
      this.sheets.get(data.sheet)._arrived(data);
    });
  }

  tell(kind, what, transfer = []) {
    this.worker.postMessage({ kind, ...what }, transfer);
  }
}

/**
 * A canvas that Leaflet moves and scales along.
 *
 * It reaches beyond the window. While the map moves, the picture moves with it and is not painted
 * anew, and neither is it afterwards where it still covers the window. Else the old picture stays,
 * scaled, until the new one is there: picture and place change together.
 */
export const Sheet = L.Renderer.extend({
  options: { padding: 0.15 },
  initialize(options) {
    L.Renderer.prototype.initialize.call(this, options);
    options.painter.sheets.set(options.name, this);
  },
  _initContainer() {
    this._container = document.createElement("canvas");
    this._container.setAttribute("aria-hidden", "true");
    this._ink = this._container.getContext("bitmaprenderer");
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
    return this._fits(this._zoom, this._origin)
      && this._bounds.contains(L.bounds(corner, corner.add(this._map.getSize())));
  },
  _fits(zoom, origin) {
    return zoom === this._map.getZoom() && origin?.equals(this._map.getPixelOrigin());
  },
  _update() {
    if (!this._map._animatingZoom && !(this._bounds && this._covers())) this.paint();
  },
  _reset() {
    this._update();
    if (this._bounds) this._updateTransform(this._map.getCenter(), this._map.getZoom());
  },
  _updateTransform(center, zoom) {
    if (this._bounds) L.Renderer.prototype._updateTransform.call(this, center, zoom);
  },
  /** Paint with the next picture of the screen, however often this is called before it. */
  paint() {
    this._stale = true;
    // The worker is busy with an empty picture for as long as with the first one that matters.
    this._begun ||= this.options.hasContent();
    if (this._asked || !this._begun) return;
    this._next ??= requestAnimationFrame(() => {
      this._next = null;
      if (this._map && !this._moving && !this._map._animatingZoom) this._ask();
    });
  },
  _ask() {
    this._stale = false;
    const map = this._map;
    const size = map.getSize();
    const pad = this.options.padding;
    const min = map.containerPointToLayerPoint(size.multiplyBy(-pad)).round();
    const bounds = L.bounds(min, min.add(size.multiplyBy(1 + 2 * pad)).round());
    const [zoom, origin] = [map.getZoom(), map.getPixelOrigin()];
    this._asked = { bounds, zoom, origin, center: map.getCenter() };
    const { x: width, y: height } = bounds.getSize();
    const corner = origin.add(min);
    this.options.painter.tell("paint", {
      sheet: this.options.name, zoom, width, height, dx: -corner.x, dy: -corner.y, ratio: devicePixelRatio || 1,
    });
  },
  _arrived({ bitmap }) {
    const { bounds, zoom, origin, center } = this._asked;
    this._asked = null;
    if (!this._map) return bitmap.close();
    if (this._map._animatingZoom || !this._fits(zoom, origin)) {
      bitmap.close();
      return this.paint();
    }
    Object.assign(this, { _bounds: bounds, _zoom: zoom, _origin: origin, _center: center });
    const canvas = this._container;
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
      Object.assign(canvas, { width: bitmap.width, height: bitmap.height });
    }
    this._ink.transferFromImageBitmap(bitmap);
    const size = bounds.getSize();
    Object.assign(canvas.style, { width: `${size.x}px`, height: `${size.y}px` });
    L.DomUtil.setPosition(canvas, bounds.min);
    // The map may have gone on while this was painted.
    if (this._stale || !this._covers()) this.paint();
  },
});
