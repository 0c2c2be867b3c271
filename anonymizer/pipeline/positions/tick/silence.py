"""Why nothing is published although positions arrive: one sentence, with the number that matters.

The operator reads it in the log, everybody in `/readyz`, on the status topic and on the map. What
everybody reads holds no count of devices or positions.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.adka import Shortage, shortage
from anonymizer.algorithms.positions.cloaks.beats import longest_beat_s
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.misfit import CAUSES, Misfit
from anonymizer.pipeline.positions.decode.decoded import InputCounts
from anonymizer.pipeline.positions.tick.factory import Operator, density_rule

if TYPE_CHECKING:
    from anonymizer.settings import AdkaSettings, Settings

_LEAST_REPORTS = 2
"""Nothing is said about a shorter silence, however short the beat is."""
_BEATS = 2
_LEAST_K = 2
_ROUND = 10
"""Whoever is told a larger k has so many devices that some of them come and go."""
_MORE = "nothing is published until more come"
_TOO_NEW = (
    "are too new to be company: an id counts from its second report on, and one that changes with"
    " every message never does"
)
_NOT_A_REASON = frozenset(
    {Outcome.LATE, Outcome.DUPLICATE, Outcome.SUPPRESSED__SUPERSEDED, Outcome.PUBLISHED}
)
"""These happen to positions of devices that are published, too."""


class Reason(NamedTuple):
    """Why nothing is published.

    `kind` stays the same while the cause and the advice do, whatever the other numbers; `text` is
    one sentence for the operator, `public` the same for everybody.
    """

    kind: str
    text: str
    public: str


class Standing(NamedTuple):
    """What is known when the reason is looked for."""

    silent_s: float
    """Seconds for which positions have arrived and none has been published."""
    inputs: InputCounts
    n_of: Mapping[Outcome, int]
    """`inputs`, `n_of`: counts since then: by input, and of all positions by outcome."""
    n_on_graph: int
    n_newcomers: int
    """`n_on_graph`, `n_newcomers`: devices that count towards k, and those of them that wait for a
    group."""
    n_too_new: int
    """Devices beside them that do not count yet: by other ids they may have counted before."""
    shortage: Callable[[], Shortage | None]
    """Returns the fewest devices that are missing for any group; None: there are enough."""
    epoch_s: float
    """Longest time until groups are formed once enough devices count."""


def published_k(adka: "AdkaSettings") -> str:
    """Return which k are published, in words: those of `k_values`, but `k_floor` at least."""
    least, most = (max(adka.k_floor, pick(adka.k_values)) for pick in (min, max))
    return f"{most}" if least == most else f"{least} to {most}, by density"


def smaller_k(adka: "AdkaSettings", *, most: int) -> str:
    """Return what to write so that no k is more than about `most`, in words, rounded down.

    Keys that need no change are not named. Nothing if no such k is left, or none is larger.
    """
    k = _rounded_down(most)
    if k < _LEAST_K or max(adka.k_floor, *adka.k_values) <= k:
        return ""
    keys = []
    if max(adka.k_values) > k:
        keys.append(f"k_values = {[min(each, k) for each in adka.k_values]}")
    if adka.k_floor > k:
        keys.append(f"k_floor = {k}")
    return f", or, for less protection, write {' and '.join(keys)} in [adka] and restart"


def _rounded_down(n: int) -> int:
    """Return a number to 10, or a larger one down to half of its first power of ten."""
    step = max(1, 10 ** (len(str(n)) - 1) // 2) if n >= _ROUND else 1
    return n // step * step


class SilenceRule:
    """Decides when a silence is reported, and with which reason."""

    def __init__(self, settings: "Settings") -> None:
        session, self._lasts = settings.session, settings.region.mode == "session"
        beat_s = session.beat_s if self._lasts else 0.0
        least_s = _LEAST_REPORTS * settings.tick.report_every_s
        self.patience_s = max(_BEATS * beat_s, least_s)
        if self._lasts:
            self.patience_s += session.settle_s
        if settings.trips.enabled:
            self.patience_s += settings.trips.delay_s
        self._longest_beat_s = longest_beat_s(beat_s)
        self._topics = [each.topic for each in settings.inputs]
        self._adka, self._k_extra = settings.adka, settings.region.k_extra
        self._ks = published_k(self._adka)
        largest = max(self._adka.k_floor, *self._adka.k_values)
        self._smaller = smaller_k(self._adka, most=largest // 2)
        self._few = f"fewer devices are present than a group needs ({self._ks}): {_MORE}"
        if largest > _LEAST_K:
            self._few += "; the log says whether a smaller k would do, and what to write for it"

    def reason(self, standing: Standing) -> Reason | None:
        """Return why nothing is published; None if there is nothing to say yet."""
        if standing.silent_s <= self.patience_s:
            return None
        n_grouped = standing.n_on_graph - standing.n_newcomers
        if (
            n_grouped
            and self._lasts
            and standing.silent_s <= self.patience_s + self._longest_beat_s
        ):
            return None  # their beat is still to come
        return (
            self._misfit(standing.inputs)
            or self._too_few(standing)
            or self._refused(standing.n_of)
            or self._waiting(standing, n_grouped)
            or _unknown(standing.silent_s)
        )

    def _misfit(self, inputs: InputCounts) -> Reason | None:
        """Nothing that arrived could be used."""
        if inputs.n_of[:, Outcome.HELD].any():
            return None
        number, outcome = (
            int(i) for i in np.unravel_index(inputs.n_of.argmax(), inputs.n_of.shape)
        )
        if Outcome(outcome) not in CAUSES:
            return None
        n, n_all = int(inputs.n_of[number].max()), int(inputs.n_of[number].sum())
        misfit = Misfit(Outcome(outcome), n_all)
        name = public = "a topic of no input"
        if number < inputs.n_inputs:
            # A topic in the settings may name a user.
            name = f"inputs (no. {number + 1}, {self._topics[number]})"
            public = f"inputs (no. {number + 1})"
        return Reason(
            f"misfit {number} {outcome}",
            f"{name}: {n:,} of {n_all:,} messages are {misfit.kind}: {CAUSES[misfit.reason]}",
            # Without a road nearby the same as on a road, with too few others.
            f"{public}: {misfit.public}" if misfit.public else self._few,
        )

    def _too_few(self, standing: Standing) -> Reason | None:
        if standing.n_too_new > standing.n_on_graph:
            return Reason("too new", f"{standing.n_too_new:,} ids {_TOO_NEW}", f"ids {_TOO_NEW}")
        if not standing.n_on_graph:
            what = "no device is present on the roads of network.source"
            text = f"{what}, and a group needs {self._ks}: {_MORE}"
            return Reason("too few", text, self._few)
        shortage = standing.shortage()
        if shortage is None:
            return None
        n, k = shortage
        what = f"{n} devices are present" if n > 1 else "1 device is present"
        if n < standing.n_on_graph:
            what = f"at most {n} of {standing.n_on_graph} devices are on roads that are connected"
        if standing.n_too_new:
            what += f" ({standing.n_too_new:,} more count from their second report on)"
        smaller = smaller_k(self._adka, most=n - self._k_extra)
        within = f", then within {standing.epoch_s:.0f} s" if self._lasts else ""
        text = f"{what} and a group needs {k}: {_MORE}{within}{smaller}"
        return Reason(f"too few{smaller}", text, self._few)

    def _refused(self, n_of: Mapping[Outcome, int]) -> Reason | None:
        """Most of what arrived has one outcome that says why."""
        refused = {outcome: n for outcome, n in n_of.items() if n and outcome not in _NOT_A_REASON}
        if not refused:
            return None
        outcome = max(refused, key=refused.__getitem__)
        cause = {
            Outcome.SUPPRESSED__REGION_TOO_LARGE: (
                "are in regions of more nodes than region.max_nodes allows: raise it"
                f"{self._smaller}"
            ),
            Outcome.SUPPRESSED__REGION_TOO_SMALL: (
                "are on roads of fewer nodes than region.min_nodes: lower it, or use a connected"
                " network"
            ),
            Outcome.SUPPRESSED__UNDELIVERED: "were not taken by the broker: see its log and rules",
            Outcome.SUPPRESSED__OVERLOAD: ("could not be taken in time: see presence.max_devices"),
        }.get(outcome)
        if cause is None:
            return None
        n, n_all = refused[outcome], sum(refused.values())
        public = f"positions {cause}"
        if outcome is Outcome.SUPPRESSED__REGION_TOO_SMALL:  # it tells where devices are
            public = "no position can be published; the log says why"
        return Reason(outcome.name, f"{n:,} of {n_all:,} positions {cause}", public)

    def _waiting(self, standing: Standing, n_grouped: int) -> Reason | None:
        n = standing.n_newcomers
        if not n or n_grouped or not self._lasts:
            return None
        what = (
            f"for their first groups: these are formed within {standing.epoch_s:.0f} s"
            " (session.epoch_s; longer where devices report rarely, see presence.ttl_s)"
        )
        return Reason("waiting", f"{n:,} devices wait {what}", f"devices wait {what}")


def _unknown(silent_s: float) -> Reason:
    text = (
        f"positions arrive, and none has been published for {silent_s:.0f} s: the counts of"
        " anonymizer_positions_total by reason say what became of them"
    )
    return Reason("unknown", text, text)


class Silence:
    """For how long positions have arrived and none has been published, and why.

    Times are monotonic.
    """

    def __init__(self, settings: "Settings", inputs: InputCounts, ledger: Ledger) -> None:
        self.adopt(settings)
        self._inputs = inputs
        self._ledger = ledger
        self._first_s: float | None = None
        self._last_s = -np.inf
        self._before = inputs.n_of, ledger.counts()
        """The counts before the silence began."""

    def adopt(self, settings: "Settings") -> None:
        """Judge by other settings from now on."""
        self._rule = SilenceRule(settings)
        self._density_rule = density_rule(settings)
        self._k_extra = settings.region.k_extra

    def arrived(self, at_s: float) -> None:
        """Record that positions arrived, before they are counted."""
        self._last_s = at_s
        if self._first_s is None:
            self._first_s = at_s
            self._before = self._inputs.n_of.copy(), self._ledger.counts()

    def published(self) -> None:
        """Record that positions were published."""
        self._first_s = None

    def lasted_s(self, now_s: float, *, flows_s: float) -> float:
        """Return the seconds since the first position after the last publication.

        0 if no position has arrived for `flows_s`: then there is nothing to publish.
        """
        if self._first_s is None or now_s - self._last_s > flows_s:
            return 0.0
        return now_s - self._first_s

    def why(self, operator: Operator, monotonic: Callable[[], float]) -> Reason | None:
        """Return why nothing is published, or None; between two ticks."""
        if self._first_s is None:
            return None
        density, pace = operator.density, operator.pace
        silent_s = self.lasted_s(monotonic(), flows_s=pace.ttl_s)
        if silent_s <= self._rule.patience_s:  # as at nearly every tick: nothing is counted
            return None
        inputs, counts = self._before
        return self._rule.reason(
            Standing(
                silent_s=silent_s,
                inputs=self._inputs.since(inputs),
                n_of={o: n - counts[o] for o, n in self._ledger.counts().items()},
                n_on_graph=density.n_devices,
                n_newcomers=operator.n_waiting,
                n_too_new=int((density.node_of >= 0).sum()) - density.n_devices,
                shortage=lambda: shortage(density, self._density_rule, k_extra=self._k_extra),
                epoch_s=pace.epoch_s,
            )
        )
