"""The obvious decoder of deliveries: one message after the other, each by its codec."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.id_shares import IdShares
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.decode.topics import Route, TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import LimitSettings


class Position(NamedTuple):
    """A valid position, with its declared readings by the index of their attribute."""

    treatment: Treatment
    device: str
    ts: float
    lat: float
    lon: float
    at_s: float
    readings: dict[int, float]


class NaiveDecoder:
    """Takes the parameters of `Decoder`."""

    def __init__(
        self,
        router: TopicRouter,
        limits: LimitSettings,
        ledger: Ledger,
        *,
        attribute_of: Mapping[str, int],
        ids_kept_s: float,
    ) -> None:
        self.router, self.limits, self.ledger = router, limits, ledger
        self.attribute_of = attribute_of
        self.n_unusable = [0] * len(attribute_of)
        self.shares = IdShares(kept_s=ids_kept_s)

    def decode(self, batches: Sequence[Arrivals]) -> list[Position]:
        return [
            position
            for at_s, deliveries in batches
            for topic, payload, _, retained in deliveries
            for position in self.read(topic, payload, retained=retained, at_s=at_s)
        ]

    def read(self, topic: str, payload: bytes, *, retained: bool, at_s: float) -> list[Position]:
        route = self.router.find(topic)
        if route is None:
            self.ledger.settle(Outcome.INVALID__UNKNOWN_TOPIC)
            return []
        fixes: Sequence[Fix | Outcome] = [Outcome.INVALID__TOO_LARGE]
        if len(payload) <= self.limits.max_payload_bytes:
            fixes = route.decode(topic, payload)
            if len(fixes) > self.limits.max_positions:
                fixes = [Outcome.INVALID__TOO_LARGE]
        self.ledger.receive(len(fixes) - 1)
        found = [self.checked(topic, route, fix, retained=retained, at_s=at_s) for fix in fixes]
        for each in found:
            if isinstance(each, Outcome):
                self.ledger.settle(each)
        return [each for each in found if isinstance(each, Position)]

    def checked(
        self, topic: str, route: Route, fix: Fix | Outcome, *, retained: bool, at_s: float
    ) -> Position | Outcome:
        if isinstance(fix, Outcome):
            return fix
        device = plain_id(fix.device or "") if route.device is None else route.device
        if not device or len(device) > self.limits.max_device_id_chars:
            return Outcome.INVALID__NO_DEVICE
        if retained and fix.ts is None:
            return Outcome.INVALID__RETAINED
        lat, lon = (route.places or {}).get(device, (fix.lat, fix.lon))
        if math.isnan(lat):
            return Outcome.INVALID__NO_FIX
        share = self.limits.max_ids_per_topic
        name = topic.encode("utf-8", "surrogatepass")
        if route.device is None and not self.shares.admits(name, device, share=share, at_s=at_s):
            return Outcome.SUPPRESSED__OVER_SHARE
        readings = {
            self.attribute_of[name]: value
            for name, value in (fix.readings or {}).items()
            if name in self.attribute_of
        }
        for lost in set(fix.unusable) & set(self.attribute_of):
            self.n_unusable[self.attribute_of[lost]] += 1
        ts = math.nan if fix.ts is None else fix.ts
        return Position(route.treatment, device, ts, lat, lon, at_s, readings)
