"""Who chooses when to look: how many true positions find a name, if the moments are well chosen.

The adversary reads a release of some minutes, may look a few times where a target is, and then
names a pseudonym of it. What a look says is weighed as in `known_positions`. Moments are chosen one
by one, by what is expected of the next look: how sure the best guess will be, or how much is
learned [1]_. Looks a minute apart, and at random, are what a look is worth without a choice. A
model that was trained on what looks told in another fleet chose no better.

Who cannot follow the target may watch a part of the town instead, and sees whether the target is
there at that moment: then places are chosen with the moments.

References
----------
.. [1] A. Krause, C. Guestrin, "Near-optimal nonmyopic value of information in graphical models",
   UAI 2005.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.attacks.evidence import SLIP
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.app.audit import Case
from anonymizer.app.audit.publications import last_records, true_traffic
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.scores import Score
from experiments.tracking_experiment import drive, released

SECONDS = 420
BEGINS_S, ENDS_S = 90, 390
"""The window in which the adversary may look, in seconds of the trace."""
TICK_S = 5.0
MOST_LOOKS = 6
MOST_WATCHES = 12
"""Watches of one place, each of which tells less than a look."""
N_PARTS = 32
"""Parts of the town that can be watched."""
N_TARGETS = 60
MODES = ("session", "snapshot", "bfs")


class _Window(NamedTuple):
    """What is published at the moments of a window.

    Attributes
    ----------
    region
        Region of each name at each moment, negative for none, shape (moments, names).
    first_node_of, node
        Nodes of the regions, as in `Observed`.
    place
        Node of each device at each moment, negative if it is absent, shape (moments, devices).
    device_of
        Device of each name.
    part_of
        Part of the town of each node, shape (nodes,).
    share
        Share of each region in each part, for the regions of each moment in rising order, shapes
        (regions, parts).
    """

    region: IntArray
    first_node_of: IntArray
    node: IntArray
    place: IntArray
    device_of: IntArray
    n_nodes: int
    part_of: IntArray
    share: list[FloatArray]

    def covers(self, region: int, node: int) -> bool:
        """Return whether a region has a node."""
        first, end = self.first_node_of[region : region + 2]
        return bool((self.node[first:end] == node).any())


def window_of(case: Case, until: FloatArray) -> _Window:
    """Return what a release says at the moments of the window."""
    begun = float(case.reports.ts.min())
    times = begun + np.arange(BEGINS_S, ENDS_S, TICK_S)
    records = np.stack(last_records(case.observed, times, until))
    region = np.where(records >= 0, case.observed.region_of[records], -1)
    place = true_traffic(case.reports, case.network, times, present_s=2 * TICK_S).place
    part_of = compact_parts(case.network, N_PARTS).astype(np.int64)
    observed = case.observed
    region_of = np.repeat(np.arange(observed.n_regions), observed.region_size)
    at = region_of * N_PARTS + part_of[observed.node]
    n_in = np.bincount(at, minlength=observed.n_regions * N_PARTS).reshape(-1, N_PARTS)
    share = n_in / observed.region_size[:, None]
    return _Window(
        region,
        observed.first_node_of,
        observed.node.astype(np.int64),
        place.astype(np.int64),
        case.device_of,
        case.network.n_nodes,
        part_of,
        [share[np.unique(row[row >= 0])] for row in region],
    )


class _Looks:
    """What an adversary believes after some looks, and expects of the next one."""

    def __init__(self, window: _Window) -> None:
        self._window = window
        self.log_weight = np.zeros(window.region.shape[1])
        self._groups = []
        size = np.diff(window.first_node_of)
        for row in window.region:
            alive = np.flatnonzero(row >= 0)
            regions, group_of = np.unique(row[alive], return_inverse=True)
            self._groups.append((alive, regions, group_of, size[regions]))

    def belief(self, t: int) -> tuple[IntArray, FloatArray]:
        """Return the names in use at a moment, and the probability of each."""
        alive = self._groups[t][0]
        weight = np.exp(self.log_weight[alive] - self.log_weight[alive].max(initial=-np.inf))
        return alive, weight / weight.sum()

    def see(self, t: int, node: int) -> None:
        """Take in that the target is at a node."""
        window = self._window
        alive, regions, group_of, size = self._groups[t]
        covers = np.array([window.covers(r, node) for r in regions.tolist()])
        told = np.where(covers, -np.log(size), np.log(SLIP / window.n_nodes))
        self.log_weight[alive] += told[group_of]

    def watch(self, t: int, part: int, *, there: bool) -> None:
        """Take in whether the target is in a part of the town."""
        alive, _, group_of, _ = self._groups[t]
        share = np.clip(self._window.share[t][:, part], SLIP, 1.0 - SLIP)
        self.log_weight[alive] += np.log(share if there else 1.0 - share)[group_of]

    def expected_by_part(self, t: int) -> tuple[FloatArray, FloatArray]:
        """Return, of a watch of each part, what `expected` does of a look, shape (parts,)."""
        _, regions, group_of, _ = self._groups[t]
        share = self._window.share[t]
        best, whole = np.zeros(len(regions)), np.zeros(len(regions))
        weight = self.belief(t)[1]
        np.maximum.at(best, group_of, weight)
        np.add.at(whole, group_of, weight)
        yes, no = (best[:, None] * each for each in (share, 1.0 - share))
        surest = yes.max(axis=0, initial=0.0) + no.max(axis=0, initial=0.0)
        return surest, _entropy(whole @ share) - whole @ _entropy(share)

    def expected(self, t: int) -> tuple[float, float]:
        """Return how sure the best guess after a look is expected to be, and what is learned."""
        window = self._window
        alive, regions, group_of, _ = self._groups[t]
        if not len(alive):
            return 0.0, 0.0
        return _expected(
            self.belief(t)[1],
            group_of,
            regions,
            window.first_node_of,
            window.node,
            window.n_nodes,
        )


def _entropy(share: FloatArray) -> FloatArray:
    """Return the entropy of answers of yes in so many cases (nats)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    return np.nan_to_num(found)


@kernel
def _expected(  # noqa: PLR0917  kernels take no keywords
    weight: FloatArray,
    group_of: IntArray,
    regions: IntArray,
    first_node_of: IntArray,
    node: IntArray,
    n_nodes: int,
) -> tuple[float, float]:
    """Return the expected belief in the best guess, and the information of the place (nats)."""
    best, whole = np.zeros(len(regions)), np.zeros(len(regions))
    for i in range(len(weight)):
        best[group_of[i]] = max(best[group_of[i]], weight[i])
        whole[group_of[i]] += weight[i]
    surest, density = np.zeros(n_nodes), np.zeros(n_nodes)
    learned = 0.0
    for g in range(len(regions)):
        nodes = node[first_node_of[regions[g]] : first_node_of[regions[g] + 1]]
        size = len(nodes)
        learned -= whole[g] * np.log(size)
        for v in nodes:
            surest[v] = max(surest[v], best[g] / size)
            density[v] += whole[g] / size
    for v in range(n_nodes):
        if density[v] > 0:
            learned -= density[v] * np.log(density[v])
    return surest.sum(), learned


Choice = Callable[[_Looks, list[int], np.random.Generator], int]
"""Returns the next moment to look at, given those that were."""


def _greedy(number: int, n_moments: int) -> Choice:
    def choose(looks: _Looks, seen: list[int], _rng: np.random.Generator) -> int:
        value = [-np.inf if t in seen else looks.expected(t)[number] for t in range(n_moments)]
        return int(np.argmax(value))

    return choose


def _at_random(n_moments: int) -> Choice:
    def choose(_looks: _Looks, seen: list[int], rng: np.random.Generator) -> int:
        return int(rng.choice(np.setdiff1d(np.arange(n_moments), seen)))

    return choose


def _each_minute(n_moments: int) -> Choice:
    step = round(60.0 / TICK_S)

    def choose(_looks: _Looks, seen: list[int], _rng: np.random.Generator) -> int:
        return (len(seen) * step + len(seen) * step // n_moments) % n_moments

    return choose


def names_found(
    window: _Window,
    targets: IntArray,
    watched: IntArray,
    choose: Choice,
    *,
    seed: int,
) -> FloatArray:
    """Return how often a name of each target is found after each number of looks.

    Parameters
    ----------
    watched
        Whom the adversary looks at in place of each target: itself, or somebody else.

    Returns
    -------
    found
        Shape (targets, `MOST_LOOKS`).
    """
    rng = np.random.default_rng(seed)
    found = np.zeros((len(targets), MOST_LOOKS))
    for i, (target, who) in enumerate(zip(targets.tolist(), watched.tolist(), strict=True)):
        looks, seen = _Looks(window), list[int]()
        own = window.device_of == target
        for look in range(MOST_LOOKS):
            t = choose(looks, seen, rng)
            looks.see(t, int(window.place[t, who]))
            seen.append(t)
            found[i, look] = _guessed(looks, seen, own)
    return found


Place: TypeAlias = Callable[[_Looks, set[tuple[int, int]], np.random.Generator], tuple[int, int]]
"""Returns the next moment and part to watch, given those that were watched."""


def _best_place(number: int, n_moments: int) -> Place:
    def choose(
        looks: _Looks, seen: set[tuple[int, int]], _rng: np.random.Generator
    ) -> tuple[int, int]:
        value = np.stack([looks.expected_by_part(t)[number] for t in range(n_moments)])
        for each in seen:
            value[each] = -np.inf
        t, part = np.unravel_index(value.argmax(), value.shape)
        return int(t), int(part)

    return choose


def _any_place(n_moments: int) -> Place:
    def choose(
        _looks: _Looks, _seen: set[tuple[int, int]], rng: np.random.Generator
    ) -> tuple[int, int]:
        return int(rng.integers(n_moments)), int(rng.integers(N_PARTS))

    return choose


def names_watched(
    window: _Window, targets: IntArray, watched: IntArray, choose: Place, *, seed: int
) -> FloatArray:
    """Return how often a name of each target is found after each number of watches.

    The parameters are those of `names_found`; shape (targets, `MOST_WATCHES`).
    """
    rng = np.random.default_rng(seed)
    found = np.zeros((len(targets), MOST_WATCHES))
    for i, (target, who) in enumerate(zip(targets.tolist(), watched.tolist(), strict=True)):
        looks, seen = _Looks(window), set[tuple[int, int]]()
        own = window.device_of == target
        for look in range(MOST_WATCHES):
            t, part = choose(looks, seen, rng)
            looks.watch(t, part, there=bool(window.part_of[window.place[t, who]] == part))
            seen.add((t, part))
            found[i, look] = _guessed(looks, sorted({each for each, _ in seen}), own)
    return found


def _guessed(looks: _Looks, seen: list[int], own: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    """Return how often the surest name of all moments is right; among equals, one is guessed."""
    surest, right = -1.0, 0.0
    for t in seen:
        alive, weight = looks.belief(t)
        best = float(weight.max())
        if best > surest + 1e-9:
            equal = weight >= best - 1e-9
            surest, right = best, float(own[alive][equal].mean())
    return right


def run_moments(
    network: RoadNetwork,
    *,
    n_devices: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Find names in each mode with some looks, or watches of places, chosen in each way."""
    for mode in MODES:
        progress(f"moments: {mode}")
        window = _published(network, n_devices, mode, seed)
        n_moments = len(window.region)
        rng = np.random.default_rng(seed)
        usable = np.flatnonzero((window.place >= 0).all(axis=0))
        targets = rng.permutation(np.intersect1d(usable, window.device_of))[:N_TARGETS]
        choices = {
            "at random": _at_random(n_moments),
            "a minute apart": _each_minute(n_moments),
            "chosen by information": _greedy(1, n_moments),
            "chosen by the guess": _greedy(0, n_moments),
        }
        for name, choose in choices.items():
            find = partial(names_found, window, targets, choose=choose, seed=seed)
            yield from _scores(f"moments: {{}} {name}", mode, find, targets)
        places = {
            "at random": _any_place(n_moments),
            "chosen by information": _best_place(1, n_moments),
            "chosen by the guess": _best_place(0, n_moments),
        }
        for name, place in places.items():
            watch = partial(names_watched, window, targets, choose=place, seed=seed)
            yield from _scores(f"places: {{}} {name}", mode, watch, targets)


def _scores(
    attack: str, mode: str, find: Callable[..., FloatArray], targets: IntArray
) -> Iterator[Score]:
    """Yield a row for each number of looks; the control looks at somebody else."""
    begun = time.process_time()
    found = find(watched=targets)
    cpu_s = time.process_time() - begun
    others = find(watched=np.roll(targets, 1))
    for look in range(found.shape[1]):
        name = attack.format(look + 1)
        yield Score(name, mode, found[:, look], others[:, look], cpu_s)


def _published(network: RoadNetwork, n_devices: int, mode: str, seed: int) -> _Window:
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    settings = Settings.model_validate({"region": {"mode": mode}})
    case, release = released(trace, network, settings, tick_s=TICK_S, seed=seed)
    return window_of(case, release.until)
