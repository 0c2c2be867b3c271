"""Decoding of deliveries into columns of positions.

Each message is decoded by itself: a joined payload would fail as a whole on one bad record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from anonymizer.codecs import Codec
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.id_shares import IdShares
from anonymizer.pipeline.positions.inbox import Arrivals
from anonymizer.pipeline.positions.topics import Route, TopicRouter, Treatment
from anonymizer.settings import LimitSettings

_UNDATED = float("nan")


@dataclass(slots=True, repr=False)
class Decoded:
    """Valid positions of a tick, in order of arrival.

    Attributes
    ----------
    device
        Device ids.
    ts
        Unix seconds; NaN if the message states no time.
    lat, lon
        Degrees.
    at_s
        Monotonic arrival time of each position.
    reading_row, reading_attribute, reading_value
        Declared readings: row of the position that each came with, index of its attribute, and
        its value.
    """

    device: list[str] = field(default_factory=list)
    ts: list[float] = field(default_factory=list)
    lat: list[float] = field(default_factory=list)
    lon: list[float] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    reading_row: list[int] = field(default_factory=list)
    reading_attribute: list[int] = field(default_factory=list)
    reading_value: list[float] = field(default_factory=list)


class DecodedTick(NamedTuple):
    """The valid positions of a tick, by what becomes of their devices.

    Attributes
    ----------
    of
        Positions, indexed by `Treatment`.
    receipts
        Receipts of all messages, valid or not, to be acknowledged once all are settled.
    """

    of: Sequence[Decoded]
    receipts: list[int]


class Decoder:
    """Decodes the arrivals of a tick; settles rejected positions with their reasons.

    Parameters
    ----------
    router, limits, ledger
        How messages are decoded, their largest sizes, and where they are settled.
    attribute_of
        Index of each declared reading by name; other readings are dropped.
    ids_kept_s
        How long ids in payloads count towards `limits.max_ids_per_topic`.
    """

    def __init__(
        self,
        router: TopicRouter,
        limits: LimitSettings,
        ledger: Ledger,
        *,
        attribute_of: Mapping[str, int] = MappingProxyType({}),
        ids_kept_s: float = inf,
    ) -> None:
        self._attribute_of = attribute_of
        self._shares = IdShares(kept_s=ids_kept_s)
        self._router = router
        self._limits = limits
        self._ledger = ledger

    def limit(self, limits: LimitSettings) -> None:
        """Use these limits from now on."""
        self._limits = limits

    def decode(self, batches: Sequence[Arrivals]) -> DecodedTick:
        """Return the valid positions. No content of a message makes it raise."""
        tick = DecodedTick([Decoded() for _ in Treatment], [])
        for at_s, deliveries in batches:
            for delivery in deliveries:
                if delivery.receipt:
                    tick.receipts.append(delivery.receipt)
                self._read(delivery, tick, at_s)
            for out in tick.of:
                out.at_s += [at_s] * (len(out.device) - len(out.at_s))
        return tick

    def _read(self, delivery: Delivery, tick: DecodedTick, at_s: float) -> None:
        """Append the valid positions of one message, settle the others."""
        route = self._router.route(delivery.topic)
        if route is None:
            self._ledger.settle(Outcome.INVALID__UNKNOWN_TOPIC)
            return
        out = tick.of[route.treatment]
        fixes = self._fixes(route.codec, delivery.payload)
        self._ledger.receive(len(fixes) - 1)  # before decoding, it was counted as one
        for fix in fixes:
            if not isinstance(fix, Fix):
                self._ledger.settle(fix)
                continue
            device = fix.device if route.device is None else route.device
            lat, lon = (fix.lat, fix.lon) if route.places is None else _place(device, fix, route)
            if not device or len(device) > self._limits.max_device_id_chars:
                self._ledger.settle(Outcome.INVALID__NO_DEVICE)
            elif delivery.retained and fix.ts is None:
                self._ledger.settle(Outcome.INVALID__RETAINED)
            elif isnan(lat):
                self._ledger.settle(Outcome.INVALID__NO_FIX)
            elif route.device is None and not self._shares.admits(
                delivery.topic, device, share=self._limits.max_ids_per_topic, at_s=at_s
            ):
                self._ledger.settle(Outcome.SUPPRESSED__OVER_SHARE)
            else:
                if fix.readings and self._attribute_of:
                    self._take_readings(fix.readings, out)
                out.device.append(device)
                out.ts.append(_UNDATED if fix.ts is None else fix.ts)
                out.lat.append(lat)
                out.lon.append(lon)

    def _take_readings(self, readings: Mapping[str, float], out: Decoded) -> None:
        """Append the declared readings of the position that will be appended next."""
        for name, value in readings.items():
            attribute = self._attribute_of.get(name)
            if attribute is not None:
                out.reading_row.append(len(out.device))
                out.reading_attribute.append(attribute)
                out.reading_value.append(value)

    def _fixes(self, codec: Codec, payload: bytes) -> Sequence[Fix | Outcome]:
        """Return the positions of a payload, or the one reason to reject it as a whole."""
        if len(payload) > self._limits.max_payload_bytes:
            return (Outcome.INVALID__TOO_LARGE,)
        fixes = codec(payload)
        return fixes if len(fixes) <= self._limits.max_positions else (Outcome.INVALID__TOO_LARGE,)


def _place(device: str | None, fix: Fix, route: Route) -> tuple[float, float]:
    """Return where a registered device stands, else where it says it is; NaN for nowhere."""
    return (route.places or {}).get(device or "", (fix.lat, fix.lon))


def date_the_undated(ts: FloatArray, *, since: float, now: float) -> FloatArray:
    """Return the times with NaN replaced, spread evenly over `(since, now]` in order of arrival.

    The last undated message of a device is then its newest, within this tick and compared with
    the previous one. If the clock did not advance, all get `now`.
    """
    undated = np.isnan(ts)
    n = int(undated.sum())
    dated = ts.copy()
    dated[undated] = now - max(now - since, 0.0) * (np.arange(n)[::-1] / max(n, 1))
    return dated
