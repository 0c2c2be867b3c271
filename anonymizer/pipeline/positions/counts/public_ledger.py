"""The ledger of public figures: the one source of what others than the operator are shown.

It holds two kinds of figures. Those of the first kind follow from the published messages alone: how
many devices they told of at one moment of the last time to live, and so far. They change when the
release does, and with nothing else: whether a device entered a zone, left the roads, takes no part
any more or fell silent makes no difference that the release does not make.

Those of the second kind count *devices* of which something could not be used, for one reason (see
`contributors`). A counter moves, by a multiple of k, when k distinct devices have contributed since
it last moved (see `secret_thresholds` for who owns some of them).
"""

import math
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.domain.arrays import with_room
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.positions.counts.contributors import Contributors, counted_by
from anonymizer.pipeline.positions.counts.figures import Figures, Label

if TYPE_CHECKING:
    from anonymizer.pipeline.positions.tick.engine import TickRelease
    from anonymizer.settings import Settings


class PublicLedger:
    """The public figures of a positions flow.

    Parameters
    ----------
    contributors
        Those of each fleet.
    secret
        Of the thresholds.

    Attributes
    ----------
    shown
        The figures as of the last turn. Turns are every `tick.report_every_s`.
    n_told
        Devices that the published messages told of, message by message.
    """

    def __init__(
        self, settings: "Settings", contributors: Sequence[Contributors], *, secret: bytes
    ) -> None:
        self._secret = secret
        self._contributors = contributors
        self._until_of = [np.zeros(0) for _ in contributors]
        self._told: deque[tuple[float, int]] = deque()
        """Largest numbers of devices that messages told of at one moment, falling, and when."""
        self._n_attributes = len(settings.readings)
        self._counted: Counter[int] = Counter()
        self._n_unverified = self.n_told = 0
        self._turned: int | None = None
        self.adopt(settings)
        self.shown = self._figures(0)

    def adopt(self, settings: "Settings") -> None:
        """Use the steps of these settings from now on."""
        self._every_s, self._ttl_s = settings.tick.report_every_s, settings.presence.ttl_s
        self.step = public_step(settings)
        self._k_extra = settings.region.k_extra

    def tick(self, ticks: "Sequence[TickRelease]", *, n_unverified: int, now: float) -> None:
        """Take in the releases of all fleets, which will be published, at unix seconds `now`.

        `n_unverified`: positions that verification rejected in this tick.
        """
        self._n_unverified += n_unverified
        turn = math.floor(now / self._every_s)
        if turn != self._turned:
            self._turned = turn
            self._turn(now)
        n_devices = 0
        for i, tick in enumerate(ticks):
            member = tick.release.member
            if len(member):
                self._until_of[i] = with_room(self._until_of[i], int(member.max()) + 1)
                sizes = np.diff(tick.release.first_member_of)
                self._until_of[i][member] = np.repeat(tick.until_s, sizes)
            n_devices += int(np.count_nonzero(self._until_of[i] > tick.event_s))
        while self._told and self._told[-1][1] <= n_devices:
            self._told.pop()
        self._told.append((now, n_devices))

    def _turn(self, now: float) -> None:
        n_of: Counter[int] = Counter()
        for contributors in self._contributors:
            n_of.update(contributors.n_of())
        counters = list(n_of)
        n = np.array([n_of[each] for each in counters], np.int64)
        thresholds = SecretThresholds(
            self._secret if self._k_extra else None, interval=self._turned or 0
        )
        moves = thresholds.advances([(each,) for each in counters], n, self.step).tolist()
        moved = {each: by for each, by in zip(counters, moves, strict=True) if by}
        self._counted.update(moved)
        for contributors in self._contributors:
            contributors.forget(moved, now=now)
        while self._told and self._told[0][0] < now - self._ttl_s:
            self._told.popleft()
        self.shown = self._figures(self._told[0][1] if self._told else 0)

    def _down(self, n: int) -> int:
        return n - n % self.step

    def _figures(self, n_devices: int) -> Figures:
        refused: dict[tuple[int, Label], int] = {}
        n_of: dict[Label, int] = {Outcome.PUBLISHED.label: self._down(self.n_told)}
        clamped = np.zeros(self._n_attributes, np.int64)
        for counter, n in sorted(self._counted.items()):
            attribute, input_, outcome = counted_by(counter)
            if attribute is not None:
                clamped[attribute] = n
                continue
            if input_ is not None:
                refused[input_ + 1, outcome.label] = n
            n_of[outcome.label] = n_of.get(outcome.label, 0) + n
        # A defect must be seen at once.
        n_of[Outcome.SUPPRESSED__UNVERIFIED.label] = self._down(self._n_unverified + self.step - 1)
        return Figures(
            n_of=n_of,
            n_clamped=clamped,
            refused=refused,
            n_published_devices=self._down(n_devices),
            exact=None,
        )


def public_step(settings: "Settings") -> int:
    """Return the step of public counts: the largest k that the settings can ask for."""
    adka = settings.adka
    return max(*adka.k_values, adka.k_floor) + settings.region.k_extra
