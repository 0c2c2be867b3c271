"""Tracking attack on positions with names and planar Laplace noise (geo-indistinguishability).

The adversary knows one true position of a device, and then the noisy places, the network and how
devices move: as in `tracking`, so that both can be compared. When places are published first, the
target may be behind any name; each is as likely as its place is, given where the target can be, in
proportion to how likely that place is anyway. Within a name, a forward filter follows the device.

References
----------
.. [1] M. Andrés, N. Bordenabe, K. Chatzikokolakis, C. Palamidessi, "Geo-indistinguishability:
   differential privacy for location-based systems", CCS 2013.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.audit.mathematics.evidence import SLIP
from anonymizer.audit.mathematics.masses import FREE, NEGLECTED, Masses, moved_on, only
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.domain.arrays import FloatArray, IntArray

MOST_NAMES = 8
"""Names that are followed for a target, the likeliest ones; places of the others are not used."""
_TINY = 1e-300


class NoisyPlaces(NamedTuple):
    """Published places, in metres."""

    x_m: FloatArray
    y_m: FloatArray
    """`x_m`, `y_m`: place of each name published in each step, NaN for none, shape (steps,
    names)."""
    scale_m: float
    """The probability of a place falls by a factor of e within this distance."""
    node_x_m: FloatArray
    node_y_m: FloatArray
    """`node_x_m`, `node_y_m`: the nodes, shape (nodes,)."""

    def likelihood(self, step: int, name: int) -> FloatArray:
        """Return how likely a published place is from each node, up to a factor, shape (nodes,)."""
        dx, dy = self.x_m[step, name] - self.node_x_m, self.y_m[step, name] - self.node_y_m
        distance = np.hypot(dx, dy) / self.scale_m
        # The nearest node has 1: exact places are infinitely unlikely everywhere else.
        found: FloatArray = np.exp(distance.min() - distance)
        return found


def track_noisy(
    places: NoisyPlaces, motion: Motion, *, start: IntArray, at: IntArray
) -> FloatArray:
    """Return the probability of each node for each target, shape (targets, len(at), nodes).

    Parameters
    ----------
    start
        Known node of each target at step 0, shape (targets,).
    at
        Steps at which to return the belief, rising, shape (n,).

    Notes
    -----
    The adversary could do more: names are weighed once, and what was published before step 0 is not
    used. A share `SLIP` of each belief is anywhere, so that no place can contradict the whole of
    it. O(steps * targets * `MOST_NAMES` * nodes).
    """
    n_nodes = len(motion.leave)
    belief = np.zeros((len(start), len(at), n_nodes))
    targets = [_at(motion, node) for node in start.tolist()]
    are_named = False
    for t in range(int(at.max()) + 1):
        if t:
            targets = [Masses(*moved_on(motion, each, np.ones(1, bool))) for each in targets]
        names = np.flatnonzero(~np.isnan(places.x_m[t]))
        if are_named:
            targets = [_read(each, places, motion, t, names) for each in targets]
        elif len(names):
            targets = _named(targets, places, motion, t, names)
            are_named = True
        for k in np.flatnonzero(at == t).tolist():
            belief[:, k] = [_by_node(each, motion) for each in targets]
    found: FloatArray = belief / belief.sum(axis=2, keepdims=True)
    return found


def _at(motion: Motion, node: int) -> Masses:
    row, state, share = motion.states_at(np.array([node]))
    return Masses(np.zeros(len(row), np.int32), np.full(len(row), FREE, np.int32), state, share)


def _by_node(masses: Masses, motion: Motion) -> FloatArray:
    n_nodes = len(motion.leave)
    return np.bincount(motion.node_of[masses.state], masses.mass, n_nodes).astype(np.float64)


def _read(
    masses: Masses, places: NoisyPlaces, motion: Motion, step: int, names: IntArray
) -> Masses:
    """Return the masses of a target after the places of a step."""
    parts = []
    for life in np.unique(masses.life).tolist():
        part = only(masses, masses.life == life)
        if life in names:
            part = _weighed(part, places.likelihood(step, life), motion, float(part.mass.sum()))
        parts.append(part)
    return _joined(parts)


def _named(
    targets: list[Masses], places: NoisyPlaces, motion: Motion, step: int, names: IntArray
) -> list[Masses]:
    """Return the masses of each target when it takes one of the names."""
    by_node = np.stack([_by_node(each, motion) for each in targets])
    expected = by_node / by_node.sum(axis=1, keepdims=True)
    expected = (1 - SLIP) * expected + SLIP * motion.density
    ratio = np.empty((len(targets), len(names)))
    for i, name in enumerate(names.tolist()):
        likelihood = places.likelihood(step, name)
        ratio[:, i] = (expected @ likelihood) / max(float(motion.density @ likelihood), _TINY)
    ratio /= np.maximum(ratio.sum(axis=1, keepdims=True), _TINY)
    found = []
    for free, likely in zip(targets, ratio, strict=True):
        followed = np.argsort(-likely, kind="stable")[:MOST_NAMES]
        others = max(1.0 - float(likely[followed].sum()), 0.0)
        parts = [free._replace(mass=free.mass / free.mass.sum() * others)]
        for i in followed.tolist():
            name = int(names[i])
            part = free._replace(life=np.full(len(free.life), name, np.int32))
            weight = places.likelihood(step, name)
            parts.append(_weighed(part, weight, motion, float(likely[i])))
        found.append(_joined(parts))
    return found


def _weighed(part: Masses, likelihood: FloatArray, motion: Motion, total: float) -> Masses:
    """Return the masses of one name after its place; their sum is `total`."""
    before = float(part.mass.sum())
    moved = (1 - SLIP) * part.mass / before * likelihood[motion.node_of[part.state]]
    row, state, share = motion.states_at(np.arange(len(motion.leave)))
    anywhere = SLIP * (motion.density * likelihood)[row] * share
    mass = np.concatenate([moved, anywhere])
    state = np.concatenate([part.state, state])
    found = Masses(
        np.zeros(len(mass), np.int32),
        np.full(len(mass), part.life[0], np.int32),
        state,
        mass * (total / max(float(mass.sum()), _TINY)),
    )
    return only(found, found.mass > NEGLECTED)


def _joined(parts: list[Masses]) -> Masses:
    """Return masses by rising life."""
    parts = sorted(parts, key=lambda part: int(part.life[0]) if len(part.life) else FREE)
    owner, life, state, mass = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    found = Masses(owner, life, state, mass)
    return only(found, found.mass > NEGLECTED)
