"""Geo-indistinguishable traces, with the budget of a window: independent noise, and predictive.

References
----------
.. [1] M. Andrés et al., "Geo-indistinguishability: Differential Privacy for Location-Based
   Systems", CCS 2013 (planar Laplace).
.. [2] K. Chatzikokolakis, C. Palamidessi, M. Stronati, "A Predictive Differentially-Private
   Mechanism for Mobility Traces", PETS 2014.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.region_density import CLOSE, MOST_ROUNDS
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from experiments.stream_errors import Published, Stream

_TEST_SHARE = 0.25
"""Share of the budget for tests whether the last place is still good enough."""
_N_FRESH = 3
"""Fresh places in a window of the predictive mechanism, at most."""
_N_DRAWN = 4000
"""Noisy places that are drawn in each cell to know what the noise does."""
_AROUND = 3
"""Cells around the grid in which noisy places are told apart."""


def planar_laplace(
    stream: Stream, x: FloatArray, y: FloatArray, scale_m: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return places, in cells, with noise of which the density falls by e within `scale_m` [1]_."""
    radius, angle = rng.gamma(2.0, scale_m, x.shape), rng.uniform(0.0, 2 * np.pi, x.shape)
    return (
        x + radius * np.cos(angle) / stream.width_m,
        y + radius * np.sin(angle) / stream.height_m,
    )


class Noisy(NamedTuple):
    """Published places in cells, shape (steps, devices), and the scale of their noise."""

    x: FloatArray
    y: FloatArray
    scale_m: float
    fresh: BoolArray
    """Where noise was drawn anew; elsewhere a place is repeated."""

    def __repr__(self) -> str:
        """Reveal no place."""
        return "Noisy(...)"


def independent(stream: Stream, *, scale_m: float, rng: np.random.Generator) -> Noisy:
    """Return places with noise of their own [1]_."""
    x, y = planar_laplace(stream, stream.x, stream.y, scale_m, rng)
    return Noisy(x, y, scale_m, stream.cell >= 0)


def predicted(stream: Stream, *, unit_m: float, w: int, rng: np.random.Generator) -> Noisy:
    """Return places of the predictive mechanism [2]_.

    The last published place is published again while a noisy test says that it is near. At most
    `_N_FRESH` fresh ones fall into any w steps, so that the budget of a window suffices.

    Parameters
    ----------
    unit_m
        Distance within which all w places of a window are together at most e times as likely from
        one trace as from another one.
    """
    fresh_m = unit_m * _N_FRESH / (1 - _TEST_SHARE)
    test_m = unit_m * w / _TEST_SHARE
    shape = stream.cell.shape
    x, y = np.zeros(shape), np.zeros(shape)
    fresh, here = np.zeros(shape, np.bool_), stream.cell >= 0
    for t in range(shape[0]):
        far_m = np.full(shape[1], np.inf)
        if t:
            x[t], y[t] = x[t - 1], y[t - 1]
            east, north = x[t] - stream.x[t], y[t] - stream.y[t]
            known = fresh[:t].any(axis=0)
            far_m[known] = np.hypot(east * stream.width_m, north * stream.height_m)[known]
        recent = fresh[max(0, t - w + 1) : t].sum(axis=0)
        is_far = far_m > fresh_m + rng.laplace(0.0, test_m, shape[1])
        new = fresh[t] = here[t] & is_far & (recent < _N_FRESH)
        x[t, new], y[t, new] = planar_laplace(
            stream, stream.x[t, new], stream.y[t, new], fresh_m, rng
        )
    return Noisy(x, y, fresh_m, fresh)


def read_noisy(stream: Stream, noisy: Noisy, rng: np.random.Generator) -> Published:
    """Return densities with the noise undone, and tracks of the nearest cells.

    The density of all steps is found by expectation-maximization (iterative Bayesian update); each
    place is then spread over the cells that it can be from.
    """
    side, here = stream.side, stream.cell >= 0
    channel = _channel(stream, noisy.scale_m, rng)
    wide = _bins(noisy.x, noisy.y, side)
    density = np.full(side * side, 1 / side**2)
    n_of = np.bincount(wide[here], minlength=channel.shape[1])
    for _ in range(MOST_ROUNDS):
        back = _backwards(channel, density)
        new = back @ n_of / max(n_of.sum(), 1)
        moved, density = float(np.abs(new - density).sum()), new
        if moved < CLOSE:
            break
    back = _backwards(channel, density)
    n_at = np.stack(
        [
            back @ np.bincount(now[there], minlength=channel.shape[1])
            for now, there in zip(wide, here, strict=True)
        ]
    )
    column, row = (np.clip(np.floor(at), 0, side - 1).astype(np.int64) for at in noisy[:2])
    return Published(n_at, np.where(here, row * side + column, -1))


def _backwards(channel: FloatArray, density: FloatArray) -> FloatArray:
    """Return the share of each cell in a place of each bin, shape (cells, bins)."""
    joint = channel * density[:, None]
    return np.asarray(joint / np.maximum(joint.sum(axis=0), 1e-300))


def _channel(stream: Stream, scale_m: float, rng: np.random.Generator) -> FloatArray:
    """Return the share of the noisy places of each cell in each bin, shape (cells, bins)."""
    side = stream.side
    row, column = np.divmod(np.repeat(np.arange(side * side), _N_DRAWN), side)
    x, y = column + rng.random(len(column)), row + rng.random(len(row))
    bins = _bins(*planar_laplace(stream, x, y, scale_m, rng), side).reshape(side * side, _N_DRAWN)
    n_bins = (side + 2 * _AROUND) ** 2
    # Half a place more: a bin that was not drawn is improbable, not impossible.
    drawn = np.stack([np.bincount(each, minlength=n_bins) for each in bins]) + 0.5 / n_bins
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def _bins(x: FloatArray, y: FloatArray, side: int) -> IntArray:
    width = side + 2 * _AROUND
    column, row = (np.clip(np.floor(at) + _AROUND, 0, width - 1).astype(np.int64) for at in (x, y))
    found: IntArray = row * width + column
    return found
