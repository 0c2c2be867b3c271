"""k-anonymous streams by clusters: CASTLE and FADS.

Each position is a tuple of its own. It is published within a bounded delay with the ranges of a
cluster of tuples of at least k devices; no name goes with it. These are reproductions from the
papers.

References
----------
.. [1] J. Cao, B. Carminati, E. Ferrari, K.-L. Tan, "CASTLE: Continuously Anonymizing Data Streams",
   IEEE TDSC 8(3), 2011.
.. [2] K. Guo, Q. Zhang, "Fast clustering-based anonymization approaches with time constraints for
   data streams" (FADS), Knowledge-Based Systems 46, 2013.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, IntArray
from experiments.stream_errors import Published, Stream

MOST_OPEN = 50
"""Clusters of CASTLE that are not yet published, at most (beta)."""
_RECENT = 100
"""Published clusters whose loss a good cluster does not exceed on average (mu)."""
_REUSED = 100
"""Published clusters that may be used again, at most."""


class Boxes(NamedTuple):
    """Published ranges of each tuple, shape (tuples, 4): least and most x, then y; NaN for none."""

    step: IntArray
    range_of: FloatArray


def tuples_of(stream: Stream, rng: np.random.Generator) -> tuple[IntArray, IntArray, FloatArray]:
    """Return step, device and place of each position, as they come: in random order in a step."""
    step, device = np.nonzero(stream.cell >= 0)
    order = np.lexsort((rng.random(len(step)), step))
    step, device = step[order], device[order]
    at = np.stack([stream.x[step, device], stream.y[step, device]], axis=1) / stream.side
    return step, device, at


def castle(stream: Stream, *, k: int, delay: int, rng: np.random.Generator) -> Boxes:
    """Return what CASTLE publishes; a tuple waits for at most `delay` others."""
    step, device, at = tuples_of(stream, rng)
    return Boxes(step, _castle(device, at, k, delay, int(rng.integers(2**31))))


def fads(stream: Stream, *, k: int, delay: int, rng: np.random.Generator) -> Boxes:
    """Return what FADS publishes; a tuple waits for at most `delay` others."""
    step, device, at = tuples_of(stream, rng)
    return Boxes(step, _fads(device, at, k, delay))


def read_boxes(boxes: Boxes, stream: Stream) -> Published:
    """Spread each tuple evenly over its ranges."""
    side = stream.side
    n_at = np.zeros((len(stream.cell), side * side))
    shown = ~np.isnan(boxes.range_of[:, 0])
    ranges = boxes.range_of[shown] * side
    shares = [_shares(ranges[:, 2 * axis], ranges[:, 2 * axis + 1], side) for axis in range(2)]
    of_step = boxes.step[shown]
    for t in np.unique(of_step).tolist():
        now = of_step == t
        n_at[t] = np.einsum("ny,nx->yx", shares[1][now], shares[0][now]).ravel()
    return Published(n_at)


def _shares(low: FloatArray, high: FloatArray, side: int) -> FloatArray:
    """Return the share of each range in each row of cells, shape (n, side)."""
    at = np.arange(side)
    high = np.maximum(high, low + 1e-9)
    inside = np.minimum(at + 1, high[:, None]) - np.maximum(at, low[:, None])
    inside = np.maximum(inside, 0.0)
    return np.asarray(inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-300))


@kernel
def _covers(box: FloatArray, x: float, y: float) -> bool:
    return bool(box[0] <= x <= box[1] and box[2] <= y <= box[3])


@kernel
def _loss(box: FloatArray) -> float:
    return float(box[1] - box[0] + box[3] - box[2]) / 2


@kernel
def _grown(box: FloatArray, x: float, y: float) -> FloatArray:
    found = box.copy()
    found[0], found[1] = min(found[0], x), max(found[1], x)
    found[2], found[3] = min(found[2], y), max(found[3], y)
    return found


@kernel
def _reusable(kept: FloatArray, n_kept: int, x: float, y: float) -> int:
    """Return the kept cluster of least loss that covers a tuple, negative for none."""
    best, least = -1, np.inf
    for c in range(min(n_kept, len(kept))):
        if _covers(kept[c], x, y) and _loss(kept[c]) < least:
            best, least = c, _loss(kept[c])
    return best


@kernel
def _nearest(member: IntArray, device: IntArray, at: FloatArray, origin: int, k: int) -> IntArray:
    """Return the origin and its nearest tuples of k - 1 other devices; fewer if there are."""
    far = np.empty(len(member))
    for i in range(len(member)):
        far[i] = np.abs(at[member[i]] - at[origin]).sum()
    chosen = np.empty(k, np.int64)
    chosen[0] = origin
    n = 1
    for i in np.argsort(far):
        other = member[i]
        is_new = True
        for j in range(n):
            if device[chosen[j]] == device[other]:
                is_new = False
        if is_new and n < k:
            chosen[n] = other
            n += 1
        if n == k:
            break
    return chosen[:n]


@kernel
def _box(member: IntArray, at: FloatArray) -> FloatArray:
    found = np.array([np.inf, -np.inf, np.inf, -np.inf])
    for i in member:
        found = _grown(found, at[i, 0], at[i, 1])
    return found


@kernel
def _n_devices(member: IntArray, device: IntArray) -> int:
    return len(np.unique(device[member]))


@kernel
def _fads(device: IntArray, at: FloatArray, k: int, delay: int) -> FloatArray:
    """FADS: the oldest tuple is published with its nearest ones, or with a cluster used before."""
    n = len(device)
    shown = np.full((n, 4), np.nan)
    waits = np.zeros(n, np.bool_)
    kept = np.zeros((_REUSED, 4))
    n_kept, oldest = 0, 0
    for now in range(n + delay):
        if now < n:
            waits[now] = True
        while oldest < n and oldest <= now - delay:
            if not waits[oldest]:
                oldest += 1
                continue
            window = oldest + np.flatnonzero(waits[oldest : min(now + 1, n)])
            group = _nearest(window, device, at, oldest, k)
            box = _box(group, at)
            again = _reusable(kept, n_kept, at[oldest, 0], at[oldest, 1])
            if again >= 0 and (len(group) < k or _loss(kept[again]) < _loss(box)):
                shown[oldest] = kept[again]
                waits[oldest] = False
            elif len(group) < k:
                waits[oldest] = False  # suppressed
            else:
                for i in group:
                    shown[i] = box
                    waits[i] = False
                kept[n_kept % len(kept)] = box
                n_kept += 1
    return shown


@kernel
def _castle(device: IntArray, at: FloatArray, k: int, delay: int, seed: int) -> FloatArray:
    """CASTLE: a tuple joins the open cluster that grows least; the oldest decides what goes out."""
    np.random.seed(seed)  # noqa: NPY002  numba's
    n = len(device)
    shown = np.full((n, 4), np.nan)
    cluster = np.full(n, -1)  # negative: published
    box = np.zeros((MOST_OPEN, 4))
    size = np.zeros(MOST_OPEN, np.int64)
    kept = np.zeros((_REUSED, 4))
    recent = np.zeros(_RECENT)
    n_kept, n_recent, oldest = 0, 0, 0
    for now in range(n + delay):
        if now < n:
            c = _best_open(box, size, at[now], _usual(recent, n_recent, 0.0))
            box[c] = (
                _grown(box[c], at[now, 0], at[now, 1]) if size[c] else _box(np.array([now]), at)
            )
            size[c] += 1
            cluster[now] = c
        while oldest < n and oldest <= now - delay:
            if cluster[oldest] < 0:
                oldest += 1
                continue
            window = oldest + np.flatnonzero(cluster[oldest : min(now + 1, n)] >= 0)
            c = cluster[oldest]
            member = window[cluster[window] == c]
            if _n_devices(member, device) < k:
                again = _reusable(kept, n_kept, at[oldest, 0], at[oldest, 1])
                n_larger = np.sum(size > size[c])
                is_outlier = n_larger > np.sum(size > 0) / 2
                if again >= 0 or is_outlier or _n_devices(window, device) < k:
                    if again >= 0:
                        shown[oldest] = kept[again]
                    cluster[oldest] = -1
                    size[c] -= 1
                    continue
                member = _merged(member, window, cluster, box, size, device, k)
            for part in _parts(member, device, at, k):
                ranges = _box(part, at)
                for i in part:
                    shown[i] = ranges
                    size[cluster[i]] -= 1
                    cluster[i] = -1
                n_kept += _keep(kept, n_kept, _usual(recent, n_recent, 1.0), ranges)
                recent[n_recent % _RECENT] = _loss(ranges)
                n_recent += 1
    return shown


@kernel
def _usual(recent: FloatArray, n_recent: int, otherwise: float) -> float:
    """Return the mean loss of the last published clusters."""
    return float(recent[: min(n_recent, _RECENT)].mean()) if n_recent else otherwise


@kernel
def _keep(kept: FloatArray, n_kept: int, usual: float, ranges: FloatArray) -> int:
    """Keep a cluster of no more than the usual loss to be used again; return 1 if it is kept."""
    if _loss(ranges) > usual:
        return 0
    kept[n_kept % len(kept)] = ranges
    return 1


@kernel
def _best_open(box: FloatArray, size: IntArray, at: FloatArray, usual: float) -> int:
    """Return the open cluster for a tuple; an empty one where all would lose more than usual."""
    best, least, empty = -1, np.inf, -1
    for c in range(len(size)):
        if not size[c]:
            empty = c
            continue
        growth = _loss(_grown(box[c], at[0], at[1])) - _loss(box[c])
        if growth < least or (growth == least and size[c] < size[best]):
            best, least = c, growth
    is_good = best >= 0 and _loss(_grown(box[best], at[0], at[1])) <= usual
    return best if is_good or empty < 0 else empty


@kernel
def _merged(  # noqa: PLR0917  kernels take no keywords
    member: IntArray,
    window: IntArray,
    cluster: IntArray,
    box: FloatArray,
    size: IntArray,
    device: IntArray,
    k: int,
) -> IntArray:
    """Return the members of a cluster and of the nearest others, of k devices in all."""
    own = cluster[member[0]]
    ranges = box[own].copy()
    used = np.zeros(len(size), np.bool_)
    used[own] = True
    while _n_devices(member, device) < k:
        best, least = -1, np.inf
        for c in range(len(size)):
            if used[c] or not size[c]:
                continue
            low, high = np.minimum(ranges, box[c]), np.maximum(ranges, box[c])
            loss = (high[1] - low[0] + high[3] - low[2]) / 2
            if loss < least:
                best, least = c, loss
        used[best] = True
        low, high = np.minimum(ranges, box[best]), np.maximum(ranges, box[best])
        ranges[0], ranges[1], ranges[2], ranges[3] = low[0], high[1], low[2], high[3]
        member = np.concatenate((member, window[cluster[window] == best]))
    return member


@kernel
def _parts(member: IntArray, device: IntArray, at: FloatArray, k: int) -> list[IntArray]:
    """Return parts of a cluster, of k devices each; what is left joins the part it enlarges least.

    A part grows around a random tuple.
    """
    parts = [member[:0]]
    left = member
    while _n_devices(left, device) >= 2 * k:
        group = _nearest(left, device, at, left[np.random.randint(len(left))], k)  # noqa: NPY002
        parts.append(np.sort(group))
        rest = np.ones(len(left), np.bool_)
        for i in range(len(left)):
            for other in group:
                if left[i] == other:
                    rest[i] = False
        left = left[rest]
    parts.append(left)
    return parts[1:]
