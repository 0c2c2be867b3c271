"""A positions flow on a small grid, driven by hand."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from anonymizer.domain.fixes import Places
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.outputs.counts.private_counts import Budget
from anonymizer.outputs.one_process import Outputs
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow, TickOutput
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.settings import Settings, zones_of
from tests import naive

NETWORK = load_network("grid:5x5")
NOW = 1_800_000_000.0
SECRET = b"of this test"


def a_position(node: int, ts: float | None = None, **more: object) -> dict[str, object]:
    """Return what a device says that stands some metres from a node."""
    return {"lat": NETWORK.lat[node] + 1e-5, "lon": NETWORK.lon[node], "ts": ts, **more}


def delivery(
    device: str, node: int, ts: float | None = None, *, receipt: int = 0, retained: bool = False
) -> Delivery:
    payload = json.dumps(a_position(node, ts)).encode()
    return Delivery(f"positions/{device}", payload, receipt, retained)


def flow_settings(**tables: object) -> Settings:
    """Return settings under which two devices hide each other, whatever the density.

    Groups publish whenever a member reports, no time depends on how often devices report, and ids
    are said to stay.
    """
    defaults: dict[str, dict[str, object]] = {
        "network": {"snap_limit_m": 30},
        "adka": {"density_steps": [], "k_values": [2]},
        "region": {"mode": "adka"},
        "presence": {"ttl_s": 120.0},
        "session": {"beat_s": 0},
    }
    merged = {
        name: {**defaults.get(name, {}), **table} if isinstance(table, dict) else table
        for name, table in tables.items()
    }
    inputs: Any = tables.get("inputs", [{}])
    merged["inputs"] = [{"ids_change_s": 0} | each for each in inputs]
    return Settings.model_validate(defaults | merged)


class Rig:
    """A flow with its inbox; the accounting is checked after every step."""

    def __init__(
        self,
        *,
        queue_limit: int = 1000,
        monotonic: Callable[[], float] | None = None,
        registries: Mapping[Path, Places] | None = None,
        roads: RoadNetwork = NETWORK,
        budget: Budget | None = None,
        **tables: object,
    ) -> None:
        self.ledger = Ledger()
        self.inbox = Inbox(queue_limit, self.ledger)
        seconds = count()
        settings = flow_settings(**tables)
        self.outputs = Outputs(settings, roads, secret=SECRET, budget=budget)
        self.flow = PositionFlow(
            settings,
            with_zones(roads, zones_of(settings.zones)),
            self.ledger,
            secret=SECRET,
            monotonic=monotonic or (lambda: float(next(seconds))),
            registries=registries or {},
            outputs=self.outputs,
        )

    def put(self, *deliveries: Delivery) -> None:
        self.inbox.put(deliveries, at_s=0.0)
        self.check()

    def tick(self, *, now: float = NOW, wall_ahead_s: float = 0.0) -> TickOutput:
        output = self.flow.tick(self.inbox.take(), now=now, wall_ahead_s=wall_ahead_s)
        self.check()
        return output

    def settle(self, output: TickOutput, delivered: Sequence[bool]) -> None:
        self.flow.settle(output, delivered, seconds=0.001)
        self.check()

    def publish(self, *deliveries: Delivery, now: float = NOW) -> list[dict[str, Any]]:
        """Carry deliveries through a tick and out; return the messages."""
        self.put(*deliveries)
        output = self.tick(now=now)
        self.settle(output, [True] * len(output.messages))
        return [json.loads(message.payload) for message in output.messages]

    def check(self) -> None:
        held = self.inbox.n_waiting + self.flow.n_held
        counts = self.ledger.counts()
        assert naive.imbalance(counts, received=self.ledger.n_received, held=held) == 0

    def outcomes(self) -> dict[str, int]:
        """Return the counts that are not zero, by name."""
        return {outcome.name: n for outcome, n in self.ledger.counts().items() if n}
