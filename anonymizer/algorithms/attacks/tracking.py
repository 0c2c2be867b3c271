"""The tracking attack: the place of a device some minutes after one known position.

The adversary knows the node of a device at one tick, the release from that tick on, the network,
and a motion model learned from other devices. A forward filter keeps the probability of each state
of the motion model (Hoh and Gruteser follow paths through unnamed positions in this way [1]_,
Wiedersheim et al. through pseudonyms that change [2]_; Shokri et al. measure location privacy as
the error of such an inference, and smooth it with what follows [3]_).

The adversary reads the release as a set of lives, see `lives`.

Likelihood. The same filter first runs for the crowd: the expected number of devices in each state
given the release so far. A life of m devices in region R, where the crowd model expects e of those
who could be in it, is m / e times as likely if the target is one of them. At the first tick the
crowd is uniform, and this is the intensity m / |R|, times a constant. Later it does not count the
same crowd twice, which multiplying the intensities of successive ticks would do. Within a region
the adversary may know better than uniform odds: see `lives.odds_of_whole_atoms`.

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

from anonymizer.algorithms.attacks.lives import CROWD, Lives
from anonymizer.algorithms.attacks.motion import Motion
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

TINY = 1e-15
"""Probabilities and expected numbers of devices below this count as zero."""


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
