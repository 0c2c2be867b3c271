"""Figures of the positions flow at one moment: exact ones for the operator, or public ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonymizer.domain.arrays import IntArray
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.tick.flow_stats import DensityBands

if TYPE_CHECKING:
    from anonymizer.pipeline.positions.tick.flow import FlowView, PositionFlow

Label = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exact:
    """What depends on each position that arrives, whether its device is published or not."""

    n_received: int
    n_waiting: int
    n_held: int
    """`n_received`, `n_waiting`, `n_held`: positions received; messages in the inbox; positions
    received and not settled."""
    imbalance: int
    """Positions that no count contains."""
    view: "FlowView"
    """The devices of the flow, its readings, and what its light audit finds."""
    n_without_room: int
    """Devices that are hidden because there is no room for their zones."""
    latency_s: Mapping[str, BatchHistogram]
    """Arrival to publication of positions, by what they waited for; see `FlowStats`."""
    stage_s: Mapping[str, BatchHistogram]
    """Durations of ticks by stage."""
    density: DensityBands | None
    """Where devices are dense; None before the first tick."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Figures:
    """Counts of a positions flow at one moment, exact or public."""

    n_of: Mapping[Label, int]
    """Positions by outcome and reason; in public see `PublicLedger`."""
    n_clamped: IntArray
    """By declared reading; see `GroupReadings`."""
    refused: Mapping[tuple[int, Label], int]
    """What could not be used, by number of the input (from one), outcome and reason."""
    n_published_devices: int
    """Devices that the published messages told of at one moment lately, in steps of k."""
    exact: Exact | None
    """What nobody but the operator may know; None in public."""


def exact_figures(flow: "PositionFlow", ledger: Ledger, *, n_waiting: int) -> Figures:
    """Return the exact counts of a flow; `n_waiting` messages are in its inbox."""
    view = flow.view
    n_held = n_waiting + flow.n_held
    exact = Exact(
        n_received=ledger.n_received,
        n_waiting=n_waiting,
        n_held=n_held,
        imbalance=ledger.n_received - ledger.n_settled - n_held,
        view=view,
        n_without_room=flow.device_zones.n_left_out if flow.device_zones else 0,
        latency_s=flow.stats.latency_s,
        stage_s=flow.stats.stage_s,
        density=flow.density_watch.bands,
    )
    return Figures(
        n_of={outcome.label: n for outcome, n in ledger.counts().items()},
        n_clamped=view.n_clamped,
        refused={(i, outcome.label): n for (i, outcome), n in flow.inputs.refusals().items()},
        n_published_devices=flow.public_figures.shown.n_published_devices,
        exact=exact,
    )
