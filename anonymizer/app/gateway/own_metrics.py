"""Metrics of a gateway: exact ones for the bearer of the token, and public ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from anonymizer.observe.link_metrics import LinkCollector
from anonymizer.observe.metrics import FlowCollector, new_registry, public_registry
from anonymizer.outputs.output import Figure
from anonymizer.outputs.output_metrics import OutputCollector
from anonymizer.pipeline.ports import LinkCounts
from anonymizer.pipeline.positions.counts.figures import Figures
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from anonymizer.app.gateway.recorder import Recorder


class OwnMetrics:
    """Both registries of a gateway.

    Parameters
    ----------
    flow, inbox
        Of positions.
    n_queued_ticks
        Returns how many ticks wait to be published.
    connected
        Returns whether positions can arrive.
    links
        Counts of all connections, by name.
    n_dropped
        Returns how many messages the broker has dropped; None: it is not known.
    records
        The records of the gateway; None: it has none.
    outputs
        Returns what the figures of the outputs tell, by reason.
    more
        Further exact metrics.

    Attributes
    ----------
    exact, public
        The registries.
    """

    def __init__(
        self,
        flow: PositionFlow,
        inbox: Inbox,
        *,
        n_queued_ticks: Callable[[], int],
        connected: Callable[[], bool],
        links: Mapping[str, LinkCounts],
        n_dropped: Callable[[], int | None],
        records: "Recorder | None",
        outputs: Callable[[], Mapping[Figure, Mapping[str, int]]],
        more: "Sequence[Collector]",
    ) -> None:
        def collector(shown: Callable[[], Figures] | None) -> FlowCollector:
            return FlowCollector(
                flow, inbox, n_queued_ticks=n_queued_ticks, connected=connected, figures=shown
            )

        of_records = [] if records is None else _of_records(records)
        of_outputs = OutputCollector(outputs)
        self.exact = new_registry(
            collector(None),
            LinkCollector(links, drops=n_dropped),
            of_outputs,
            *of_records[:1],
            *more,
        )
        self.public = public_registry(
            collector(lambda: flow.public_figures.shown),
            LinkCollector(links),
            of_outputs,
            *of_records[1:],
        )


def _of_records(records: "Recorder") -> "list[Collector]":
    """Return the exact metrics of records, and the public ones."""
    # Only gateways with records need these, which take longer to load than all the rest.
    from anonymizer.observe.public_record_metrics import PublicRecordCollector  # noqa: PLC0415
    from anonymizer.observe.record_metrics import RecordCollector  # noqa: PLC0415

    return [RecordCollector(records), PublicRecordCollector(records)]
