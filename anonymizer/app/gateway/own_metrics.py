"""Metrics of a gateway: exact ones for the bearer of the token, and public ones."""

from collections.abc import Callable

from anonymizer.app.gateway.sides import Sides
from anonymizer.observe.link_metrics import LinkCollector
from anonymizer.observe.metrics import FlowCollector, new_registry, public_registry
from anonymizer.pipeline.positions.counts.figures import Figures
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox


class OwnMetrics:
    """Both registries of a gateway.

    Parameters
    ----------
    n_queued_ticks
        Returns how many ticks wait to be published.
    n_dropped
        Returns how many messages the broker has dropped; None: it is not known.
    """

    def __init__(
        self,
        flow: PositionFlow,
        inbox: Inbox,
        *,
        n_queued_ticks: Callable[[], int],
        connected: Callable[[], bool],
        n_dropped: Callable[[], int | None],
        sides: Sides,
    ) -> None:
        def collector(shown: Callable[[], Figures] | None) -> FlowCollector:
            return FlowCollector(
                flow, inbox, n_queued_ticks=n_queued_ticks, connected=connected, figures=shown
            )

        self.exact = new_registry(
            collector(None),
            LinkCollector(sides.links, drops=n_dropped),
            *sides.exact,
        )
        self.public = public_registry(
            collector(lambda: flow.public_figures.shown),
            LinkCollector(sides.links),
            *sides.public,
        )
        """`exact`, `public`: the registries."""
