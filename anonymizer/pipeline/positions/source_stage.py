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
from anonymizer.algorithms.positions.district_operator import rows_of
from anonymizer.algorithms.positions.district_routing import Router, no_rows
from anonymizer.algorithms.positions.districts import Folds
from anonymizer.algorithms.positions.operator import newest_of
from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.names import with_room
from anonymizer.pipeline.packed_state import pack_state, unpack_state
from anonymizer.pipeline.positions.admission import admit
from anonymizer.pipeline.positions.core import Locate, coordinate_locator
from anonymizer.pipeline.positions.decoding import Decoder
from anonymizer.pipeline.positions.district_lane import closes_at
from anonymizer.pipeline.positions.factory import districts_of, folds_of, pace_of
from anonymizer.pipeline.positions.group_readings import GroupReadings
from anonymizer.pipeline.positions.inbox import Arrivals
from anonymizer.pipeline.positions.raw_batches import RAW, decode_raw
from anonymizer.pipeline.positions.sent_ticks import Booked, SentTick, SentTicks
from anonymizer.pipeline.positions.stage_messages import (
    REPORT,
    Batch,
    Report,
    decode_report,
    encode_batch,
    handles_of,
)
from anonymizer.pipeline.positions.tick_accounts import Accounts
from anonymizer.pipeline.positions.tick_queue import TickQueue
from anonymizer.pipeline.positions.topics import TopicRouter, Treatment, shared_topics
from anonymizer.pipeline.positions.trip_guard import Positions
from anonymizer.pipeline.stage import Send
from anonymizer.settings import Settings


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
    router, folds
        Of the districts.
    locate
        Finds the nodes of positions.
    make_decoder
        Returns a decoder that counts in a ledger.
    horizon_s
        A device that is silent for so long is absent everywhere.

    Attributes
    ----------
    ledger
        What was received, and what became of it.
    n_closed, n_shared
        Ticks that have closed, and devices that two districts have published at one tick: never,
        unless a promise is broken.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        number: int,
        secret: bytes,
        router: Router,
        folds: Folds,
        locate: Locate,
        make_decoder: Callable[[Ledger], Decoder],
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
        self._devices = DeviceTable(secret=secret, max_devices=settings.presence.max_devices)
        self._locate = locate
        self._router, self._folds = router, folds
        self._accounts = Accounts(self.ledger)
        self._sent = SentTicks(self._n_lanes)
        self._version_of: FloatArray = np.full(0, -np.inf)
        self._n_lanes_of: Int32Array = np.zeros(0, np.int32)
        """How many districts know each device."""
        self.n_closed = self.n_shared = 0

    @property
    def n_held(self) -> int:
        """Positions received and not settled: they wait for a tick, a report or a group."""
        return self._queue.n_waiting + self._sent.n_positions + self._accounts.n_waiting

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
            "shared_devices": self.n_shared,
        }

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take what a bridge or a lane sends; return what the ticks that close now send."""
        self._queue.pass_time(at_s)
        if value[:1] == RAW:
            self._queue.put(decode_raw(value))
        elif value[:1] == REPORT:
            self._read(decode_report(value))
        else:
            raise ValueError("this is no input of a source")
        sends: list[Send] = []
        while (tick := self._queue.due()) is not None:
            now = closes_at(tick, self._interval_s)
            if self._is_too_far_ahead(now):
                break
            sends += self._close(tick, now)
        return sends

    def _is_too_far_ahead(self, now: float) -> bool:
        """Return whether the leaders at a time are not known: they follow from the reports."""
        oldest = self._sent.oldest
        if oldest is None:
            return False
        sent_at = closes_at(oldest, self._interval_s)
        return self._folds.epoch(sent_at) <= self._folds.epoch(now) - 2

    def _close(self, tick: int, now: float) -> Iterator[Send]:
        last = self._queue.last
        since = now - self._interval_s
        if last is not None:
            since = max(since, closes_at(last, self._interval_s))
        positions = self._positions(self._queue.take(tick), since=since, now=now)
        node = self._locate(positions)
        slot, ts = positions.slot, positions.ts
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
        )
        leader_of = self._folds.leaders(now)
        sent = self._router.route(who, rows, leader_of, now=now)
        self._sent.add(SentTick.of(tick, positions, newest, sent, n_lanes=self._n_lanes))
        self.n_closed += 1
        of_lane = dict(zip(sent.district, sent.rows, strict=True))
        for lane in range(self._n_lanes):
            its_rows = of_lane.get(lane)
            batch = Batch(self.number, tick, leader_of, no_rows() if its_rows is None else its_rows)
            yield Send("lane", lane, encode_batch(batch))

    def _positions(self, arrivals: Sequence[Arrivals], *, since: float, now: float) -> Positions:
        presence = self._settings.presence
        self._decoder.forget(at_s=self._queue.now, kept_s=presence.ttl_s)
        decoded = self._decoder.decode(arrivals)
        return admit(
            decoded.of[Treatment.MOBILE],
            presence=presence,
            devices=self._devices,
            readings=GroupReadings(()),
            ledger=self.ledger,
            since=since,
            now=now,
        )

    def _read(self, report: Report) -> None:
        """Read a report; book the ticks that all lanes have reported."""
        if not self._sent.read(report):
            return
        now = closes_at(report.tick, self._interval_s)
        self._folds.count(report.lane, report.n_in, now=now)
        while (booked := self._sent.pop()) is not None:
            self._book(booked)

    def _book(self, booked: Booked) -> None:
        self.n_shared += booked.n_shared
        for slots, change in ((booked.began, 1), (booked.ended, -1)):
            # One that has lost its state does not know all the devices that lanes know.
            np.add.at(self._n_lanes_of, slots[slots < len(self._n_lanes_of)], change)
        before = closes_at(booked.tick, self._interval_s) - self._horizon_s
        # A lane that has lost its state does not say which devices it has forgotten.
        self._n_lanes_of[self._version_of < before - self._horizon_s] = 0
        unknown = self._n_lanes_of <= 0
        gone = unknown & (self._version_of < before) & (self._version_of > -np.inf)
        gone &= ~self._router.remembers(len(unknown))
        carried = self._accounts.book(
            booked.outcome,
            booked.slot,
            booked.tag,
            grouped=booked.released,
            lost=np.flatnonzero(unknown).astype(np.int32),
        )
        self.ledger.settle(Outcome.PUBLISHED, len(carried.slot))
        freed = np.flatnonzero(gone).astype(np.int32)
        self._version_of[freed] = -np.inf
        self._devices.free(freed)

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._version_of)
        if more > 0:
            self._version_of = np.concatenate([self._version_of, np.full(more, -np.inf)])
            self._n_lanes_of = with_room(self._n_lanes_of, n_slots)[:n_slots]

    def snapshot(self) -> bytes:
        """Return the whole state. It holds where devices are: store it like raw positions."""
        return pack_state(
            f"source {self.number}",
            {
                "queue": self._queue.state(),
                "ledger": self.ledger.state(),
                "decoder": self._decoder.state(),
                "devices": self._devices.state(),
                "router": self._router.state(),
                "folds": self._folds.state(),
                "accounts": self._accounts.state(),
                "sent": self._sent.state(),
                "version_of": self._version_of,
                "n_lanes_of": self._n_lanes_of,
                "counts": [self.n_closed, self.n_shared],
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
        self._router.restore(state["router"])
        self._folds.restore(state["folds"])
        self._accounts.restore(state["accounts"])
        self._sent.restore(state["sent"])
        self._version_of, self._n_lanes_of = state["version_of"], state["n_lanes_of"]
        self.n_closed, self.n_shared = state["counts"]


def source_stages(
    settings: Settings,
    zoned: ZonedNetwork,
    *,
    secret: bytes,
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
        Key of the keys of devices, the same for all stages.
    payload_secrets
        The secrets of encrypted payloads, by the key file of the inputs.

    Raises
    ------
    SettingsError
        If there are privacy zones.
    """
    if len(zoned.zones):
        raise SettingsError("zones: stand-ins inside privacy zones are not equal on all workers")
    topics = TopicRouter(settings.inputs, secrets=payload_secrets)
    districts = districts_of(settings, zoned.network)
    locate = coordinate_locator(zoned, snap_limit_m=settings.network.snap_limit_m)
    horizon_s = pace_of(settings).longest_ttl_s

    def make_decoder(ledger: Ledger) -> Decoder:
        return Decoder(topics, settings.limits, ledger, ids_kept_s=settings.presence.ttl_s)

    def make(number: int) -> SourceStage:
        return SourceStage(
            settings,
            number=number,
            secret=secret,
            router=Router(districts, horizon_s=horizon_s),
            folds=folds_of(settings),
            locate=locate,
            make_decoder=make_decoder,
            horizon_s=horizon_s,
        )

    return make
