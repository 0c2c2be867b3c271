"""A running gateway at a glance, in numbers a person reads."""

from dataclasses import dataclass

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.positions.flow import PositionFlow


@dataclass(frozen=True, slots=True)
class Glance:
    """The state of a positions flow since its start.

    Attributes
    ----------
    seconds
        Since the start.
    n_received, n_published, n_messages
        Positions in, positions out, messages they went out in.
    n_held
        Positions on their way.
    refused
        Every other outcome that occurred, by `outcome reason`.
    n_devices
        On the graph now.
    latency_p50_s, latency_p99_s
        Arrival to publication.
    region_p50, region_mean
        Nodes of a published region.
    k_reached_p50
        Distinct devices in a published region.
    """

    seconds: float
    n_received: int
    n_published: int
    n_messages: int
    n_held: int
    refused: dict[str, int]
    n_devices: int
    latency_p50_s: float
    latency_p99_s: float
    region_p50: float
    region_mean: float
    k_reached_p50: float

    @property
    def n_unaccounted(self) -> int:
        """Positions that are in no other number: anything but 0 is a defect."""
        return self.n_received - self.n_published - self.n_held - sum(self.refused.values())


def glance_at(flow: PositionFlow, *, n_waiting: int, seconds: float) -> Glance:
    """Read the flow's counts."""
    stats, ledger = flow.stats, flow.ledger
    refused = {
        " ".join(filter(None, outcome.label)).replace("_", " "): n
        for outcome, n in ledger.counts().items()
        if n and outcome is not Outcome.PUBLISHED
    }
    regions = stats.region_nodes
    return Glance(
        seconds=seconds,
        n_received=ledger.n_received,
        n_published=ledger.n(Outcome.PUBLISHED),
        n_messages=stats.n_messages_out,
        n_held=n_waiting + flow.n_held,
        refused=refused,
        n_devices=flow.n_devices_on_graph,
        latency_p50_s=stats.end_to_end_s.quantile(0.5),
        latency_p99_s=stats.end_to_end_s.quantile(0.99),
        region_p50=regions.quantile(0.5),
        region_mean=regions.total / regions.n if regions.n else float("nan"),
        k_reached_p50=stats.k_reached.quantile(0.5),
    )
