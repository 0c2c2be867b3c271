"""Metrics of a gateway: exact ones for the bearer of the token, and public ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from anonymizer.observe.link_metrics import LinkCollector
from anonymizer.observe.metrics import FlowCollector, new_registry
from anonymizer.pipeline.ports import LinkCounts
from anonymizer.pipeline.positions.counts.public_counts import Figures, PublicCounts
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox

if TYPE_CHECKING:
    from prometheus_client.registry import Collector, CollectorRegistry

    from anonymizer.app.gateway.recorder import Recorder
    from anonymizer.observe.public_record_metrics import PublicRecordCollector


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
    figures
        Returns the exact figures of positions.
    public
        Public counts of positions.
    links
        Counts of all connections, by name.
    n_dropped
        Returns how many messages the broker has dropped; None: it is not known.
    records
        The records of the gateway; None: it has none.
    more
        Further exact metrics.

    Attributes
    ----------
    exact, public
        The registries.
    records
        Public metrics of records; None: there are no records.
    """

    def __init__(
        self,
        flow: PositionFlow,
        inbox: Inbox,
        *,
        n_queued_ticks: Callable[[], int],
        connected: Callable[[], bool],
        figures: Callable[[], Figures],
        public: PublicCounts,
        links: Mapping[str, LinkCounts],
        n_dropped: Callable[[], int | None],
        records: "Recorder | None",
        more: "Sequence[Collector]",
    ) -> None:
        def registry(
            shown: Callable[[], Figures], step: Callable[[], int], extra: "Sequence[Collector]"
        ) -> "CollectorRegistry":
            """Return the metrics of these figures; drops are counted in multiples of `step`."""

            def n_shown() -> int | None:
                n = n_dropped()
                return None if n is None else n - n % step()

            collector = FlowCollector(
                flow, inbox, n_queued_ticks=n_queued_ticks, connected=connected, figures=shown
            )
            return new_registry(collector, LinkCollector(links, drops=n_shown), *extra)

        of_records = None if records is None else _of_records(records)
        exact = [] if of_records is None else [of_records[0]]
        self.records = None if of_records is None else of_records[1]
        self.exact = registry(figures, lambda: 1, [*exact, *more])
        self.public = registry(
            lambda: public.shown, lambda: public.step, [self.records] if self.records else []
        )


def _of_records(records: "Recorder") -> "tuple[Collector, PublicRecordCollector]":
    """Return the exact metrics of records, and the public ones."""
    # Only gateways with records need these, which take longer to load than all the rest.
    from anonymizer.observe.public_record_metrics import PublicRecordCollector  # noqa: PLC0415
    from anonymizer.observe.record_metrics import RecordCollector  # noqa: PLC0415

    return RecordCollector(records), PublicRecordCollector(records)
