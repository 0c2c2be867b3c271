"""Who chooses when to look: how many true positions find a name, if the moments are well chosen.

The adversary reads a release of some minutes, may look a few times where a target is, and then
names a pseudonym of it. What a look says is weighed as in `known_positions`. Moments are chosen one
by one, by what is expected of the next look: how sure the best guess will be, or how much is
learned [1]_. Looks a minute apart, and at random, are what a look is worth without a choice. A
model that was trained on what looks told in another fleet chose no better.

References
----------
.. [1] A. Krause, C. Guestrin, "Near-optimal nonmyopic value of information in graphical models",
   UAI 2005.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.attacks.evidence import SLIP
from anonymizer.algorithms.kernels import kernel
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
    """

    region: IntArray
    first_node_of: IntArray
    node: IntArray
    place: IntArray
    device_of: IntArray
    n_nodes: int

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
    return _Window(
        region,
        case.observed.first_node_of,
        case.observed.node.astype(np.int64),
        place.astype(np.int64),
        case.device_of,
        case.network.n_nodes,
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
) -> list[Score]:
    """Find names in each mode with one to `MOST_LOOKS` looks, chosen in each way."""
    scores: list[Score] = []
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
            begun = time.process_time()
            found = names_found(window, targets, targets, choose, seed=seed)
            cpu_s = time.process_time() - begun
            others = names_found(window, targets, np.roll(targets, 1), choose, seed=seed)
            scores += [
                Score(f"moments: {look + 1} {name}", mode, found[:, look], others[:, look], cpu_s)
                for look in range(MOST_LOOKS)
            ]
    return scores


def _published(network: RoadNetwork, n_devices: int, mode: str, seed: int) -> _Window:
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    settings = Settings.model_validate({"region": {"mode": mode}})
    case, release = released(trace, network, settings, tick_s=TICK_S, seed=seed)
    return window_of(case, release.until)
