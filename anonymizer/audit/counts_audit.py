"""Audit of counts: attacks on the numbers that settings would publish about recorded positions."""

from typing import NamedTuple

from anonymizer.algorithms.positions.street_hours import Passages
from anonymizer.audit.attack import Subject
from anonymizer.audit.case import Reports
from anonymizer.audit.findings import Finding
from anonymizer.audit.registry import mounted
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import BoolArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.outputs.streets.street_hours import hour_passages
from anonymizer.outputs.windows import promised_k
from anonymizer.settings import CountSettings, Settings


class CountsCase(NamedTuple):
    """The true positions, and what counts promise of them.

    `passages`: by street and hour, and which nodes are roads, see `hour_passages`; None: that is
    not attacked. `seed`: of all random choices.
    """

    reports: Reports
    network: RoadNetwork
    counts: CountSettings
    passages: tuple[Passages, BoolArray] | None
    seed: int

    def __repr__(self) -> str:
        """Reveal no device."""
        return "CountsCase(...)"


def audit_counts(
    trace: Trace, network: RoadNetwork, settings: Settings, *, seed: int = 0
) -> tuple[Finding, ...]:
    """Return what all attacks on counts find.

    InputError if the positions are of fewer than two intervals, or the network has no coordinates.
    """
    counts = settings.counts.model_copy(update={"k": promised_k(settings)})
    passages = None
    if not counts.has_noise and trace.node is None:
        passages = hour_passages(trace, network, settings, every_s=3600.0)
    reports = reports_of(trace, network, settings)
    return mounted(Subject.COUNTS, CountsCase(reports, network, counts, passages, seed))
