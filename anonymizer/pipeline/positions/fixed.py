"""Fixed devices: cloaked among each other, or published as public, but never company for others.

A device that stands still is covered at the same nodes for as long as its group lives. Whoever
subtracts what never changes is left with the members that move, so fixed devices have groups, a
density map and a promise of their own.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.algorithms.positions.readings import rounded
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network_version import network_version
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.readings import ReadingAttribute
from anonymizer.domain.release import Release
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.admission import admit, timeliness
from anonymizer.pipeline.positions.core import FlowCore, round_time, round_up
from anonymizer.pipeline.positions.decoded import Decoded
from anonymizer.pipeline.positions.decoding import date_the_undated
from anonymizer.pipeline.positions.encoding import Contract, ReleaseEncoder
from anonymizer.pipeline.positions.factory import Operator
from anonymizer.pipeline.positions.input_counts import InputCounts, LocatedInputs
from anonymizer.pipeline.positions.region_shapes import shapes_of
from anonymizer.pipeline.positions.tick_accounts import Carried
from anonymizer.settings import Settings, TripSettings


class TickPart(NamedTuple):
    """The messages of some devices in a tick.

    Attributes
    ----------
    messages
        To be published.
    message_of, at_s
        Message that contains each position, and its monotonic arrival time, shape (n,).
    n_direct
        The first so many positions arrived in this tick; the others had waited for a group.
    """

    messages: list[Outgoing]
    message_of: IntArray
    at_s: FloatArray
    n_direct: int


def part_of(
    messages: list[Outgoing], message_of_member: IntArray, release: Release, carried: Carried
) -> TickPart:
    """Return the messages of a release with the positions that they carry.

    Parameters
    ----------
    messages, message_of_member
        As returned by `ReleaseEncoder.encode`.
    release, carried
        The release, and the positions to be published with it, tagged with their arrival times.
    """
    n_slots = int(max(release.member.max(initial=-1), carried.slot.max(initial=-1))) + 1
    message_of_slot = np.full(n_slots, -1, np.int64)
    message_of_slot[release.member] = message_of_member
    return TickPart(messages, message_of_slot[carried.slot], carried.tag, carried.n_direct)


def joined(parts: Sequence[TickPart]) -> TickPart:
    """Return all parts of a tick as one, with the positions that had waited at the end."""
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(len(part.messages) for part in parts)])
    message_of = [part.message_of + n for part, n in zip(parts, before.tolist(), strict=False)]
    cut = [part.n_direct for part in parts]
    return TickPart(
        [message for part in parts for message in part.messages],
        np.concatenate(
            [of[:n] for of, n in zip(message_of, cut, strict=True)]
            + [of[n:] for of, n in zip(message_of, cut, strict=True)]
        ),
        np.concatenate(
            [part.at_s[: part.n_direct] for part in parts]
            + [part.at_s[part.n_direct :] for part in parts]
        ),
        sum(cut),
    )


class FixedFlow:
    """The fixed devices of all inputs.

    Parameters
    ----------
    settings
        The whole settings.
    zoned
        A network with coordinates, and its privacy zones.
    ledger
        Where positions are settled.
    secret
        Key of the pseudonyms of mobile devices; those of fixed devices have another, which
        follows from it.
    inputs
        Where positions are counted by input.
    """

    def __init__(
        self,
        settings: Settings,
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        secret: bytes,
        inputs: InputCounts,
    ) -> None:
        key = blake2b(secret, digest_size=32, person=b"fixed").digest()
        self._cloaked = (
            _Cloaked(_for_fixed(settings), zoned, ledger, secret=key, inputs=inputs)
            if any(i.kind == "fixed" and i.publish == "cloaked" for i in settings.inputs)
            else None  # its operator would cost memory
        )
        self._public = PublicDevices(settings, zoned, ledger, inputs=inputs)

    @property
    def operator(self) -> Operator | None:
        """The operator of the cloaked devices; None: there are none."""
        return self._cloaked.core.operator if self._cloaked else None

    @property
    def n_held(self) -> int:
        """Positions that wait for a group."""
        return self._cloaked.core.n_held if self._cloaked else 0

    @property
    def n_devices(self) -> int:
        """Cloaked devices present, on the graph or off it."""
        return len(self._cloaked.devices) if self._cloaked else 0

    @property
    def n_clamped(self) -> IntArray:
        """Readings outside their declared range, shape (attributes,)."""
        cloaked = self._cloaked.core.readings.n_clamped if self._cloaked else 0
        return self._public.n_clamped + cloaked

    @property
    def n_left_out(self) -> IntArray:
        """Groups in which fewer than k members had a reading, shape (attributes,)."""
        none = np.zeros_like(self._public.n_clamped)
        return self._cloaked.core.readings.n_left_out if self._cloaked else none

    def tick(
        self,
        cloaked: Decoded,
        public: Decoded,
        *,
        since: float,
        now: float,
        wall_ahead_s: float = 0.0,
    ) -> list[TickPart]:
        """Return what is published about the fixed devices in this tick.

        Parameters
        ----------
        cloaked, public
            Positions of the tick, by `publish` of their inputs.
        since, now
            Unix seconds between which the tick was open.
        wall_ahead_s
            Added to published times, see `PositionFlow.release`.
        """
        window = {"since": since, "now": now, "wall_ahead_s": wall_ahead_s}
        parts = [self._public.tick(public, **window)]
        if self._cloaked:
            parts.append(self._cloaked.tick(cloaked, **window))
        return parts

    def adopt(self, settings: Settings) -> None:
        """Apply other settings, as far as they may change: see `settings.reload`."""
        if self._cloaked:
            self._cloaked.adopt(_for_fixed(settings))
        self._public.presence = settings.presence

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        if self._cloaked:
            self._cloaked.core.close()


def _for_fixed(settings: Settings) -> Settings:
    """Return the settings of a flow of fixed devices alone.

    They make no trips, and are too few to be cut into districts.
    """
    fixed = settings.fixed
    return settings.model_copy(
        update={
            "presence": settings.presence.model_copy(update={"ttl_s": fixed.ttl_s}),
            "session": settings.session.model_copy(update={"epoch_s": fixed.epoch_s}),
            "trips": TripSettings(),
            "region": settings.region.model_copy(update={"districts": 1}),
        }
    )


class _Cloaked:
    """Fixed devices that are hidden among each other."""

    def __init__(
        self,
        settings: Settings,
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        secret: bytes,
        inputs: InputCounts,
    ) -> None:
        self._inputs = LocatedInputs(inputs)
        self.devices = DeviceTable(secret=secret, max_devices=settings.presence.max_devices)
        self.core = FlowCore(settings, zoned, ledger, keys=self.devices.keys)
        self._presence = settings.presence
        self._time_step_s = settings.output.time_step_s
        self._ledger = ledger
        shapes = settings.shapes
        self._encoder = ReleaseEncoder(
            zoned.network,
            topic=settings.topics.fixed,
            form=settings.output.form,
            contract=Contract(
                network_version(zoned.network),
                shapes_of(zoned.network, shapes.regions, h3_resolution=shapes.h3_resolution),
            ),
        )

    def adopt(self, settings: Settings) -> None:
        self._presence = settings.presence
        self.core.set_rule(settings)

    def tick(self, decoded: Decoded, *, since: float, now: float, wall_ahead_s: float) -> TickPart:
        positions = admit(
            decoded,
            presence=self._presence,
            devices=self.devices,
            readings=self.core.readings,
            ids=self.core.ids,
            ledger=self._ledger,
            since=since,
            now=now,
            inputs=self._inputs,
        )
        located = self.core.locate(positions, now=now)
        self._inputs.locate(located.positions.slot, located.node)
        tick = self.core.cloak(located, now=now)
        messages, message_of_member = self._encoder.encode(
            tick.release,
            time=round_time(tick.event_s + wall_ahead_s, self._time_step_s),
            pseudonyms=self.devices.pseudonyms,
            values=tick.values,
            until=round_up(tick.until_s + wall_ahead_s, self._time_step_s),
        )
        self.devices.free(tick.freed)
        return part_of(messages, message_of_member, tick.release, tick.carried)


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

    Parameters
    ----------
    settings
        The whole settings.
    zoned
        A network with coordinates, and its privacy zones.
    ledger
        Where positions that are not published are settled.
    inputs
        Where positions are counted by input.
    """

    def __init__(
        self,
        settings: Settings,
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        inputs: InputCounts | None = None,
    ) -> None:
        self._inputs = inputs
        self.presence = settings.presence
        self._zones = zoned.zones
        self._ledger = ledger
        self._topic = settings.fixed.public_topic
        self._attributes = [reading.attribute for reading in settings.readings]
        self.n_clamped: IntArray = np.zeros(len(self._attributes), np.int64)
        self._encode = msgspec.json.Encoder().encode

    def tick(
        self, decoded: Decoded, *, since: float, now: float, wall_ahead_s: float = 0.0
    ) -> TickPart:
        """Return the messages of a tick, see `FixedFlow.tick`."""
        outcome = timeliness(decoded.ts, self.presence, now=now)
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
        return TickPart(messages, np.arange(len(kept)), decoded.at_s[kept], len(kept))

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
