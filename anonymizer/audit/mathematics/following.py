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

All tracks together tell how many devices are in each cell of the network at a moment. The motion
model knows how many usually are, and a target is one of those that are there now: what is believed
of it is weighed by the one over the other, as the intensity of a Poisson process would have it.

References
----------
.. [1] J. Williams, "Marginal multi-Bernoulli filters: RFS derivation of MHT, JIPDA, and
   association-based MeMBer", IEEE Transactions on Aerospace and Electronic Systems 51(3), 2015.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.audit.mathematics.association import associate
from anonymizer.audit.mathematics.evidence import SLIP
from anonymizer.audit.mathematics.lives import Lives
from anonymizer.audit.mathematics.masses import FREE, Masses, moved_back, moved_on, only
from anonymizer.audit.mathematics.masses_by_life import MassesByLife, Weights, by_life, freed
from anonymizer.audit.mathematics.motion import Motion
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_LEAST = 1e-4
"""Less probable states of a track are dropped."""
_LEAST_OF_TARGET = 1e-6
"""Less probable states of a target are dropped. What is dropped is far from the known position, and
a target has states for each track and life that it may be: with 1e-5, even a release of others
makes the adversary too sure."""
_TOGETHER = 5
"""Targets whose states move together: a step holds three copies of the states of so many, and each
call of a kernel does the work of so many."""
_LEAST_EXISTENCE = 0.02
_LEAST_INSIDE = 1e-6
_NO_TRACK = -1
_USUAL = 0.1
"""Devices that are added to those of each cell, both to those that are shown and to the usual ones:
where few are usual, few that are shown say little."""


class LevelPrior(NamedTuple):
    """How likely a device is published as a piece of each level when its group is formed.

    The size of a piece tells how much company its device had.
    """

    level_of: IntArray
    """Level of the pieces of each life, shape (lives,)."""
    share: FloatArray
    """Probability of each level of a device at each node, shape (levels, nodes)."""


def follow(
    lives: Lives,
    motion: Motion,
    *,
    n_present: IntArray,
    start: IntArray,
    enter: int,
    at: IntArray,
    prior: LevelPrior | None = None,
    cell_of: IntArray | Int32Array | None = None,
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
    cell_of
        Cell of each node, 0 to n - 1: what is believed at a step of `at` is weighed by how many
        devices the tracks show in each cell then, and how many usually are. None: it is not.
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
    weight = np.ones(belief.shape[1:])
    crowd, chases = _Crowd(motion, float(n_present[0]), prior), list[_Chase]()
    last = lives.n_steps - 1 if look_back else int(at.max(initial=enter))
    for t in range(last + 1):
        crowd.n_present = float(n_present[t])
        over = lives.last_step_of < t
        crowd.move(over)
        heard = []
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            heard.append(crowd.read(lives, r, t))
            crowd.learn(heard[-1])
        crowd.forget()
        if t == enter:
            parts = [start[i : i + _TOGETHER] for i in range(0, len(start), _TOGETHER)]
            chases = [
                _Chase(motion, _targets(crowd, motion, some), look_back=look_back) for some in parts
            ]
            heard = []  # that they are where they are is known already
        now = np.flatnonzero(at == t).tolist()
        if cell_of is not None and now:
            weight[now] = crowd.over_usual(cell_of)
        for i, chase in enumerate(chases):
            chase.step(heard, over, moves=t > enter)
            for k in now:
                chase.add_to(belief[i * _TOGETHER : (i + 1) * _TOGETHER, k])
    hindsight = None
    if look_back:
        shares = [chase.looked_back(at - enter) for chase in chases]
        hindsight = _weighed(np.concatenate([belief[:0], *shares]), weight)
    return _weighed(belief, weight), hindsight


def _weighed(belief: FloatArray, weight: FloatArray) -> FloatArray:
    """Return beliefs that add up to 1 in the last axis, weighed by what has their last two axes."""
    joint = belief * weight
    shares: FloatArray = joint / joint.sum(axis=-1, keepdims=True)
    return shares


class _Chase:
    """Some targets, followed from their known positions on: none changes what is said of others."""

    def __init__(self, motion: Motion, targets: "_Targets", *, look_back: bool) -> None:
        self._motion = motion
        self._targets = targets
        self._steps: list[_Step] | None = [] if look_back else None

    def step(self, heard: Sequence["_Said"], over: BoolArray, *, moves: bool) -> None:
        """Move, unless the step is the first one, and take in what its regions say."""
        targets, motion = self._targets, self._motion
        masses = _moved(motion, targets, over)[2] if moves else targets.masses
        held = MassesByLife(masses, len(targets.track_of))
        for said in heard:
            said.tell(held, motion.node_of, targets.row_of(said), SLIP)
        self._targets, source = targets.given(held)
        if self._steps is not None:
            self._steps.append(_Step(over, source, self._targets.masses))

    def add_to(self, belief: FloatArray) -> None:
        """Add what is believed now, shape (targets, nodes)."""
        self._targets.add_to(belief, self._targets.masses.mass, self._motion)

    def looked_back(self, at: IntArray) -> FloatArray:
        """Return the belief at some steps, counted from the first one, given all of them."""
        assert self._steps is not None  # noqa: S101  for type checkers
        return _looked_back(self._steps, self._targets, self._motion, at)


class _Step(NamedTuple):
    """States of the targets at one step."""

    over: BoolArray
    """Which lives are over when it begins, shape (lives,)."""
    source: Int32Array
    after: Masses
    """`source`, `after`: the states given what the step says, and which of those after the move
    each of them was."""


def _moved(motion: Motion, targets: "_Targets", over: BoolArray) -> tuple[Masses, IntArray, Masses]:
    """Return the states after some lives ended, their former indices, and the states moved on."""
    went, came_from = freed(targets.masses, over)
    moves = np.ones(len(targets.track_of), np.bool_)
    return went, came_from, Masses(*moved_on(motion, went, moves))


def _looked_back(
    steps: list[_Step], targets: "_Targets", motion: Motion, at: IntArray
) -> FloatArray:
    """Return the belief at some steps, given all of them (forward-backward algorithm).

    The states between two steps are many times as many as those that are kept, so they are
    computed once more.
    """
    n_targets = targets.n_targets
    belief = np.zeros((n_targets, len(at), len(motion.leave)))
    mass = steps[-1].after.mass
    for t in range(len(steps) - 1, -1, -1):
        here = targets._replace(masses=steps[t].after)
        target = targets.target_of[here.masses.owner]
        mass = mass / np.bincount(target, mass, n_targets)[target]
        for k in np.flatnonzero(at == t).tolist():
            here.add_to(belief[:, k], mass, motion)
        if t > 0:
            over, source, _ = steps[t]
            earlier = targets._replace(masses=steps[t - 1].after)
            went, came_from, moved = _moved(motion, earlier, over)
            known = np.bincount(source, mass, len(moved.mass)).astype(np.float64)
            mass = np.zeros(len(went.mass))
            mass[came_from] = moved_back(motion, went, moved, known)
    return belief


class _Said(NamedTuple):
    """What one region says."""

    life: int
    begins: bool
    """`life`, `begins`: the life, and whether this is its first region."""
    weights: Weights
    """What it says of each row; the last row is for devices of which nothing is known."""
    row_of: IntArray
    """Row of each track, shape (tracks,)."""
    new: FloatArray
    """Expected number of devices without a track in each piece, shape (pieces,)."""

    def tell(self, held: MassesByLife, node_of: Int32Array, row_of: IntArray, slip: float) -> None:
        """Weigh masses whose owners have these rows."""
        if self.begins:
            held.begin(self.life, node_of, self.weights, row_of)
        else:
            held.go_on(self.life, node_of, self.weights, row_of, slip)


_EMPTY = Masses(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0))


class _Crowd:
    """The tracks of all devices; their owners are numbered as they appear."""

    def __init__(self, motion: Motion, n_present: float, prior: LevelPrior | None) -> None:
        self._motion = motion
        self._prior = prior
        self.masses = _EMPTY
        self._held = MassesByLife(_EMPTY, 0)
        self.n_tracks = 0
        self.n_present = n_present

    @property
    def unknown(self) -> float:
        """Expected number of devices that are not tracked."""
        return max(self.n_present - float(self._held.mass_of.sum()), SLIP * self.n_present)

    def move(self, over: BoolArray) -> None:
        """Let a step pass, in which some lives are over."""
        masses, _ = freed(self.masses, over)
        # The step before is over: three copies of all tracks at once would be most of the memory.
        self.masses, self._held = _EMPTY, MassesByLife(_EMPTY, 0)
        masses = Masses(*moved_on(self._motion, masses, np.ones(self.n_tracks, np.bool_)))
        self._held = MassesByLife(masses, self.n_tracks)

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
        owner, inside, total = self._held.inside(
            FREE if begins else life, self._motion.node_of, piece_at, likely, n_pieces
        )
        is_near = inside.sum(axis=1) > _LEAST_INSIDE
        near, inside, total = owner[is_near], inside[is_near], total[is_near]
        mass_of = self._held.mass_of
        # A track that adds up to more than one device is one all the same: it loses the excess.
        outside = np.maximum(1.0, mass_of[near])
        if not begins:
            outside -= (1.0 - SLIP) * total + SLIP * inside.sum(axis=1)
        outside = np.maximum(outside, SLIP)
        nodes = regions.node[rows]
        density = np.bincount(piece_at[nodes], (self._motion.density * likely)[nodes], n_pieces)
        unknown = density.astype(np.float64) * (self.unknown if begins else SLIP)
        factor, sums, new = associate(inside, outside, unknown, float(lives.size[life]))
        row_of = np.full(self.n_tracks, len(near))
        row_of[near] = np.arange(len(near))
        return _Said(life, begins, Weights(piece_at, likely, factor, sums), row_of, new)

    def learn(self, said: _Said) -> None:
        """Take in what a region says; devices that it shows for the first time become tracks."""
        said.tell(self._held, self._motion.node_of, said.row_of, 0.0)
        for masses in self._born(said):
            self._held.add(masses, self.n_tracks)

    def _born(self, said: _Said) -> Iterator[Masses]:
        piece_at, likely, _, _ = said.weights
        for piece in np.flatnonzero(said.new > _LEAST_EXISTENCE).tolist():
            nodes = np.flatnonzero(piece_at == piece)
            row, state, share = self._motion.states_at(nodes)
            density = (self._motion.density * likely)[nodes]
            share = share * density[row] / density.sum()
            n_new = int(np.ceil(said.new[piece] - _LEAST_EXISTENCE))
            for _ in range(n_new):
                self.n_tracks += 1
                yield Masses(
                    np.full(len(row), self.n_tracks - 1, np.int32),
                    np.full(len(row), said.life, np.int32),
                    state,
                    share * (said.new[piece] / n_new),
                )

    def over_usual(self, cell_of: IntArray | Int32Array) -> FloatArray:
        """Return how many times the usual devices are in the cell of each node, shape (nodes,)."""
        motion, masses = self._motion, self.masses
        n_cells, usual = int(cell_of.max()) + 1, self.n_present * motion.density
        shown = np.bincount(cell_of[motion.node_of[masses.state]], masses.mass, n_cells)
        here = shown + np.bincount(cell_of, self.unknown * motion.density, n_cells)
        times = (here + _USUAL) / (np.bincount(cell_of, usual, n_cells) + _USUAL)
        by_node: FloatArray = times[cell_of]
        return by_node

    def forget(self) -> None:
        """End a step: drop improbable states, and tracks that hardly exist."""
        exists = self._held.sums(np.arange(self.n_tracks), self.n_tracks)
        unit = np.where(exists > _LEAST_EXISTENCE, 1.0, np.inf)
        self.masses, _ = self._held.listed(unit, _LEAST)


class _Targets(NamedTuple):
    """States of the targets, for each track that each of them may be."""

    masses: Masses
    target_of: IntArray
    track_of: IntArray
    """`target_of`, `track_of`: target and track of each owner, shape (owners,)."""

    def row_of(self, said: _Said) -> IntArray:
        """Return the row of each owner in what a region says."""
        known = (self.track_of >= 0) & (self.track_of < len(said.row_of))
        row_of = np.full(len(self.track_of), len(said.weights.total) - 1)
        row_of[known] = said.row_of[self.track_of[known]]
        return row_of

    @property
    def n_targets(self) -> int:
        """How many they are: each may also be nobody who is tracked."""
        return int(self.target_of[-1]) + 1

    def given(self, held: MassesByLife) -> tuple["_Targets", Int32Array]:
        """Return the states of each target such that they add up to 1, and which they were."""
        unit = held.sums(self.target_of, self.n_targets)[self.target_of]
        masses, source = held.listed(unit, _LEAST_OF_TARGET)
        return self._replace(masses=masses), source

    def add_to(self, belief: FloatArray, mass: FloatArray, motion: Motion) -> None:
        """Add masses of the states to the belief of each target, shape (targets, nodes)."""
        masses = self.masses
        np.add.at(belief, (self.target_of[masses.owner], motion.node_of[masses.state]), mass)


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
    return _Targets(by_life(joined)[0], np.array(target_of, np.int64), np.array(track_of, np.int64))
