"""Public counts of the positions flow: what may be shown to others than the operator.

An exact count tells when one device entered a privacy zone. Public counts therefore move in steps
of k, are one interval late, and do not distinguish reasons that depend on where a device is. What
was suppressed for such reasons moves only in an interval in which that needed k devices, and is
no part of what was received until then: one device that keeps reporting from a zone would move
steps of positions by itself. So would what waits for its trip to go on, which is no part of it
either.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import BatchHistogram, Ledger
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.flow_stats import DensityBands

if TYPE_CHECKING:
    from anonymizer.settings import Settings

OTHER = ("suppressed", "other")
"""Label of all reasons that depend on where a device is."""
_OF_THE_GATEWAY = frozenset(
    {
        Outcome.SUPPRESSED__SUPERSEDED,
        Outcome.SUPPRESSED__OVERLOAD,
        Outcome.SUPPRESSED__UNVERIFIED,
        Outcome.SUPPRESSED__UNDELIVERED,
    }
)
_PUBLIC_LABEL = {
    outcome.label: OTHER
    for outcome in Outcome
    if outcome.label[0] == OTHER[0] and outcome not in _OF_THE_GATEWAY
}
_DEFECT = Outcome.SUPPRESSED__UNVERIFIED.label
"""Rounded up, because a defect must be seen at once."""

Label = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Figures:
    """Counts of a positions flow at one moment, exact or public.

    Attributes
    ----------
    n_received, n_waiting, n_held
        Positions received; messages in the inbox; positions received and not settled.
    n_in_trips
        Those held until their trip goes on. They are no part of public counts: whether a device is
        in a zone, or at the end of its trip, is decided when they leave.
    imbalance
        Positions that no count contains; exact also in public.
    n_of
        Positions by outcome and reason.
    n_devices, n_devices_on_graph, n_newcomers
        Devices present, those that count towards k, and those of them that wait for a group. In
        public the first is None: less the second, it would show that a device is in a zone.
    n_fixed_devices
        Cloaked fixed devices present.
    n_clamped, n_left_out
        By declared reading; see `GroupReadings`.
    n_without_room
        Devices that are hidden because there is no room for their zones; rounded up in public.
    n_shut_out
        Devices that are hidden because of what they state; see `Fleet.n_shut_out`. None in public:
        it would show that one has stated something.
    n_followed, n_below_k
        Pseudonyms that the light audit follows, and those with fewer than k candidates left; in
        public the latter are rounded up, because a defect must be seen.
    hidden_to_k_least
        Least number of candidates for one of them, divided by its k; NaN if there is none. In
        public without decimals: candidates are devices, which count by k.
    latency_s
        Arrival to publication of positions, by what they waited for; see `FlowStats`.
    age_s
        Ages of information, see `InformationAges`.
    refused
        What could not be used, by number of the input (from one), outcome and reason.
    density
        Where devices are dense; None in public, and before the first tick.
    stage_s
        Durations of ticks by stage. In public there are none: a tick with one position takes
        longer than a tick without.
    """

    n_received: int
    n_waiting: int
    n_held: int
    n_in_trips: int
    imbalance: int
    n_of: Mapping[Label, int]
    n_devices: int | None
    n_devices_on_graph: int
    n_newcomers: int
    n_fixed_devices: int
    n_clamped: IntArray
    n_left_out: IntArray
    n_without_room: int
    n_shut_out: int | None
    n_followed: int
    n_below_k: int
    hidden_to_k_least: float
    latency_s: Mapping[str, BatchHistogram]
    age_s: BatchHistogram
    stage_s: Mapping[str, BatchHistogram]
    refused: Mapping[tuple[int, Label], int]
    density: DensityBands | None


def exact_figures(flow: PositionFlow, ledger: Ledger, *, n_waiting: int) -> Figures:
    """Return the exact counts of a flow; `n_waiting` messages are in its inbox."""
    view = flow.view
    n_held = n_waiting + flow.n_held
    return Figures(
        n_received=ledger.n_received,
        n_waiting=n_waiting,
        n_held=n_held,
        n_in_trips=flow.n_in_trips,
        imbalance=ledger.n_received - ledger.n_settled - n_held,
        n_of={outcome.label: n for outcome, n in ledger.counts().items()},
        n_devices=view.n_devices,
        n_devices_on_graph=view.n_devices_on_graph,
        n_newcomers=view.n_newcomers,
        n_fixed_devices=view.n_fixed_devices,
        n_clamped=view.n_clamped,
        n_left_out=view.n_left_out,
        n_without_room=flow.device_zones.n_left_out if flow.device_zones else 0,
        n_shut_out=view.n_shut_out,
        n_followed=len(view.hidden_to_k),
        n_below_k=int((view.hidden_to_k < 1).sum()),
        hidden_to_k_least=float(view.hidden_to_k.min()) if len(view.hidden_to_k) else math.nan,
        latency_s=flow.stats.latency_s,
        age_s=flow.stats.age_s,
        stage_s=flow.stats.stage_s,
        refused={(i, outcome.label): n for (i, outcome), n in flow.inputs.refusals().items()},
        density=flow.density_watch.bands,
    )


def public_step(settings: "Settings") -> int:
    """Return the step of public counts: the largest k that the settings can ask for."""
    adka = settings.adka
    return max(*adka.k_values, adka.k_floor) + settings.region.k_extra


def public_label(label: Label) -> Label:
    """Return the label under which an outcome and its reason may be shown."""
    return _PUBLIC_LABEL.get(label, label)


def join(n_of: Mapping[Label, int]) -> dict[Label, int]:
    """Return the counts by public label."""
    joined: dict[Label, int] = {}
    for label, n in n_of.items():
        joined[public_label(label)] = joined.get(public_label(label), 0) + n
    return joined


def public_share(settings: "Settings", *, within_s: float) -> int:
    """Return how many positions of one device are settled in some seconds, at most.

    Of several in one tick all but the newest are superseded, which is a count of its own.
    """
    return math.ceil(within_s / settings.tick.interval_s) + 1


class PublicCounts:
    """Public counts of a flow.

    Counts are rounded down to multiples of `step`; `share` is how many positions one device has
    between two turns, at most (`public_share`). Both may be changed: counters then stay until the
    rounded ones have caught up. `shown` are the counts as they were at the last `turn` but one.
    """

    def __init__(self, figures: Figures, *, step: int, share: int = 1) -> None:
        self.step = step
        self.share = share
        self._other = self._other_shown = 0
        self.shown = self._next = self._coarse(figures)

    def turn(self, figures: Figures) -> None:
        """Show the counts of the previous call from now on, and keep these for the next one."""
        before, now = self._next, self._coarse(figures)
        n_of = {label: max(n, before.n_of.get(label, 0)) for label, n in now.n_of.items()}
        n_received = max(now.n_received, before.n_received)
        refused = {key: max(n, before.refused.get(key, 0)) for key, n in now.refused.items()}
        self.shown = before
        self._next = replace(now, n_of=n_of, n_received=n_received, refused=refused)

    def flush(self) -> None:
        """Show the latest counts that `turn` was given, when the flow has ended."""
        self.shown = self._next

    def not_published(self) -> dict[str, int]:
        """Return the shown counts of what was not published, by `outcome/reason`; no zeros."""
        return {
            "/".join(filter(None, label)): n
            for label, n in self.shown.n_of.items()
            if n and label != Outcome.PUBLISHED.label
        }

    def _coarse(self, figures: Figures) -> Figures:
        step = self.step
        n_of = join(figures.n_of)
        other, by_k = n_of.get(OTHER, 0), step * self.share
        self._other_shown += (other - self._other) // by_k * by_k
        self._other = other

        def down(n: int) -> int:
            return n - n % step

        def up(n: int) -> int:
            return down(n + step - 1)

        return replace(
            figures,
            n_received=down(figures.n_received - figures.n_in_trips - other + self._other_shown),
            n_waiting=down(figures.n_waiting),
            n_held=down(figures.n_held - figures.n_in_trips),
            n_in_trips=0,
            n_of={
                label: up(n) if label == _DEFECT else down(n)
                for label, n in (n_of | {OTHER: self._other_shown}).items()
            },
            n_devices=None,
            n_devices_on_graph=down(figures.n_devices_on_graph),
            n_newcomers=down(figures.n_newcomers),
            n_fixed_devices=down(figures.n_fixed_devices),
            n_clamped=figures.n_clamped - figures.n_clamped % step,
            n_left_out=figures.n_left_out - figures.n_left_out % step,
            n_without_room=up(figures.n_without_room),
            n_shut_out=None,
            n_followed=down(figures.n_followed),
            n_below_k=up(figures.n_below_k),
            hidden_to_k_least=float(np.floor(figures.hidden_to_k_least)),
            latency_s={
                each: histogram.in_steps(step) for each, histogram in figures.latency_s.items()
            },
            age_s=figures.age_s.in_steps(step),
            stage_s={},
            density=None,
            refused=_refused(figures.refused, down),
        )


def _refused(
    refused: Mapping[tuple[int, Label], int], down: Callable[[int], int]
) -> dict[tuple[int, Label], int]:
    """Return what could not be used with public labels, rounded down; a zero would tell of one.

    Without reasons that depend on where a device is: those are counted for all inputs together.
    """
    joined: dict[tuple[int, Label], int] = {}
    for (number, label), n in refused.items():
        key = number, public_label(label)
        joined[key] = joined.get(key, 0) + n
    return {key: down(n) for key, n in joined.items() if down(n) and key[1] != OTHER}
