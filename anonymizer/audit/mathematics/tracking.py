"""The tracking attack: the place of a device some minutes after one known position.

The adversary knows the node of a device at step 0, the release from that step on, the network, and
a motion model learned from other devices. A forward filter keeps the probability of each state of
the target: the life that it is in, or none, and a state of the motion model (Hoh and Gruteser
follow paths through unnamed positions in this way [1]_, Wiedersheim et al. through pseudonyms that
change [2]_; Shokri et al. measure location privacy as the error of such an inference [3]_). What is
a life, and what its regions say, is in `lives`; how likely a step is in each state, in `evidence`.

To this adversary the devices of a life are alike. One who follows each of them, and looks back, is
in `following`.

References
----------
.. [1] B. Hoh, M. Gruteser, "Protecting location privacy through path confusion", SecureComm 2005.
.. [2] B. Wiedersheim, Z. Ma, F. Kargl, P. Papadimitratos, "Privacy in inter-vehicular networks: why
   simple pseudonym change is not enough", WONS 2010.
.. [3] R. Shokri, G. Theodorakopoulos, J.-Y. Le Boudec, J.-P. Hubaux, "Quantifying location
   privacy", IEEE Symposium on Security and Privacy, 2011.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.audit.mathematics.evidence import SLIP, Evidence, evidence_of, weighed
from anonymizer.audit.mathematics.lives import Lives
from anonymizer.audit.mathematics.masses import (
    FREE,
    NEGLECTED,
    Masses,
    moved_on,
    only,
)
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tracks:
    """What the adversary believes about each target."""

    belief: FloatArray
    """Probability of each node at each of the steps asked for, shape (targets, steps, nodes)."""
    neglected: FloatArray
    """Probability of the states that were dropped, summed over all steps, shape (targets,)."""


class Schedule(NamedTuple):
    """When the targets report, for an adversary who knows their phases."""

    reports: BoolArray
    """Whether a target reports in a step, shape (steps, targets). Its place changes only then."""
    motion: Motion
    """Motion from one report of a device to its next one."""
    silence: float = 0.0
    """How many times as often nothing is published about a device in a step in which it reports as
    in any step: 0 if groups publish when a member reports, 1 if when they publish is independent of
    it."""


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
        targets, dropped = _step(targets, evidence, motion, silence)
        neglected += dropped
        for k in np.flatnonzero(at == t).tolist():
            np.add.at(belief[:, k], (targets.owner, motion.node_of[targets.state]), targets.mass)
        if t >= at.max(initial=0):
            break
    return Tracks(belief / belief.sum(axis=2, keepdims=True), neglected)


def _known(motion: Motion, start: IntArray) -> Masses:
    row, state, share = motion.states_at(start)
    order = np.argsort(row, kind="stable")
    free = np.full(len(row), FREE, np.int32)
    return only(Masses(row.astype(np.int32), free, state, share), order)


def _step(
    before: Masses, evidence: Evidence | None, motion: Motion, silence: FloatArray
) -> tuple[Masses, FloatArray]:
    """Return the masses given a step, and what was dropped of each target, shape (targets,)."""
    after = before
    if evidence is not None:
        after, _ = weighed(before, evidence, motion.node_of, silence)
    n_targets = len(silence)
    share = after.mass / np.bincount(after.owner, after.mass, n_targets)[after.owner]
    kept = share > NEGLECTED
    neglected = np.bincount(after.owner, np.where(kept, 0.0, share), n_targets)
    return only(after._replace(mass=share), kept), neglected.astype(np.float64)
