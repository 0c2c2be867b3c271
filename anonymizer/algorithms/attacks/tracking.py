"""The tracking attack: the place of a device some minutes after one known position.

The adversary knows the node of a device at one tick, the release from that tick on, the network,
and a motion model learned from other devices. A forward filter keeps the probability of each state
of the motion model (Hoh and Gruteser follow paths through unnamed positions in this way [1]_,
Wiedersheim et al. through pseudonyms that change [2]_; Shokri et al. measure location privacy as
the error of such an inference, and smooth it with what follows [3]_).

The release is a set of *lives*. A life is a number of devices that publish the same regions from
its first record to its last one; which device of the crowd begins it is unknown. The adversaries
differ only in the lives that they distinguish:

- without following pseudonyms, every region of every tick is a life of its own, or every atom that
  a region contains whole;
- with it, pseudonyms of identical regions are one life, and who ends one may begin the next one;
- raw positions without names are lives of one tick whose regions are the cells of a grid.

Likelihood. The same filter first runs for the crowd: the expected number of devices in each state
given the release so far. A life of m devices in region R, where the crowd model expects e of those
who could be in it, is m / e times as likely if the target is one of them. At the first tick the
crowd is uniform, and this is the intensity m / |R|, times a constant. Later it does not count the
same crowd twice, which multiplying the intensities of successive ticks would do. Within a region
the adversary may know better than uniform odds: see `odds_of_whole_atoms`.

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

from anonymizer.algorithms.attacks.indistinguishability import instants_of
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.release import starts_of

TINY = 1e-15
"""Probabilities and expected numbers of devices below this count as zero."""
CROWD = -1


class Lives(NamedTuple):
    """The records of a stretch of ticks, by rising tick, and the lives that they belong to.

    Attributes
    ----------
    first_record_of
        Records of tick t: `first_record_of[t]` to `first_record_of[t + 1]`, shape (ticks + 1,).
        Tick 0 is that of the known position.
    life_of, region_of
        Life and region of each record, shape (records,).
    first_tick_of, last_tick_of
        First and last tick of each life within the stretch, shape (lives,).
    size
        Number of devices of each life, shape (lives,).
    first_node_of, node
        Regions in compressed sparse rows, as in `Observed`.
    odds
        Odds of each entry of `node` to hold a member of its region, relative to the other entries,
        shape of `node`; see `odds_of_whole_atoms`.
    """

    first_record_of: IntArray
    life_of: IntArray
    region_of: IntArray
    first_tick_of: IntArray
    last_tick_of: IntArray
    size: FloatArray
    first_node_of: IntArray
    node: Int32Array
    odds: FloatArray

    @property
    def n_ticks(self) -> int:
        """Number of ticks in the stretch."""
        return len(self.first_record_of) - 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tracks:
    """What the adversary believes about each target.

    Attributes
    ----------
    belief
        Probability of each node at each of the ticks asked for, shape (targets, ticks, nodes).
    smoothed
        The same, given also what is published later in the stretch; None if it was not computed.
    n_lost
        Number of ticks at which nothing published fitted the belief, shape (targets,). The
        belief then follows the motion model alone.
    """

    belief: FloatArray
    smoothed: FloatArray | None
    n_lost: IntArray


def unlinked_lives(observed: Observed, *, ticks: slice, odds: FloatArray | None = None) -> Lives:
    """Return the lives for an adversary who does not follow pseudonyms, over a range of ticks.

    `odds` are those of `observed.node`, by default all equal.
    """
    instants = instants_of(observed)
    size = np.bincount(instants.instant_of).astype(np.float64)
    there = _within(instants.tick, ticks)
    return _lives(
        instants.tick[there] - ticks.start,
        np.arange(int(there.sum())),
        instants.region[there],
        size[there],
        n_ticks=ticks.stop - ticks.start,
        first_node_of=observed.first_node_of,
        node=observed.node,
        odds=odds,
    )


def linked_lives(
    observed: Observed, class_of: IntArray, *, ticks: slice, odds: FloatArray | None = None
) -> Lives:
    """Return the lives for an adversary who follows pseudonyms, over a range of ticks.

    `class_of` is that of `indistinguishable_classes`, `odds` as in `unlinked_lives`.
    """
    chosen = np.unique(class_of, return_index=True)[1]
    some = observed.of_pseudonyms(chosen)
    there = _within(some.tick_of, ticks)
    alive, life_of = np.unique(some.pseudonym_of[there], return_inverse=True)
    return _lives(
        some.tick_of[there] - ticks.start,
        life_of,
        some.region_of[there],
        np.bincount(class_of).astype(np.float64)[alive],
        n_ticks=ticks.stop - ticks.start,
        first_node_of=observed.first_node_of,
        node=observed.node,
        odds=odds,
    )


def occupied_atom_lives(
    observed: Observed, atom_of: IntArray, place: Int32Array, *, ticks: slice
) -> Lives:
    """Return the lives for an adversary who reads a release as a map of occupied atoms.

    Each atom that a region contains whole is taken to hold an equal part of its devices, whoever
    they are. As many devices as usual are taken to be elsewhere.

    Parameters
    ----------
    atom_of
        Atom of each node, negative if it is in none, shape (nodes,).
    place
        Node of each device to learn from at each tick of the release, negative if absent, shape
        (ticks, devices): how many are usually in one of these atoms.
    """
    found, instants = _covered_atoms(observed, atom_of), instants_of(observed)
    size = np.bincount(instants.instant_of).astype(np.float64)
    n_atoms = int(atom_of.max()) + 1
    there = np.flatnonzero(_within(instants.tick, ticks))
    whole = np.flatnonzero(found.is_whole)
    first = np.searchsorted(found.region[whole], np.arange(observed.n_regions + 1))
    n_whole = np.diff(first)[instants.region[there]]
    rows = starts_of(n_whole)
    slot = np.arange(rows[-1]) + np.repeat(first[instants.region[there]] - rows[:-1], n_whole)
    key = np.repeat(instants.tick[there], n_whole) * n_atoms + found.atom[whole[slot]]
    occupied, life_of = np.unique(key, return_inverse=True)
    share = np.repeat(size[there] / np.maximum(n_whole, 1), n_whole)
    tick, device = np.nonzero(place[ticks] >= 0)
    atom = atom_of[place[ticks][tick, device]]
    within = (atom >= 0) & np.isin((tick + ticks.start) * n_atoms + atom, occupied)
    usual = (within.sum() + 1) / (len(within) + 2)
    return _lives(
        occupied // n_atoms - ticks.start,
        np.arange(len(occupied)),
        occupied % n_atoms,
        usual * np.bincount(life_of, share, len(occupied)),
        n_ticks=ticks.stop - ticks.start,
        first_node_of=starts_of(np.bincount(atom_of + 1, minlength=n_atoms + 1)[1:]),
        node=np.argsort(atom_of, kind="stable")[(atom_of < 0).sum() :].astype(np.int32),
    )


def rounded_lives(place: Int32Array, cell_of: IntArray) -> Lives:
    """Return the lives of raw positions without names, rounded to cells.

    Parameters
    ----------
    place
        Node of each device at each tick of the stretch, negative if absent, shape
        (ticks, devices).
    cell_of
        Cell of each node, 0 to n - 1, none empty, shape (nodes,).
    """
    tick, device = np.nonzero(place >= 0)
    n_cells = int(cell_of.max()) + 1
    pair, size = np.unique(tick * n_cells + cell_of[place[tick, device]], return_counts=True)
    return _lives(
        pair // n_cells,
        np.arange(len(pair)),
        pair % n_cells,
        size.astype(np.float64),
        n_ticks=len(place),
        first_node_of=starts_of(np.bincount(cell_of)),
        node=np.argsort(cell_of, kind="stable").astype(np.int32),
    )


def no_lives(n_ticks: int) -> Lives:
    """Return an empty release: the adversary has the motion model alone."""
    none = np.zeros(0, np.int64)
    return _lives(
        none,
        none,
        none,
        np.zeros(0),
        n_ticks=n_ticks,
        first_node_of=np.zeros(1, np.int64),
        node=np.zeros(0, np.int32),
    )


def track(
    lives: Lives,
    motion: Motion,
    *,
    n_present: IntArray,
    start: IntArray,
    at: IntArray,
    smooth: bool = False,
) -> Tracks:
    """Track devices from their known positions at tick 0.

    Parameters
    ----------
    n_present
        Number of devices present at each tick, published or not, shape (ticks,). A device that
        no life has room for is anywhere.
    start
        Known node of each target at tick 0, shape (targets,).
    at
        Ticks at which to return the belief, shape (n,).
    smooth
        Whether to smooth as well. Only for lives of one record each.

    Raises
    ------
    ValueError
        If lives of several records are to be smoothed.

    Notes
    -----
    For each target and tick: O(states with a belief * degree * moves in a tick + nodes of the
    regions), at most `Motion.n_states` for each life that the target may be in.
    """
    if smooth and bool((lives.last_tick_of > lives.first_tick_of).any()):
        raise ValueError("only lives of one record can be smoothed")
    n_nodes = len(motion.leave)
    weight = np.zeros(len(lives.life_of))
    free_weight = np.zeros(lives.n_ticks)
    capacity = _capacity(lives, motion)
    in_states = np.zeros((len(at), motion.n_states))
    present = n_present.astype(np.float64)
    _follow(motion, lives, present, CROWD, weight, free_weight, at[:0], in_states, capacity)
    later = _look_back(motion, lives, weight, free_weight, at) if smooth else None
    belief = np.zeros((len(start), len(at), n_nodes))
    smoothed = belief.copy() if smooth else None
    n_lost = np.zeros(len(start), np.int64)
    first = motion.first_state_of[:-1]
    for i, node in enumerate(start.tolist()):
        in_states[:] = 0.0
        n_lost[i] = _follow(
            motion, lives, present, node, weight, free_weight, at, in_states, capacity
        )
        belief[i] = np.add.reduceat(in_states, first, axis=1)
        if smoothed is not None and later is not None:
            both = np.add.reduceat(in_states * later, first, axis=1)
            total = both.sum(axis=1, keepdims=True)
            # A target that is lost later contradicts what follows: the filter stands.
            fits = total > 0
            smoothed[i] = np.where(fits, both / np.where(fits, total, 1.0), belief[i])
    return Tracks(belief, smoothed, n_lost)


def odds_of_whole_atoms(
    observed: Observed, place: Int32Array, atom_of: IntArray, *, ticks: IntArray
) -> FloatArray:
    """Learn how much more often the whole atoms of a region hold a device than its other nodes.

    A region made of atoms contains those of its members whole, and parts of others between them.
    Who knows the atoms, which are public, can tell them apart.

    Parameters
    ----------
    place
        Node of each device to learn from at each tick, negative if absent, shape
        (ticks, devices).
    atom_of
        Atom of each node, negative if it is in none, shape (nodes,).
    ticks
        The ticks to learn from.

    Returns
    -------
    odds
        Mean number of devices at an entry of its kind, shape of `observed.node`.
    """
    found = _covered_atoms(observed, atom_of)
    whole = (atom_of[observed.node] < 0) | found.is_whole[found.pair_of]
    instants = instants_of(observed)
    n_entries, n_devices = np.ones(2), np.ones(2)
    for t in ticks.tolist():
        n_at = np.bincount(place[t][place[t] >= 0], minlength=len(atom_of))
        first, last = np.searchsorted(instants.tick, (t, t + 1))
        for r in instants.region[first:last].tolist():
            entries = slice(observed.first_node_of[r], observed.first_node_of[r + 1])
            n_entries += np.bincount(whole[entries], minlength=2)
            n_devices += np.bincount(whole[entries], n_at[observed.node[entries]], 2)
    odds: FloatArray = (n_devices / n_entries)[whole.astype(np.int64)]
    return odds


def pieces_held(observed: Observed, place: Int32Array, *, ticks: IntArray) -> tuple[int, int]:
    """Count the covered pieces of some ticks, and those of them that hold a device.

    A piece (atom) is a largest set of nodes that every region of the release covers together or
    not at all: the finest resolution at which the release says anything.

    Parameters
    ----------
    place
        Node of each device at each tick, negative if absent, shape (ticks, devices).
    ticks
        The ticks to count in, rising.

    Notes
    -----
    Pieces are found by adding up 64 random bits of each region at its nodes, so two pieces are
    taken for one with a probability of about n^2 / 2^64. O(nodes of the regions + devices *
    ticks).
    """
    n_nodes = int(max(observed.node.max(), place.max())) + 1
    bits = np.random.default_rng(0).integers(2**63, size=observed.n_regions, dtype=np.uint64)
    of_node = np.zeros(n_nodes, np.uint64)
    np.add.at(of_node, observed.node, np.repeat(bits, observed.region_size))
    piece_of = np.unique(of_node, return_inverse=True)[1].astype(np.int64)
    instants = instants_of(observed)
    n_covered, n_held = 0, 0
    for t in ticks.tolist():
        covered = np.zeros(n_nodes, np.bool_)
        first, last = np.searchsorted(instants.tick, (t, t + 1))
        for region in np.unique(instants.region[first:last]).tolist():
            piece = observed.node[
                observed.first_node_of[region] : observed.first_node_of[region + 1]
            ]
            covered[piece_of[piece]] = True
        there = place[t][place[t] >= 0]
        held = np.zeros(n_nodes, np.bool_)
        held[piece_of[there]] = True
        n_covered += int(covered.sum())
        n_held += int((covered & held).sum())
    return n_covered, n_held


class _CoveredAtoms(NamedTuple):
    """Distinct pairs of a region and an atom of which it has nodes, by region.

    `pair_of` is the pair of each entry of `observed.node`; nodes without an atom have a pair with
    atom 0.
    """

    region: IntArray
    atom: IntArray
    is_whole: BoolArray
    pair_of: IntArray


def _covered_atoms(observed: Observed, atom_of: IntArray) -> _CoveredAtoms:
    n_nodes_in = np.bincount(atom_of + 1)[1:]
    atom = atom_of[observed.node]
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    pairs, pair_of = np.unique(region * len(n_nodes_in) + np.maximum(atom, 0), return_inverse=True)
    n_covered = np.bincount(pair_of, atom >= 0, len(pairs))
    region, atom = np.divmod(pairs, len(n_nodes_in))
    return _CoveredAtoms(region, atom, n_covered >= n_nodes_in[atom], pair_of)


def _within(tick: IntArray, ticks: slice) -> BoolArray:
    inside: BoolArray = (tick >= ticks.start) & (tick < ticks.stop)
    return inside


def _lives(
    tick: IntArray,
    life_of: IntArray,
    region_of: IntArray,
    size: FloatArray,
    *,
    n_ticks: int,
    first_node_of: IntArray,
    node: Int32Array,
    odds: FloatArray | None = None,
) -> Lives:
    order = np.argsort(tick, kind="stable")
    first = np.full(len(size), n_ticks, np.int64)
    last = np.full(len(size), -1, np.int64)
    np.minimum.at(first, life_of, tick)
    np.maximum.at(last, life_of, tick)
    return Lives(
        starts_of(np.bincount(tick, minlength=n_ticks)),
        life_of[order].astype(np.int64),
        region_of[order].astype(np.int64),
        first,
        last,
        size,
        first_node_of.astype(np.int64),
        node,
        np.ones(len(node)) if odds is None else odds,
    )


def _capacity(lives: Lives, motion: Motion) -> int:
    """Return the most states in which lives hold a belief at a tick, at least all states."""
    n_states = np.diff(motion.first_state_of)[lives.node]
    in_region = np.diff(np.concatenate([[0], np.cumsum(n_states)])[lives.first_node_of])
    most = np.zeros(len(lives.size), np.int64)
    np.maximum.at(most, lives.life_of, in_region[lives.region_of])
    change = np.zeros(lives.n_ticks + 1, np.int64)
    np.add.at(change, lives.first_tick_of, most)
    np.subtract.at(change, lives.last_tick_of + 1, most)
    return max(int(np.cumsum(change).max(initial=0)), motion.n_states)


class _Work(NamedTuple):
    """Masses by state, all zero between two steps, and lists of the states that have any."""

    now: FloatArray
    now_listed: Int32Array
    moved: FloatArray
    moved_listed: Int32Array
    after: FloatArray
    after_listed: Int32Array


@kernel
def _advance(motion: Motion, work: _Work, state: Int32Array, mass: FloatArray, n: int) -> int:  # noqa: C901, PLR0912, PLR0915  one compiled loop
    """Let the masses in the first `n` states move for one tick, in place; return their number."""
    now, now_listed = work.now, work.now_listed
    moved, moved_listed = work.moved, work.moved_listed
    after, after_listed = work.after, work.after_listed
    n_now, n_after = 0, 0
    for i in range(n):
        s = state[i]
        goes = mass[i] * motion.leave[motion.node_of[s]]
        stays = mass[i] - goes
        if stays > 0.0:
            if after[s] == 0.0:
                after_listed[n_after] = s
                n_after += 1
            after[s] += stays
        if goes > 0.0:
            if now[s] == 0.0:
                now_listed[n_now] = s
                n_now += 1
            now[s] += goes
    for stop in motion.stop:
        n_moved = 0
        for i in range(n_now):
            s = now_listed[i]
            goes = now[s]
            now[s] = 0.0
            v = motion.node_of[s]
            arc = motion.first_arc_of[v]
            turns = motion.first_turn_of[s]
            for j in range(motion.first_arc_of[v + 1] - arc):
                to = motion.next_state_of[arc + j]
                share = goes * motion.turn[turns + j]
                if share > 0.0:
                    if moved[to] == 0.0:
                        moved_listed[n_moved] = to
                        n_moved += 1
                    moved[to] += share
        n_now = 0
        for i in range(n_moved):
            s = moved_listed[i]
            stays = moved[s] * stop
            goes = moved[s] - stays
            moved[s] = 0.0
            if stays > 0.0:
                if after[s] == 0.0:
                    after_listed[n_after] = s
                    n_after += 1
                after[s] += stays
            if goes > 0.0:
                now_listed[n_now] = s
                n_now += 1
                now[s] = goes
    n = 0
    for i in range(n_after):
        s = after_listed[i]
        if after[s] > TINY:
            state[n] = s
            mass[n] = after[s]
            n += 1
        after[s] = 0.0
    return n


@kernel
def _follow(  # noqa: C901, PLR0912, PLR0915  one compiled loop
    motion: Motion,
    lives: Lives,
    n_present: FloatArray,
    start: int,
    weight: FloatArray,
    free_weight: FloatArray,
    at: IntArray,
    belief: FloatArray,
    capacity: int,
) -> int:
    """Filter one target, or the crowd (`CROWD`), which sets the weights for the targets.

    A mass is *free* if it is in no life: it may begin one at the next tick. `belief` gets the
    probability of each state at the ticks `at`.
    """
    crowd = start < 0
    n_states, n_nodes = len(motion.node_of), len(motion.leave)
    n_lives = len(lives.size)
    work = _Work(
        np.zeros(n_states),
        np.empty(n_states, np.int32),
        np.zeros(n_states),
        np.empty(n_states, np.int32),
        np.zeros(n_states),
        np.empty(n_states, np.int32),
    )
    # The free masses, as a list (predicted) and by state.
    state, mass = np.empty(n_states, np.int32), np.empty(n_states)
    by_state, listed = np.zeros(n_states), np.zeros(n_states, np.bool_)
    # One life at a time.
    one_state, one_mass = np.empty(n_states, np.int32), np.empty(n_states)
    # The masses in lives, before and after a tick; those of lives that end at the tick come last.
    old_state, old_mass = np.empty(capacity, np.int32), np.empty(capacity)
    new_state, new_mass = np.empty(capacity, np.int32), np.empty(capacity)
    ended_state, ended_mass = np.empty(capacity, np.int32), np.empty(capacity)
    first, size = np.zeros(n_lives, np.int64), np.zeros(n_lives, np.int64)
    behind = np.zeros(n_lives, np.int64)
    published_at = np.full(n_lives, -1, np.int64)
    alive, n_alive = np.empty(n_lives, np.int64), 0
    inside = np.full(n_nodes, -1, np.int64)
    odds, factor = np.empty(n_nodes), np.empty(n_nodes)
    n_free, n_old, n_lost = 0, 0, 0
    if not crowd:
        state[0], mass[0], n_free = motion.first_state_of[start], 1.0, 1
    for t in range(len(lives.first_record_of) - 1):
        if t > 0:
            n_free = _advance(motion, work, state, mass, n_free)
        n_listed = n_free
        for i in range(n_free):
            by_state[state[i]] = mass[i]
            listed[state[i]] = True
        begun, in_lives = 0.0, 0.0
        for i in range(n_alive):
            in_lives += lives.size[alive[i]]
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            if lives.first_tick_of[lives.life_of[r]] == t:
                begun += lives.size[lives.life_of[r]]
        if crowd:
            # Devices that are new, or that the model has lost, are anywhere.
            remaining = max(0.0, n_present[t] - in_lives - begun)
            expected = 0.0
            for i in range(n_free):
                expected += mass[i]
            births = begun + remaining - expected
            if births > TINY * n_nodes:
                expected += births
                for v in range(n_nodes):
                    s = motion.first_state_of[v]
                    by_state[s] += births / n_nodes
                    if not listed[s]:
                        listed[s] = True
                        state[n_listed] = s
                        n_listed += 1
            free_weight[t] = remaining / expected if expected > 0.0 else 0.0
        factor[:] = free_weight[t]
        total = 0.0
        n_new, n_ended = 0, 0
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            c = lives.life_of[r]
            published_at[c] = t
            lo = lives.first_node_of[lives.region_of[r]]
            hi = lives.first_node_of[lives.region_of[r] + 1]
            if lives.first_tick_of[c] == t:
                if crowd:
                    expected = 0.0
                    for j in range(lo, hi):
                        v = lives.node[j]
                        for s in range(motion.first_state_of[v], motion.first_state_of[v + 1]):
                            expected += by_state[s] * lives.odds[j]
                    weight[r] = lives.size[c] / expected if expected > 0.0 else 0.0
                if lives.last_tick_of[c] == t:
                    for j in range(lo, hi):
                        factor[lives.node[j]] += weight[r] * lives.odds[j]
                    continue
                alive[n_alive] = c
                n_alive += 1
                first[c] = n_new
                for j in range(lo, hi):
                    v = lives.node[j]
                    for s in range(motion.first_state_of[v], motion.first_state_of[v + 1]):
                        m = by_state[s] * weight[r] * lives.odds[j]
                        if m > TINY:
                            new_state[n_new] = s
                            new_mass[n_new] = m
                            n_new += 1
                            total += m
                size[c] = n_new - first[c]
                continue
            n = size[c]
            if n == 0 and not crowd:
                continue
            for i in range(n):
                one_state[i] = old_state[first[c] + i]
                one_mass[i] = old_mass[first[c] + i]
            for _ in range(behind[c] + 1):
                n = _advance(motion, work, one_state, one_mass, n)
            behind[c] = 0
            for j in range(lo, hi):
                inside[lives.node[j]] = r
                odds[lives.node[j]] = lives.odds[j]
            expected = 0.0
            for i in range(n):
                v = motion.node_of[one_state[i]]
                one_mass[i] = one_mass[i] * odds[v] if inside[v] == r else 0.0
                expected += one_mass[i]
            factor_r = weight[r]
            if crowd and expected > 0.0:
                weight[r] = lives.size[c] / expected
                factor_r = weight[r]
            elif crowd:
                # The model rules the region out, but it was published.
                weight[r], factor_r, n = 0.0, 1.0, 0
                for j in range(lo, hi):
                    one_state[n] = motion.first_state_of[lives.node[j]]
                    one_mass[n] = lives.size[c] / (hi - lo)
                    n += 1
            ends = lives.last_tick_of[c] == t
            first[c] = n_new
            for i in range(n):
                m = one_mass[i] * factor_r
                if m > TINY:
                    total += m
                    if ends:
                        ended_state[n_ended] = one_state[i]
                        ended_mass[n_ended] = m
                        n_ended += 1
                    else:
                        new_state[n_new] = one_state[i]
                        new_mass[n_new] = m
                        n_new += 1
            size[c] = n_new - first[c]
        # Lives that published nothing at this tick stay as they are, one step behind.
        kept = 0
        for i in range(n_alive):
            c = alive[i]
            if published_at[c] < t:
                for j in range(size[c]):
                    new_state[n_new + j] = old_state[first[c] + j]
                    new_mass[n_new + j] = old_mass[first[c] + j]
                    total += old_mass[first[c] + j]
                first[c] = n_new
                n_new += size[c]
                behind[c] += 1
            if lives.last_tick_of[c] > t:
                alive[kept] = c
                kept += 1
        for i in range(n_listed):
            total += by_state[state[i]] * factor[motion.node_of[state[i]]]
        if total <= 0.0 and not crowd:
            # Nothing published fits: no life, and no observation.
            n_lost += 1
            factor[:] = 1.0
            n_old = _advance(motion, work, old_state, old_mass, n_old)
            for i in range(n_old):
                s = old_state[i]
                by_state[s] += old_mass[i]
                if not listed[s]:
                    listed[s] = True
                    state[n_listed] = s
                    n_listed += 1
            for i in range(n_listed):
                total += by_state[state[i]]
            n_new, n_ended = 0, 0
            size[:] = 0
        n_alive = kept
        scale = 1.0 if crowd else 1.0 / total
        for i in range(n_listed):
            by_state[state[i]] *= factor[motion.node_of[state[i]]]
        for i in range(n_ended):
            s = ended_state[i]
            by_state[s] += ended_mass[i]
            if not listed[s]:
                listed[s] = True
                state[n_listed] = s
                n_listed += 1
        n_free = 0
        for i in range(n_listed):
            s = state[i]
            m = by_state[s] * scale
            by_state[s] = 0.0
            listed[s] = False
            if m > TINY:
                state[n_free] = s
                mass[n_free] = m
                n_free += 1
        for i in range(n_new):
            new_mass[i] *= scale
        old_state, new_state = new_state, old_state
        old_mass, new_mass = new_mass, old_mass
        n_old = n_new
        for k in range(len(at)):
            if at[k] != t:
                continue
            for i in range(n_free):
                belief[k, state[i]] += mass[i]
            for a in range(n_alive):
                c = alive[a]
                n = size[c]
                for i in range(n):
                    one_state[i] = old_state[first[c] + i]
                    one_mass[i] = old_mass[first[c] + i]
                for _ in range(behind[c]):
                    n = _advance(motion, work, one_state, one_mass, n)
                for i in range(n):
                    belief[k, one_state[i]] += one_mass[i]
    return n_lost


@kernel
def _look_back(  # noqa: C901  one compiled loop
    motion: Motion, lives: Lives, weight: FloatArray, free_weight: FloatArray, at: IntArray
) -> FloatArray:
    """Return the likelihood of what follows each state, up to a factor, shape (ticks, states)."""
    n_states, n_nodes = len(motion.node_of), len(motion.leave)
    later = np.ones((len(at), n_states))
    follows, moved = np.ones(n_states), np.empty(n_states)
    seen, onward = np.empty(n_states), np.empty(n_states)
    factor = np.empty(n_nodes)
    for t in range(len(lives.first_record_of) - 2, -1, -1):
        for k in range(len(at)):
            if at[k] == t:
                later[k] = follows
        factor[:] = free_weight[t]
        for r in range(lives.first_record_of[t], lives.first_record_of[t + 1]):
            region = lives.region_of[r]
            for j in range(lives.first_node_of[region], lives.first_node_of[region + 1]):
                factor[lives.node[j]] += weight[r] * lives.odds[j]
        for s in range(n_states):
            seen[s] = factor[motion.node_of[s]] * follows[s]
        most = seen.max()
        if most <= 0.0:
            break
        seen /= most
        onward[:] = 0.0
        for k in range(len(motion.stop) - 1, -1, -1):
            stop = motion.stop[k]
            for s in range(n_states):
                onward[s] = stop * seen[s] + (1.0 - stop) * onward[s]
            for s in range(n_states):
                v = motion.node_of[s]
                arc, turns = motion.first_arc_of[v], motion.first_turn_of[s]
                moved[s] = 0.0
                for j in range(motion.first_arc_of[v + 1] - arc):
                    moved[s] += motion.turn[turns + j] * onward[motion.next_state_of[arc + j]]
            onward[:] = moved
        for s in range(n_states):
            leave = motion.leave[motion.node_of[s]]
            follows[s] = (1.0 - leave) * seen[s] + leave * onward[s]
    return later
