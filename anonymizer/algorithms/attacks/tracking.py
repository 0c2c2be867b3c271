"""The tracking attack: the place of a device some minutes after one known position.

The adversary knows the node of a device at step 0, the release from that step on, the network, and
a motion model learned from other devices. A forward filter keeps the probability of each state of
the target: the life that it is in, or none, and a state of the motion model (Hoh and Gruteser
follow paths through unnamed positions in this way [1]_, Wiedersheim et al. through pseudonyms that
change [2]_; Shokri et al. measure location privacy as the error of such an inference [3]_). What is
a life, and what its regions say, is in `lives`; how likely a step is in each state, in `evidence`.

An adversary who also knows what was released later, or where the device was later, looks back: a
smoother goes through the same states once more, from the last step to the first.

References
----------
.. [1] B. Hoh, M. Gruteser, "Protecting location privacy through path confusion", SecureComm 2005.
.. [2] B. Wiedersheim, Z. Ma, F. Kargl, P. Papadimitratos, "Privacy in inter-vehicular networks: why
   simple pseudonym change is not enough", WONS 2010.
.. [3] R. Shokri, G. Theodorakopoulos, J.-Y. Le Boudec, J.-P. Hubaux, "Quantifying location
   privacy", IEEE Symposium on Security and Privacy, 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.evidence import SLIP, Evidence, evidence_of, weighed
from anonymizer.algorithms.attacks.lives import Lives
from anonymizer.algorithms.attacks.masses import (
    FREE,
    NEGLECTED,
    Masses,
    moved_back,
    moved_on,
    only,
)
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

_AT_ONCE = 5
"""Targets that are smoothed together: the masses of all their steps are kept."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tracks:
    """What the adversary believes about each target.

    Attributes
    ----------
    belief
        Probability of each node at each of the steps asked for, shape (targets, steps, nodes).
    neglected
        Probability of the states that were dropped, summed over all steps, shape (targets,).
    """

    belief: FloatArray
    neglected: FloatArray


class Schedule(NamedTuple):
    """When the targets report, for an adversary who knows their phases.

    Attributes
    ----------
    reports
        Whether a target reports in a step, shape (steps, targets). Its place changes only then.
    motion
        Motion from one report of a device to its next one.
    silence
        How many times as often nothing is published about a device in a step in which it reports
        as in any step: 0 if groups publish when a member reports, 1 if when they publish is
        independent of it.
    """

    reports: BoolArray
    motion: Motion
    silence: float = 0.0


def track(
    lives: Lives,
    motion: Motion,
    *,
    n_present: IntArray,
    start: IntArray,
    at: IntArray,
    schedule: Schedule | None = None,
) -> Tracks:
    """Track devices from their known positions at step 0, by what was released until each step.

    Parameters
    ----------
    n_present
        Number of devices present at each step, published or not, shape (steps,).
    start
        Known node of each target at step 0, shape (targets,).
    at
        Steps at which to return the belief, shape (n,).
    schedule
        When the targets report. None: the adversary does not know.

    Notes
    -----
    For each step O(states with a mass * degree * moves in a step + nodes of the regions), for all
    targets and the crowd.
    """
    n_targets = len(start)
    belief = np.zeros((n_targets, len(at), len(motion.leave)))
    neglected = np.zeros(n_targets)
    targets, silence = _known(motion, start), np.ones(n_targets)
    for t, evidence in enumerate(evidence_of(lives, motion, n_present)):
        if schedule is None:
            moves, model = np.ones(n_targets, bool), motion
        else:
            # A copy, because numba compiles once more for rows that are not contiguous.
            moves, model = np.ascontiguousarray(schedule.reports[t]), schedule.motion
            silence = np.where(schedule.reports[t], max(schedule.silence, SLIP), 1.0)
        if t > 0:
            targets = Masses(*moved_on(model, targets, moves))
        step = _step(targets, evidence, motion, silence)
        targets = step.after
        neglected += step.neglected
        for k in np.flatnonzero(at == t).tolist():
            np.add.at(belief[:, k], (targets.owner, motion.node_of[targets.state]), targets.mass)
        if t >= at.max(initial=0):
            break
    return Tracks(belief / belief.sum(axis=2, keepdims=True), neglected)


def smooth(
    lives: Lives,
    motion: Motion,
    *,
    n_present: IntArray,
    start: IntArray,
    at: IntArray,
    end: IntArray | None = None,
) -> Tracks:
    """Track devices from their known positions at step 0, by all that was released.

    Parameters
    ----------
    n_present, start, at
        As in `track`.
    end
        Known node of each target at the last step, shape (targets,). None: it is not known. A node
        at which the filter does not expect the target at all is ignored.

    Notes
    -----
    The forward-backward algorithm [1]_ over the states of the filter; `neglected` is that of the
    filter. The crowd is not smoothed: what a step says is what it said at that time. O(twice the
    time of `track`), and the memory for the states of `_AT_ONCE` targets at all steps.

    References
    ----------
    .. [1] L. R. Rabiner, "A tutorial on hidden Markov models and selected applications in speech
       recognition", Proceedings of the IEEE 77(2), 1989.
    """
    steps = list(evidence_of(lives, motion, n_present))
    found = []
    for first in range(0, len(start), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        known_end = None if end is None else end[some]
        found.append(_smooth(steps, motion, start=start[some], at=at, end=known_end))
    return Tracks(
        np.concatenate([np.zeros((0, len(at), len(motion.leave))), *(f.belief for f in found)]),
        np.concatenate([np.zeros(0), *(f.neglected for f in found)]),
    )


class _Step(NamedTuple):
    """Masses of the targets at one step.

    Attributes
    ----------
    before, after
        Without and with what the step says; `after` sums to 1 for each target.
    source
        Mass before of which each mass after comes, shape of `after`.
    neglected
        Probability of the states that were dropped, shape (targets,).
    """

    before: Masses
    after: Masses
    source: IntArray
    neglected: FloatArray


def _known(motion: Motion, start: IntArray) -> Masses:
    row, state, share = motion.states_at(start)
    order = np.argsort(row, kind="stable")
    free = np.full(len(row), FREE, np.int32)
    return only(Masses(row.astype(np.int32), free, state, share), order)


def _step(before: Masses, evidence: Evidence | None, motion: Motion, silence: FloatArray) -> _Step:
    if evidence is None:
        after, source = before, np.arange(len(before.mass))
    else:
        after, source = weighed(before, evidence, motion.node_of, silence)
    n_targets = len(silence)
    share = after.mass / np.bincount(after.owner, after.mass, n_targets)[after.owner]
    kept = share > NEGLECTED
    dropped = np.where(kept, 0.0, share)
    neglected = np.bincount(after.owner, dropped, n_targets).astype(np.float64)
    return _Step(before, only(after._replace(mass=share), kept), source[kept], neglected)


def _smooth(
    evidence: Sequence[Evidence | None],
    motion: Motion,
    *,
    start: IntArray,
    at: IntArray,
    end: IntArray | None,
) -> Tracks:
    n_targets, always = len(start), np.ones(len(start), bool)
    steps: list[_Step] = []
    for each in evidence:
        moved = (
            Masses(*moved_on(motion, steps[-1].after, always)) if steps else _known(motion, start)
        )
        steps.append(_step(moved, each, motion, np.ones(n_targets)))
    belief = np.zeros((n_targets, len(at), len(motion.leave)))
    mass = steps[-1].after.mass if end is None else _ending(steps[-1].after, motion, end)
    for t in range(len(steps) - 1, -1, -1):
        before, after, source, _ = steps[t]
        mass = mass / np.bincount(after.owner, mass, n_targets)[after.owner]
        for k in np.flatnonzero(at == t).tolist():
            np.add.at(belief[:, k], (after.owner, motion.node_of[after.state]), mass)
        if t > 0:
            # All that comes of a mass has the same future as it, so that the parts add up.
            known = np.bincount(source, mass, len(before.mass)).astype(np.float64)
            mass = moved_back(motion, steps[t - 1].after, before, known)
    neglected = np.sum([step.neglected for step in steps], axis=0)
    return Tracks(belief / belief.sum(axis=2, keepdims=True), neglected)


def _ending(masses: Masses, motion: Motion, end: IntArray) -> FloatArray:
    """Return the masses of the targets that are at their known ends."""
    there = np.where(motion.node_of[masses.state] == end[masses.owner], masses.mass, 0.0)
    found = np.bincount(masses.owner, there, len(end)) > 0
    ending: FloatArray = np.where(found[masses.owner], there, masses.mass)
    return ending
