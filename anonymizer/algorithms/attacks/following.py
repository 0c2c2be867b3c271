"""Following devices one by one: what a release says about each of them, and about a target.

The strongest tracking adversary keeps a *track* of every device that is published: the probability
of each life (group) and state of the motion model, with no name. Each region that is published is
explained by the tracks together (`association`). So a piece that another device must be in says
nothing about the target, and one that nobody else can be in says where it is.

The adversary reads the release from before the known position on. At that moment the target is one
of the tracks, each as likely as it is to be at the known node, and from then on it has a state of
its own for each track that it may be.

The tracks are those of a Poisson multi-Bernoulli filter without the mixture [1]_: devices that were
never published are expected in numbers, and become tracks when a region needs them.

References
----------
.. [1] J. Williams, "Marginal multi-Bernoulli filters: RFS derivation of MHT, JIPDA, and
   association-based MeMBer", IEEE Transactions on Aerospace and Electronic Systems 51(3), 2015.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.association import associate
from anonymizer.algorithms.attacks.evidence import SLIP
from anonymizer.algorithms.attacks.lives import Lives
from anonymizer.algorithms.attacks.masses import (
    FREE,
    Masses,
    moved_back,
    moved_on,
    only,
    sorted_by_life,
)
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_LEAST = 1e-5
"""Less probable states of a track or of a target are dropped."""
_LEAST_EXISTENCE = 0.02
_LEAST_INSIDE = 1e-6
_NO_TRACK = -1


class LevelPrior(NamedTuple):
    """How likely a device is published as a piece of each level when its group is formed.

    The size of a piece tells how much company its device had.

    Attributes
    ----------
    level_of
        Level of the pieces of each life, shape (lives,).
    share
        Probability of each level of a device at each node, shape (levels, nodes).
    """

    level_of: IntArray
    share: FloatArray


def follow(
    lives: Lives,
    motion: Motion,
    *,
    n_present: IntArray,
    start: IntArray,
    enter: int,
    at: IntArray,
    prior: LevelPrior | None = None,
    look_back: bool = False,
) -> tuple[FloatArray, FloatArray | None]:
    """Follow all devices from step 0, and targets from their known positions at a later step.

    Parameters
    ----------
    lives
        Lives of which every record is published by the same devices; a life lasts until the step
        after which these may be in others.
    n_present
        Number of devices present at each step, published or not, shape (steps,).
    start, enter
        Known node of each target, shape (targets,), and the step at which it is there.
    at
        Steps at which to return the belief, shape (n,), not before `enter`.
    prior
        How likely each level is. None: lives may have any level.
    look_back
        Whether to return what is believed with hindsight, too.

    Returns
    -------
    belief, hindsight
        Probability of each node given what was released until each step of `at`, and given all
        steps (None without `look_back`), shape (targets, n, nodes).

    Notes
    -----
    For each step O((states of all tracks + states of all targets) * degree * moves in a step). Who
    looks back does so for the targets; what a step says is what it said at that time.
    """
    belief = np.zeros((len(start), len(at), len(motion.leave)))
    crowd, targets = _Crowd(motion, float(n_present[0]), prior), _NOBODY
    steps: list[_Step] = []
    last = lives.n_steps - 1 if look_back else int(at.max(initial=enter))
    for t in range(last + 1):
        crowd.n_present = float(n_present[t])
        over = lives.last_step_of < t
        if t > 0:
            freed, _ = _freed(crowd.masses, over)
            crowd.masses = Masses(*moved_on(motion, freed, np.ones(crowd.n_tracks, np.bool_)))
        freed, came_from = _freed(targets.masses, over)
        everybody = np.ones(len(targets.track_of), np.bool_)
        before = Masses(*moved_on(motion, freed, everybody))
        targets, source = targets._replace(masses=before), np.arange(len(before.mass))
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            said = crowd.read(lives, r, t)
            crowd.learn(said)
            if t > enter:
                targets, told_from = targets.after(said, motion.node_of)
                source = source[told_from]
        crowd.forget()
        if t == enter:
            targets = _targets(crowd, motion, start)
            source = np.arange(len(targets.masses.mass))
            freed = before = targets.masses
        if t >= enter:
            targets, kept = targets.normalized(len(start))
            steps.append(_Step(freed, came_from, before, source[kept], targets.masses))
        for k in np.flatnonzero(at == t).tolist():
            targets.add_to(belief[:, k], targets.masses.mass, motion)
    hindsight = _looked_back(steps, targets, motion, len(start), at - enter) if look_back else None
    return belief / belief.sum(axis=2, keepdims=True), hindsight


class _Step(NamedTuple):
    """States of the targets at one step.

    Attributes
    ----------
    freed, came_from
        Before they moved, and of which states of the step before they are.
    before
        After they moved.
    source, after
        State of `before` of which each of `after` comes, given what the step says.
    """

    freed: Masses
    came_from: IntArray
    before: Masses
    source: IntArray
    after: Masses


def _looked_back(
    steps: list[_Step], targets: "_Targets", motion: Motion, n_targets: int, at: IntArray
) -> FloatArray:
    """Return the belief at some steps, given all of them (forward-backward algorithm)."""
    belief = np.zeros((n_targets, len(at), len(motion.leave)))
    mass = steps[-1].after.mass
    for t in range(len(steps) - 1, -1, -1):
        here = targets._replace(masses=steps[t].after)
        target = targets.target_of[here.masses.owner]
        mass = mass / np.bincount(target, mass, n_targets)[target]
        for k in np.flatnonzero(at == t).tolist():
            here.add_to(belief[:, k], mass, motion)
        if t > 0:
            freed, came_from, before, source, _ = steps[t]
            known = np.bincount(source, mass, len(before.mass)).astype(np.float64)
            earlier = moved_back(motion, freed, before, known)
            mass = np.zeros(len(steps[t - 1].after.mass))
            mass[came_from] = earlier
    shares: FloatArray = belief / belief.sum(axis=2, keepdims=True)
    return shares


class _Said(NamedTuple):
    """What one region says.

    Attributes
    ----------
    life, begins
        The life, and whether this is its first region.
    piece_at
        Piece of the region of each node, negative for none, shape (nodes,).
    likely
        Probability of the level of the life for who joins it at each node, shape (nodes,).
    row_of
        Row of each track in `factor` and `total`, shape (tracks,); the last row is for others.
    factor, total
        From `associate`.
    new
        Expected number of devices without a track in each piece, shape (pieces,).
    """

    life: int
    begins: bool
    piece_at: Int32Array
    likely: FloatArray
    row_of: IntArray
    factor: FloatArray
    total: FloatArray
    new: FloatArray


_EMPTY = Masses(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))


class _Crowd:
    """The tracks of all devices; their owners are numbered as they appear."""

    def __init__(self, motion: Motion, n_present: float, prior: LevelPrior | None) -> None:
        self._motion = motion
        self._prior = prior
        self.masses = _EMPTY
        self.n_tracks = 0
        self.n_present = n_present

    @property
    def unknown(self) -> float:
        """Expected number of devices that are not tracked."""
        return max(self.n_present - float(self.masses.mass.sum()), SLIP * self.n_present)

    def read(self, lives: Lives, record: int, step: int) -> _Said:
        """Return what a record says, given the tracks."""
        life, region = int(lives.life_of[record]), int(lives.region_of[record])
        begins = bool(lives.first_step_of[life] == step)
        regions = lives.regions
        first, end = regions.first_piece_of[region : region + 2].tolist()
        n_pieces = end - first
        rows = slice(regions.first_node_of[first], regions.first_node_of[end])
        piece_at = np.full(len(self._motion.leave), -1, np.int32)
        sizes = np.diff(regions.first_node_of[first : end + 1])
        piece_at[regions.node[rows]] = np.repeat(np.arange(n_pieces), sizes)
        likely = np.ones(len(piece_at))
        if begins and self._prior is not None:
            likely = self._prior.share[self._prior.level_of[life]]
        inside, total = _inside(
            self.masses,
            self._motion.node_of,
            piece_at,
            likely,
            FREE if begins else life,
            self.n_tracks,
            n_pieces,
        )
        near = np.flatnonzero(inside.sum(axis=1) > _LEAST_INSIDE)
        outside = np.ones(len(near)) if begins else 1.0 - (1.0 - SLIP) * total[near]
        outside = np.maximum(outside - (0.0 if begins else SLIP) * inside[near].sum(axis=1), SLIP)
        nodes = regions.node[rows]
        density = np.bincount(piece_at[nodes], (self._motion.density * likely)[nodes], n_pieces)
        unknown = density.astype(np.float64) * (self.unknown if begins else SLIP)
        factor, sums, new = associate(
            np.ascontiguousarray(inside[near]), outside, unknown, float(lives.size[life])
        )
        row_of = np.full(self.n_tracks, len(near))
        row_of[near] = np.arange(len(near))
        return _Said(life, begins, piece_at, likely, row_of, factor, sums, new)

    def learn(self, said: _Said) -> None:
        """Take in what a region says; devices that it shows for the first time become tracks."""
        after, _ = _after(self.masses, self._motion.node_of, said, said.row_of, 0.0)
        parts = [after, *self._born(said)]
        joined = Masses(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        self.masses = sorted_by_life(joined, np.zeros(len(joined.mass), np.int64))[0]

    def _born(self, said: _Said) -> list[Masses]:
        born = []
        for piece in np.flatnonzero(said.new > _LEAST_EXISTENCE).tolist():
            nodes = np.flatnonzero(said.piece_at == piece)
            row, state, share = self._motion.states_at(nodes)
            density = (self._motion.density * said.likely)[nodes]
            share = share * density[row] / density.sum()
            n_new = int(np.ceil(said.new[piece] - _LEAST_EXISTENCE))
            for _ in range(n_new):
                born.append(
                    Masses(
                        np.full(len(row), self.n_tracks, np.int32),
                        np.full(len(row), said.life, np.int32),
                        state,
                        share * (said.new[piece] / n_new),
                    )
                )
                self.n_tracks += 1
        return born

    def forget(self) -> None:
        """Drop improbable states, and tracks that hardly exist."""
        exists = np.bincount(self.masses.owner, self.masses.mass, self.n_tracks)
        kept = (self.masses.mass > _LEAST) & (exists > _LEAST_EXISTENCE)[self.masses.owner]
        self.masses = only(self.masses, kept)


class _Targets(NamedTuple):
    """States of the targets, for each track that each of them may be.

    Attributes
    ----------
    target_of, track_of
        Target and track of each owner, shape (owners,).
    """

    masses: Masses
    target_of: IntArray
    track_of: IntArray

    def after(self, said: _Said, node_of: Int32Array) -> tuple["_Targets", IntArray]:
        """Return the states given what a region says, and of which ones they come."""
        known = (self.track_of >= 0) & (self.track_of < len(said.row_of))
        row_of = np.full(len(self.track_of), len(said.total) - 1)
        row_of[known] = said.row_of[self.track_of[known]]
        masses, source = _after(self.masses, node_of, said, row_of, SLIP)
        masses, source = sorted_by_life(masses, source)
        return self._replace(masses=masses), source

    def normalized(self, n_targets: int) -> tuple["_Targets", BoolArray]:
        """Return the states of each target such that they add up to 1, and which are kept."""
        masses, target = self.masses, self.target_of[self.masses.owner]
        share = masses.mass / np.bincount(target, masses.mass, n_targets)[target]
        kept = share > _LEAST
        return self._replace(masses=only(masses._replace(mass=share), kept)), kept

    def add_to(self, belief: FloatArray, mass: FloatArray, motion: Motion) -> None:
        """Add masses of the states to the belief of each target, shape (targets, nodes)."""
        masses = self.masses
        np.add.at(belief, (self.target_of[masses.owner], motion.node_of[masses.state]), mass)


_NOBODY = _Targets(_EMPTY, np.zeros(0, np.int64), np.zeros(0, np.int64))


def _targets(crowd: _Crowd, motion: Motion, start: IntArray) -> _Targets:
    """Return the targets at their known nodes, as each of the tracks that may be there."""
    masses, node = crowd.masses, motion.node_of[crowd.masses.state]
    parts = [_EMPTY]
    target_of: list[int] = []
    track_of: list[int] = []
    for target, at in enumerate(start.tolist()):
        here = only(masses, node == at)
        tracks, owner = np.unique(here.owner, return_inverse=True)
        parts.append(here._replace(owner=(len(target_of) + owner).astype(np.int32)))
        target_of += [target] * len(tracks)
        track_of += tracks.tolist()
        _, state, share = motion.states_at(np.array([at]))
        free = crowd.unknown * motion.density[at] * share
        other = np.full(len(state), len(target_of), np.int32)
        parts.append(Masses(other, np.full(len(state), FREE, np.int32), state, free))
        target_of.append(target)
        track_of.append(_NO_TRACK)
    joined = Masses(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    masses = sorted_by_life(joined, np.zeros(len(joined.mass), np.int64))[0]
    return _Targets(masses, np.array(target_of, np.int64), np.array(track_of, np.int64))


def _freed(masses: Masses, over: BoolArray) -> tuple[Masses, IntArray]:
    """Return the masses with those of lives that are over free, and which they were."""
    source = np.arange(len(masses.mass))
    ended = (masses.life >= 0) & np.append(over, False)[masses.life]
    if not ended.any():
        return masses, source
    life = np.where(ended, FREE, masses.life).astype(np.int32)
    return sorted_by_life(masses._replace(life=life), source)


def _after(
    masses: Masses, node_of: Int32Array, said: _Said, row_of: IntArray, slip: float
) -> tuple[Masses, IntArray]:
    """Return the masses given a region, and of which ones they come."""
    owner, life, state, mass, source = _weigh(
        masses,
        node_of,
        said.piece_at,
        said.likely,
        said.life,
        said.begins,
        row_of,
        said.factor,
        said.total,
        slip,
    )
    return Masses(owner, life, state, mass), source


@kernel
def _inside(
    masses: Masses,
    node_of: Int32Array,
    piece_at: Int32Array,
    likely: FloatArray,
    life: int,
    n_owners: int,
    n_pieces: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the mass of each owner in a life: what may be in each piece, and all of it."""
    inside, total = np.zeros((n_owners, n_pieces)), np.zeros(n_owners)
    for i in range(len(masses.mass)):
        if masses.life[i] == life:
            a, v = masses.owner[i], node_of[masses.state[i]]
            total[a] += masses.mass[i]
            if piece_at[v] >= 0:
                inside[a, piece_at[v]] += masses.mass[i] * likely[v]
    return inside, total


@kernel
def _weigh(
    masses: Masses,
    node_of: Int32Array,
    piece_at: Int32Array,
    likely: FloatArray,
    life: int,
    begins: bool,  # noqa: FBT001  a kernel takes no keywords
    row_of: IntArray,
    factor: FloatArray,
    total: FloatArray,
    slip: float,
) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray, IntArray]:
    """Return what `_after` returns; whoever is free may begin the life, or not."""
    n_most = 2 * len(masses.mass)
    source = np.empty(n_most, np.int64)
    owner, at = np.empty(n_most, np.int32), np.empty(n_most, np.int32)
    state, mass = np.empty(n_most, np.int32), np.empty(n_most)
    n = 0
    for i in range(len(masses.mass)):
        a, c = masses.owner[i], masses.life[i]
        row, v = row_of[a], node_of[masses.state[i]]
        p = piece_at[v]
        here = masses.mass[i] / total[row]
        if begins and c == FREE and p >= 0:
            owner[n], at[n], state[n] = a, life, masses.state[i]
            mass[n], source[n] = here * factor[row, p] * likely[v], i
            n += 1
        elif not begins and c == life:
            here *= factor[row, p] if p >= 0 else slip
        owner[n], at[n], state[n], mass[n] = a, c, masses.state[i], here
        source[n] = i
        n += 1
    return owner[:n].copy(), at[:n].copy(), state[:n].copy(), mass[:n].copy(), source[:n].copy()
