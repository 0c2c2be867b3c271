"""Who demands more is not found, although everybody else is replaced and it stays."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pytest

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks import Epochs
from anonymizer.algorithms.positions.demands import Demand, SharedDemands
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.networks import load_network
from tests.algorithms.positions.cloaks.driving import Drive, session_cloak

CITY = load_network("city:400")
RULE = DensityRule(steps=(4, 10), values=(6, 4, 2))
SHARED_BY = max(RULE.values)
K = 15
N = 150
EPOCH_S = 600.0
DAY_S = 86_400.0


class World:
    """A fleet that changes: who leaves is followed by a newcomer, but those who demand stay."""

    def __init__(self, seed: int, n_authors: int, *, shared_by: int = SHARED_BY) -> None:
        self.random = np.random.default_rng(seed)
        cloak = session_cloak(
            CITY,
            rule=RULE,
            epochs=Epochs(1, 0.0),
            min_nodes=4,
            pace=Pace(ttl_s=2 * EPOCH_S, epoch_s=EPOCH_S),
        )
        self.driven = Drive(CITY, cloak, ttl_s=2 * EPOCH_S)
        self.node = self.random.integers(CITY.n_nodes, size=N)
        self.id_of = np.arange(N)
        self.n_ids = N
        self.authors = self.random.choice(N, n_authors, replace=False)
        self.key = self.random.integers(0, 2**64, 200_000, np.uint64)
        shared = SharedDemands(shared_by, self.key.take)
        shared.stated = {int(self.key[a]): Demand(K, 0.0) for a in self.authors}
        self.driven.operator.demand(shared)
        self.k_of: defaultdict[int, list[int]] = defaultdict(list)
        """What an adversary sees who knows where everybody is: the k of each group by device."""

    def replace(self, share: float) -> None:
        leaves = np.flatnonzero(self.random.random(N) < share)
        leaves = leaves[~np.isin(leaves, self.authors)]
        self.id_of[leaves] = self.n_ids + np.arange(len(leaves))
        self.n_ids += len(leaves)
        self.node[leaves] = self.random.integers(CITY.n_nodes, size=len(leaves))

    def live(self, *, a_day: float, at_once: float = 0.0) -> None:
        """Let a day pass in which a share of the others is replaced."""
        n = int(DAY_S / EPOCH_S)
        for epoch in range(n):
            if at_once and epoch == n // 2:
                self.replace(at_once)
            self.replace(a_day * EPOCH_S / DAY_S)
            for i, v in enumerate(self.node.tolist()):
                first, last = CITY.first_arc_of[v : v + 2].tolist()
                self.node[i] = CITY.neighbour_of[self.random.integers(first, last)]
            where = dict(zip(self.id_of.tolist(), self.node.tolist(), strict=True))
            for group in self.driven.tick(where, now=epoch * EPOCH_S):
                for member in group.members:
                    self.k_of[member].append(group.k)

    def found(self) -> float:
        """Return how likely a guess is right that takes somebody who is there now.

        Of those who were always in groups of so many, since they came: somebody who was in most.
        """
        always = {
            each: len(k)
            for each, k in self.k_of.items()
            if each in set(self.id_of.tolist()) and min(k) >= K and len(k) >= 6
        }
        return float(np.mean([each in self.authors for each in always])) if always else 0.0


def attacked(
    n: int, n_authors: int, change: Mapping[str, float], *, shared_by: int = SHARED_BY
) -> Mapping[str, float]:
    found = []
    for seed in range(n):
        world = World(seed, n_authors, shared_by=shared_by)
        world.live(**change)
        found.append(world.found())
    return {
        "mean": float(np.mean(found)),
        "tenth": float(np.sort(found)[-max(n // 10, 1) :].mean()),
    }


CHANGES = {
    "a tenth": {"a_day": 0.1},
    "half": {"a_day": 0.5},
    "all": {"a_day": 1.0},
    "all at once": {"a_day": 0.0, "at_once": 1.0},
}
CASES = [
    pytest.param(
        change,
        n,
        id=f"{name}-{n}",
        # Who is alone is most in view where the fleet changes all day.
        marks=[] if (name, n) == ("all", 1) else [pytest.mark.soak],
    )
    for name, change in CHANGES.items()
    for n in (1, 5)
]


@pytest.mark.compiled
@pytest.mark.parametrize(("change", "n_authors"), CASES)
def test_after_a_day_in_which_everybody_else_was_replaced_the_demander_is_not_found(
    change: dict[str, float], n_authors: int
) -> None:
    got = attacked(6, n_authors, change)
    control = attacked(3, n_authors, change, shared_by=1)
    print(change, n_authors, got, control)  # noqa: T201
    assert control["mean"] > 2 / SHARED_BY, "the attack works"
    assert got["mean"] <= 1 / SHARED_BY
