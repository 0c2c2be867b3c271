"""Public fixed devices: published as they are, and never company for others."""

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.algorithms.positions.readings import rounded
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.readings import ReadingAttribute
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.decode.decoded import Decoded, InputCounts
from anonymizer.pipeline.positions.decode.decoding import date_the_undated
from anonymizer.pipeline.positions.tick.intake import timeliness
from anonymizer.pipeline.positions.tick.tick_accounts import TickPart

if TYPE_CHECKING:
    from anonymizer.settings import Settings


class PublicMessage(msgspec.Struct, frozen=True, gc=False):
    """A public device, where it stands, and what it senses."""

    time: float
    device: str
    lat: float
    lon: float
    readings: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """Declared readings, within their ranges and on their steps."""


class PublicDevices:
    """Fixed devices that the operator publishes as public: a message for each one received.

    A privacy zone hides these as well. A repeated message is published again, and so is one that
    is older than another: it states its time. Nothing is remembered of them.
    """

    def __init__(
        self,
        settings: "Settings",
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        inputs: InputCounts | None = None,
    ) -> None:
        self._inputs = inputs
        self.presence = settings.presence
        self._zones = zoned.zones
        self._ledger = ledger
        self._topic = settings.topics.public
        self._attributes = [reading.attribute for reading in settings.readings]
        self.n_clamped: IntArray = np.zeros(len(self._attributes), np.int64)
        self._encode = msgspec.json.Encoder().encode

    def tick(
        self, decoded: Decoded, *, since: float, now: float, wall_ahead_s: float = 0.0
    ) -> TickPart:
        """Return the messages of a tick.

        `since`, `now`: unix seconds between which the tick was open.
        """
        outcome = timeliness(
            decoded.ts, behind_s=self.presence.max_behind_s, now=now, zoneless=decoded.zoneless
        )
        ts = date_the_undated(decoded.ts, decoded.sender, since=since, now=now)
        timely = outcome == Outcome.HELD
        if self._inputs is not None and decoded.input is not None:
            self._inputs.settle_all(decoded.input, outcome)
        hidden = timely & self._zones.contains(decoded.lat, decoded.lon)
        outcome[hidden] = Outcome.SUPPRESSED__PRIVACY_ZONE
        kept = np.flatnonzero(outcome == Outcome.HELD)
        self._ledger.settle_all(outcome[outcome != Outcome.HELD])
        readings = self._readings(decoded, set(kept.tolist()))
        messages = [
            self._message(decoded, row, ts=time + wall_ahead_s, readings=readings.get(row))
            for row, time in zip(kept.tolist(), ts[kept].tolist(), strict=True)
        ]
        n = len(kept)
        return TickPart(messages, np.arange(n), decoded.at_s[kept], n, np.ones(n, np.int64))

    def _message(
        self, decoded: Decoded, row: int, *, ts: float, readings: dict[str, float] | None
    ) -> Outgoing:
        message = PublicMessage(
            round(ts, 3),
            decoded.device(row),
            float(decoded.lat[row]),
            float(decoded.lon[row]),
            readings or msgspec.UNSET,
        )
        return Outgoing(self._topic, self._encode(message))

    def _readings(self, decoded: Decoded, kept: set[int]) -> dict[int, dict[str, float]]:
        """Return the published readings of each position that is kept, by row."""
        readings: dict[int, dict[str, float]] = {}
        columns = (decoded.reading_row, decoded.reading_attribute, decoded.reading_value)
        for row, index, value in zip(*(column.tolist() for column in columns), strict=True):
            if row in kept:
                attribute = self._attributes[index]
                self.n_clamped[index] += not attribute.lo <= value <= attribute.hi
                readings.setdefault(row, {})[attribute.name] = published(value, attribute)
        return readings


def published(value: float, attribute: ReadingAttribute) -> float:
    """Return a finite reading within its declared range and on its steps."""
    inside = min(max(value, attribute.lo), attribute.hi)
    on_step = rounded(inside, attribute.lo, attribute.hi, attribute.step or 0.0)
    return round(float(on_step), attribute.decimals)
