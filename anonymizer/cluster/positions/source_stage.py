"""A source as a stage: raw messages and reports in, rows for every district out.

A source has all positions of its devices. It closes the ticks that the bridges have stated: decodes
their messages, finds nodes, and sends each district what it needs. What became of the positions it
learns from the reports of the districts, and books a tick when all have reported it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from anonymizer.algorithms.positions.density import advance_versions
from anonymizer.algorithms.positions.district_operator import Keys, rows_of
from anonymizer.algorithms.positions.district_routing import NOWHERE, Router, no_rows
from anonymizer.algorithms.positions.operator import newest_of
from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.cluster.positions.district_lane import closes_at
from anonymizer.cluster.positions.raw_batches import (
    RAW,
    STATEMENTS,
    decode_raw,
    encode_out,
    in_parts,
)
from anonymizer.cluster.positions.sent_ticks import Booked, SentTick, SentTicks
from anonymizer.cluster.positions.source_zones import MakePlaces, SourceZones
from anonymizer.cluster.positions.stage_counts import COUNTING_LANE
from anonymizer.cluster.positions.stage_messages import (
    REPORT,
    Batch,
    Report,
    SourceTally,
    decode_report,
    encode_batch,
    handles_of,
    no_readings,
)
from anonymizer.cluster.positions.stage_readings import SourceReadings
from anonymizer.cluster.positions.tick_queue import TickQueue
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.fixes import Places
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.names import with_room
from anonymizer.pipeline.packed_state import pack_state, unpack_state
from anonymizer.pipeline.positions.counts.counted_devices import CountedDevices
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment, shared_topics
from anonymizer.pipeline.positions.out.public_devices import PublicDevices
from anonymizer.pipeline.positions.tick.factory import districts_of, pace_of
from anonymizer.pipeline.positions.tick.group_readings import GroupReadings
from anonymizer.pipeline.positions.tick.id_lives import IdLives
from anonymizer.pipeline.positions.tick.intake import Locate, admit, coordinate_locator
from anonymizer.pipeline.positions.tick.tick_accounts import Accounts
from anonymizer.pipeline.positions.tick.trip_guard import Positions, TripGuard
from anonymizer.pipeline.positions.tick.zone_places import zone_places
from anonymizer.pipeline.stage import Send, reading
from anonymizer.settings import Settings

_RAW_OF = {RAW: RAW, STATEMENTS: STATEMENTS}
"""What bridges send, by first byte."""


class SourceStage:
    """Runs one source. It sends one batch to each lane at each tick.

    Parameters
    ----------
    settings
        The same for all stages.
    number
        Of the source, from 0.
    secret
        Key of the keys of devices.
    router
        Of the districts.
    locate
        Finds the nodes of positions.
    make_places
        See `SourceZones`.
    make_decoder, make_public
        Return a decoder and the public devices, which count in a ledger.
    make_counted
        Returns the devices that are counted, by their keys. None: counts are not published.
    horizon_s
        A device that is silent for so long is absent everywhere.

    Attributes
    ----------
    ledger
        What was received, and what became of it.
    n_closed
        Ticks that have closed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        number: int,
        secret: bytes,
        router: Router,
        locate: Locate,
        make_places: MakePlaces | None,
        make_decoder: Callable[[Ledger], Decoder],
        make_public: Callable[[Ledger], PublicDevices],
        make_counted: Callable[[Keys], CountedDevices] | None,
        horizon_s: float,
    ) -> None:
        self.number = number
        self.ledger = Ledger()
        self._settings = settings
        self._interval_s = settings.tick.interval_s
        self._n_lanes = settings.region.districts
        self._horizon_s = horizon_s
        self._queue = TickQueue(
            settings.tick.queue_limit,
            self.ledger,
            wait_s=settings.cluster.wait_s,
            is_shared=shared_topics(settings.inputs),
        )
        self._make_decoder = make_decoder
        self._decoder = make_decoder(self.ledger)
        self._public = make_public(self.ledger)
        self._devices = DeviceTable(secret=secret, max_devices=settings.presence.max_devices)
        self._readings = SourceReadings(settings.readings, self._devices.keys)
        self._counted = make_counted(self._devices.keys) if make_counted else None
        self._ids = IdLives(kept_s=horizon_s + settings.tick.interval_s)
        self._trips = TripGuard(settings.trips, self.ledger)
        self._locate = locate
        self._zones = SourceZones(
            settings.device_zones, self._devices, make_places, passing_s=horizon_s
        )
        self._router = router
        self._accounts = Accounts(self.ledger)
        self._sent = SentTicks(self._n_lanes)
        self._version_of: FloatArray = np.full(0, -np.inf)
        self._home_of: Int32Array = np.zeros(0, np.int32)
        """District of each device, plus one, by the ticks that were booked; 0: none."""
        self._absent_before = -np.inf
        self.n_closed = 0

    @property
    def n_held(self) -> int:
        """Positions received and not settled.

        They wait for a tick, for their trip to go on, for a report or for a group.
        """
        in_ticks = self._queue.n_waiting + self._trips.n_held + self._sent.n_positions
        return in_ticks + self._accounts.n_waiting

    @property
    def tick(self) -> int | None:
        """The tick that closed last; None: none yet."""
        return self._queue.last

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        return {
            "ticks": self.n_closed,
            "incomplete_ticks": self._queue.n_incomplete,
            "late_messages": self._queue.n_late,
            "clamped_readings": int((self._readings.n_clamped + self._public.n_clamped).sum()),
        }

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take what a bridge or a lane sends; return what the ticks that close now send."""
        kind = value[:1]
        with reading():
            report = decode_report(value) if kind == REPORT else None
            raw = None if kind == REPORT else decode_raw(value, of=_RAW_OF[kind])
        self._queue.pass_time(at_s)
        if report is not None:
            self._read(report)
        elif raw is not None:
            (self._queue if kind == RAW else self._zones).put(raw)
        sends: list[Send] = []
        while (tick := self._queue.due()) is not None:
            if self._is_too_far_ahead(tick):
                break
            sends += self._close(tick)
        return sends

    def _event_s(self, tick: int) -> float:
        """Return the time at which the positions that a tick sends were current."""
        return closes_at(tick, self._interval_s) - self._trips.delay_s

    def _is_too_far_ahead(self, tick: int) -> bool:
        """Return whether so much has not been reported that the tick has to wait."""
        oldest = self._sent.oldest
        return oldest is not None and (tick - oldest) * self._interval_s > self._horizon_s

    def _close(self, tick: int) -> Iterator[Send]:
        now, event_s = closes_at(tick, self._interval_s), self._event_s(tick)
        last = self._queue.last
        since = now - self._interval_s
        if last is not None:
            since = max(since, closes_at(last, self._interval_s))
        self._decoder.forget(at_s=self._queue.now, kept_s=self._settings.presence.ttl_s)
        decoded = self._decoder.decode(self._queue.take(tick)).of
        yield from self._public_messages(decoded[Treatment.PUBLIC], since=since, now=now)
        arrived = self._positions(decoded[Treatment.MOBILE], since=since, now=now)
        positions = self._trips.pass_on(arrived, now=now)
        self._zones.apply(tick, bridges=self._queue.bridges)
        located = self._locate(positions)
        node, hidden = self._zones.cover(positions, located, now=event_s)
        slot, ts = positions.slot, positions.ts
        id_since = self._ids.since(slot, ts, now=event_s)
        shown = np.where(hidden, np.int32(NOWHERE), located)
        tally = self._tally(positions, shown, now=event_s, since=id_since)
        self._readings.forget(slot[hidden])
        self._make_room(len(self._devices.n_freed))
        outcome = advance_versions(self._version_of, slot, ts, node)
        newest = newest_of(outcome, slot, ts, node)
        who = slot[newest.moved]
        rows = rows_of(
            newest,
            slot,
            ts,
            node,
            keys=self._devices.keys(who),
            handle=handles_of(self.number, who),
            since=id_since,
        )
        sent = self._router.route(who, rows)
        readings = self._readings.for_districts(
            who, sent.left, self._router, since=now - self._horizon_s
        )
        self._sent.add(SentTick.of(tick, positions, hidden, newest, sent, n_lanes=self._n_lanes))
        self.n_closed += 1
        present = self._version_of > -np.inf
        self._free(self._trips.freed(np.zeros(0, np.int32), now=now, present=present))
        of_lane = dict(zip(sent.district, sent.rows, strict=True))
        for lane in range(self._n_lanes):
            batch = Batch(
                self.number,
                tick,
                of_lane.get(lane, no_rows()),
                readings.get(lane, no_readings()),
                tally if lane == COUNTING_LANE else None,
            )
            yield Send("lane", lane, encode_batch(batch))

    def _tally(
        self, positions: Positions, node: Int32Array, *, now: float, since: FloatArray | None
    ) -> SourceTally | None:
        """Count the devices; return the tally of an interval that has ended, if one has."""
        if self._counted is None:
            return None
        ended = self._counted.tick(positions.slot, positions.ts, node, now=now, since=since)
        if ended is None:
            return None
        return SourceTally(ended.number, ended.tally() if ended.is_whole else None)

    def _public_messages(self, decoded: Decoded, *, since: float, now: float) -> Iterator[Send]:
        """Publish the public fixed devices: no district has to do with them."""
        messages = self._public.tick(decoded, since=since, now=now).messages
        self.ledger.settle(Outcome.PUBLISHED, len(messages))
        for part in in_parts(messages):
            yield Send("out", self.number, encode_out(part))

    def _positions(self, decoded: Decoded, *, since: float, now: float) -> Positions:
        return admit(
            decoded,
            presence=self._settings.presence,
            devices=self._devices,
            readings=self._readings,
            ids=self._ids,
            ledger=self.ledger,
            since=since,
            now=now,
        )

    def _read(self, report: Report) -> None:
        """Read a report; book the ticks that all lanes have reported."""
        if self._sent.read(report):
            while (booked := self._sent.pop()) is not None:
                self._book(booked)

    def _book(self, booked: Booked) -> None:
        sent, home_of = booked.sent, self._home_of
        home_of[sent.slot[sent.moved]] = sent.home + 1
        grouped = _at_home(home_of, [(each.lane, each.released) for each in booked.reports])
        ended = _at_home(home_of, [(each.lane, each.ended) for each in booked.reports])
        gone = (self._version_of < self._absent_before) & (self._version_of > -np.inf)
        # A tick later than the districts: the last one that knows a device forgets it before.
        self._absent_before = self._event_s(sent.tick) - self._horizon_s
        freed = np.flatnonzero(gone).astype(np.int32)
        carried = self._accounts.book(
            sent.final(),
            sent.slot,
            sent.tag,
            grouped=grouped,
            lost=np.union1d(ended, freed).astype(np.int32),
        )
        self.ledger.settle(Outcome.PUBLISHED, len(carried.slot))
        self._version_of[freed] = -np.inf
        home_of[freed] = 0
        self._router.forget(freed)
        self._free(freed[~self._trips.knows(freed)])

    def _free(self, slots: Int32Array) -> None:
        """Forget the devices of these slots."""
        self._devices.free(slots)
        self._ids.forget(slots)
        self._readings.free(slots)
        if self._counted is not None:
            self._counted.free(slots)
        self._zones.forget(slots)

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._version_of)
        if more > 0:
            self._version_of = np.concatenate([self._version_of, np.full(more, -np.inf)])
            self._home_of = with_room(self._home_of, n_slots)[:n_slots]

    def snapshot(self) -> bytes:
        """Return the whole state. It holds where devices are: store it like raw positions."""
        return pack_state(
            f"source {self.number}",
            {
                "queue": self._queue.state(),
                "ledger": self.ledger.state(),
                "decoder": self._decoder.state(),
                "devices": self._devices.state(),
                "ids": self._ids.state(),
                "readings": self._readings.state(),
                "counted": None if self._counted is None else self._counted.state(),
                "public_clamped": self._public.n_clamped,
                "trips": self._trips.state(),
                "zones": self._zones.state(),
                "router": self._router.state(),
                "accounts": self._accounts.state(),
                "sent": self._sent.state(),
                "version_of": self._version_of,
                "home_of": self._home_of,
                "absent_before": self._absent_before,
                "n_closed": self.n_closed,
            },
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same source."""
        state = unpack_state(f"source {self.number}", snapshot)
        self._queue.restore(state["queue"])
        self.ledger.restore(state["ledger"])
        # What it remembers besides is found again.
        self._decoder = self._make_decoder(self.ledger)
        self._decoder.restore(state["decoder"])
        self._devices.restore(state["devices"])
        self._ids.restore(state["ids"])
        self._readings.restore(state["readings"])
        self._public.n_clamped = state["public_clamped"]
        if self._counted is not None and state["counted"] is not None:
            self._counted.restore(state["counted"])
        self._trips.restore(state["trips"])
        self._zones.restore(state["zones"])
        self._router.restore(state["router"])
        self._accounts.restore(state["accounts"])
        self._sent.restore(state["sent"])
        self._version_of, self._home_of = state["version_of"], state["home_of"]
        self._absent_before, self.n_closed = state["absent_before"], state["n_closed"]


def _at_home(home_of: Int32Array, said: Sequence[tuple[int, Int32Array]]) -> Int32Array:
    """Return the devices, rising, that districts have said something of and are in these.

    What a district says of one that has left it means nothing to its newest position. One that has
    lost its state does not know all the devices that districts know.
    """
    known = [(lane, slot[slot < len(home_of)]) for lane, slot in said]
    found = [slot[home_of[slot] == lane + 1] for lane, slot in known]
    return np.unique(np.concatenate([np.zeros(0, np.int32), *found]))


def source_stages(
    settings: Settings,
    zoned: ZonedNetwork,
    *,
    secret: bytes,
    registries: Mapping[Path, Places] = MappingProxyType({}),
    payload_secrets: Mapping[Path, Sequence[bytes]] = MappingProxyType({}),
) -> Callable[[int], SourceStage]:
    """Return a function that makes the source of a number; all share what never changes.

    Parameters
    ----------
    settings
        The same for all stages.
    zoned
        The network and its privacy zones.
    secret
        Key of the keys of devices and of their stand-ins in zones, the same for all stages.
    registries
        The places that each registry of the inputs lists, by its path.
    payload_secrets
        The secrets of encrypted payloads, by the key file of the inputs.
    """
    topics = TopicRouter(settings.inputs, registries, payload_secrets)
    index_of = GroupReadings(settings.readings).index_of
    districts = districts_of(settings, zoned.network)
    locate = coordinate_locator(zoned, snap_limit_m=settings.network.snap_limit_m)
    make_places = zone_places(zoned, secret=secret)
    horizon_s = pace_of(settings).longest_ttl_s

    def make_counted(keys: Keys) -> CountedDevices:
        return CountedDevices(
            settings.counts,
            zoned.network,
            keys=keys,
            kept_s=horizon_s,
            slack_s=settings.tick.interval_s,
        )

    def make_decoder(ledger: Ledger) -> Decoder:
        ttl_s = settings.presence.ttl_s
        return Decoder(topics, settings.limits, ledger, attribute_of=index_of, ids_kept_s=ttl_s)

    def make(number: int) -> SourceStage:
        return SourceStage(
            settings,
            number=number,
            secret=secret,
            router=Router(districts),
            locate=locate,
            make_places=make_places,
            make_decoder=make_decoder,
            make_public=lambda ledger: PublicDevices(settings, zoned, ledger),
            make_counted=make_counted if settings.counts.enabled else None,
            horizon_s=horizon_s,
        )

    return make
