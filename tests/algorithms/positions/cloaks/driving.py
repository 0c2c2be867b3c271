"""Simulated drives: devices that move, an operator that cloaks them, and all that it released."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Company, cut_into_levels
from anonymizer.algorithms.positions.cloaks import Cloak, Epochs, SessionCloak, SnapshotCloak
from anonymizer.algorithms.positions.operator import CloakingOperator, TickResult
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.spanning_forest import spanning_forest
from anonymizer.algorithms.positions.verification import Transcripts
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome

SIZES = (1, 2, 4)
"""Sizes of the atoms at each level, in multiples of the smallest."""
TWO = DensityRule(steps=(), values=(2,))
Where = Mapping[int, int]
"""Node that each reporting device reports; -1: off the graph."""


class Shared(NamedTuple):
    """A published region and the members that share it."""

    now: float
    k: int
    region: tuple[int, ...]
    members: tuple[int, ...]
    versions: tuple[int, ...]

    @property
    def lives(self) -> list[tuple[int, int]]:
        """Slot and version of each pseudonym."""
        return list(zip(self.members, self.versions, strict=True))


def session_cloak(
    network: RoadNetwork,
    *,
    rule: DensityRule = TWO,
    epochs: Epochs = Epochs(1, 0),  # noqa: B008  frozen
    min_nodes: int = 1,
    max_nodes: int = 1000,
    pace: Pace | None = None,
    k_extra: int = 0,
    beat_s: float = 0.0,
    company: Company = Company(),  # noqa: B008  immutable
    parked_s: float | None = None,
    sizes: Sequence[float] = SIZES,
    wider: float = 1.0,
) -> SessionCloak:
    return SessionCloak(
        network,
        cut_into_levels(
            network,
            spanning_forest(network),
            min_nodes=min_nodes,
            cap=max_nodes,
            sizes=sizes,
            wider=wider,
        ),
        rule=rule,
        epochs=epochs,
        pace=pace or Pace(ttl_s=120.0, epoch_s=60.0),
        max_nodes=max_nodes,
        k_extra=k_extra,
        beat_s=beat_s,
        company=company,
        parked_s=parked_s,
    )


def snapshot_cloak(
    network: RoadNetwork,
    *,
    rule: DensityRule = TWO,
    min_nodes: int = 1,
    max_nodes: int = 1000,
    k_extra: int = 0,
    company: Company = Company(),  # noqa: B008  immutable
    wider: float = 1.0,
) -> SnapshotCloak:
    forest = spanning_forest(network)
    return SnapshotCloak(
        network,
        forest,
        cut_into_levels(network, forest, min_nodes=min_nodes, sizes=SIZES, wider=wider),
        rule,
        max_nodes=max_nodes,
        rotate_s=300,
        k_extra=k_extra,
        company=company,
    )


class Drive:
    """Feeds an operator and records what it releases."""

    def __init__(
        self, network: RoadNetwork, cloak: Cloak, *, ttl_s: float = 120, k_floor: int = 2
    ) -> None:
        transcripts = Transcripts() if isinstance(cloak, SessionCloak) else None
        self.cloak = cloak
        self.operator = CloakingOperator(
            network,
            cloak,
            pace=Pace(ttl_s=ttl_s, epoch_s=0.0),
            k_floor=k_floor,
            transcripts=transcripts,
        )
        self.released: list[Shared] = []
        self.last: TickResult

    def tick(self, where: Where, *, now: float) -> list[Shared]:
        """Process the reports of some devices; return what is released."""
        slot = np.array(list(where), np.int32)
        node = np.array(list(where.values()), np.int32)
        self.last = self.operator.tick(slot, np.full(len(slot), now), node, now=now)
        shared = shared_of(self.last, now)
        self.released += shared
        return shared

    @property
    def outcomes(self) -> list[str]:
        """Outcomes of the positions of the last tick, in their order."""
        return [Outcome(o).name for o in self.last.outcome.tolist()]


def shared_of(result: TickResult, now: float) -> list[Shared]:
    release = result.release
    rows = zip(
        release.k.tolist(),
        pairwise(release.first_node_of.tolist()),
        pairwise(release.first_member_of.tolist()),
        strict=True,
    )
    node, member, version = (a.tolist() for a in (release.node, release.member, release.version))
    return [
        Shared(now, k, tuple(node[a:b]), tuple(member[c:d]), tuple(version[c:d]))
        for k, (a, b), (c, d) in rows
    ]


def traffic(network: RoadNetwork, n_devices: int, *, seed: int, says: float) -> Iterator[Where]:
    """Yield the reports of each tick, for ever.

    Devices move to neighbours at random and report with the probability `says`; some appear
    later, some fall silent for good, some leave the graph for a while.
    """
    random = Random(seed)  # noqa: S311  not for cryptography
    node = {d: random.randrange(network.n_nodes) for d in range(n_devices)}
    comes = {d: random.choice((0, 0, 0, 7, 25)) for d in node}
    goes = {d: random.choice((33, 58, 10**9, 10**9, 10**9)) for d in node}
    tick = 0
    while True:
        reports: dict[int, int] = {}
        for d, v in node.items():
            first, last = network.first_arc_of[v : v + 2].tolist()
            if random.random() < 0.3:
                node[d] = int(network.neighbour_of[random.randrange(first, last)])
            if comes[d] <= tick < goes[d] and random.random() < says:
                reports[d] = -1 if random.random() < 0.01 else node[d]
        yield reports
        tick += 1
