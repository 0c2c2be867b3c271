"""A source as a stage: raw messages and reports in, rows for every district out.

A source has all positions of its devices. It closes the ticks that the bridges have stated: decodes
their messages, finds nodes, and sends each district what it needs. What became of the positions it
learns from the reports of the districts, and books a tick when all have reported it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.density import advance_versions
from anonymizer.algorithms.positions.district_operator import rows_of
from anonymizer.algorithms.positions.district_routing import Router, no_rows
from anonymizer.algorithms.positions.operator import moving, newest_of
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.device_routing import FIXED_SOURCE
from anonymizer.cluster.positions.district_lane import closes_at
from anonymizer.cluster.positions.raw_batches import (
    RAW,
    STATEMENTS,
    Raw,
    decode_raw,
    encode_out,
    in_parts,
)
from anonymizer.cluster.positions.sent_ticks import Booked, SentTick, SentTicks
from anonymizer.cluster.positions.stage_messages import (
    REPORT,
    Batch,
    Report,
    decode_report,
    encode_batch,
    handles_of,
    no_readings,
)
from anonymizer.cluster.positions.stage_outputs import SourceOutputs
from anonymizer.cluster.positions.stage_readings import SourceReadings
from anonymizer.cluster.positions.tick_queue import TickQueue
from anonymizer.cluster.positions.zone_statements import ZoneStatements
from anonymizer.cluster.stage import Send, reading
from anonymizer.domain.arrays import FloatArray, Int32Array, with_room
from anonymizer.domain.fixes import Places
from anonymizer.domain.outcomes import Outcome
from anonymizer.outputs.copies import Copies
from anonymizer.outputs.output import Output
from anonymizer.outputs.registry import asked_for
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment, shared_topics
from anonymizer.pipeline.positions.out.public_devices import PublicDevices
from anonymizer.pipeline.positions.tick.factory import (
    admission_parameters,
    districts_of,
    fixed_fleet,
    pace_of,
)
from anonymizer.pipeline.positions.tick.fleet import Admission, Fleet, secret_of_fixed
from anonymizer.pipeline.positions.tick.group_readings import GroupReadings
from anonymizer.pipeline.positions.tick.intake import MapMatching, matching_with
from anonymizer.pipeline.positions.tick.meaning import places_digest
from anonymizer.pipeline.positions.tick.tick_accounts import Accounts
from anonymizer.settings import Settings


class _Everywhere(NamedTuple):
    """What a source knows of all districts together, see `intake.Lasting`."""

    pace: Pace

    @property
    def holds_s(self) -> float:
        """The longest time to live: no source knows how often all devices report."""
        return self.pace.longest_ttl_s


_RAW_OF = {RAW: RAW, STATEMENTS: STATEMENTS}
"""What bridges send, by first byte."""


class SourceStage:
    """Runs one source. It sends one batch to each lane at each tick.

    `places`: see `places_digest`; a state of others is not read.
    `make_decoder`, `make_public` and `make_fixed` return a decoder, the public devices and the
    cloaked fixed devices, which count in a ledger; without the last there are none, or another
    source has them. `outputs` are published besides groups. A device that is silent for the longest
    time to live of `pace` is absent everywhere. `ledger`: what was received, and what became of it;
    `n_closed`: ticks that have closed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        number: int,
        places: str,
        secret: bytes,
        router: Router,
        matching: MapMatching,
        make_decoder: Callable[[Ledger], Decoder],
        make_public: Callable[[Ledger], PublicDevices],
        make_fixed: Callable[[Ledger], Fleet] | None,
        copies: Copies,
        outputs: Sequence[Output],
        pace: Pace,
    ) -> None:
        self.number = number
        self._name = f"source {number} of {places}"
        self.ledger = Ledger()
        self._settings = settings
        self._interval_s = settings.tick.interval_s
        self._n_lanes = settings.region.districts
        self._horizon_s = pace.longest_ttl_s
        self._queue = TickQueue(
            settings.presence.queue_limit,
            self.ledger,
            wait_s=settings.cluster.wait_s,
            is_shared=shared_topics(settings.inputs),
        )
        self._make_decoder = make_decoder
        self._decoder = make_decoder(self.ledger)
        self._public = make_public(self.ledger)
        self._fixed = make_fixed(self.ledger) if make_fixed else None
        self._copies = copies
        self._devices = DeviceTable(secret=secret, max_devices=settings.presence.max_devices)
        self._readings = SourceReadings(settings.readings, self._devices.keys)
        self._outputs = SourceOutputs(
            outputs,
            number=number,
            keys=self._devices.keys,
            kept_s=pace.longest_ttl_s,
            n_sources=settings.cluster.n_parts,
        )
        # Who continues whom cannot be seen: the other id may be in another source.
        self._admission = Admission(
            admission_parameters(settings, watches_ids=False),
            matching,
            self.ledger,
            devices=self._devices,
            readings=self._readings,
            lasting=_Everywhere(pace),
        )
        zones = self._admission.device_zones
        self._statements = None if zones is None else ZoneStatements(zones)
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
        in_ticks = self._queue.n_waiting + self._admission.intake.n_held + self._sent.n_positions
        of_fixed = 0 if self._fixed is None else self._fixed.n_held
        return in_ticks + self._accounts.n_waiting + of_fixed

    @property
    def tick(self) -> int | None:
        """The tick that closed last; None: none yet."""
        return self._queue.last

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        clamped = self._readings.n_clamped + self._public.n_clamped
        if self._fixed is not None:
            clamped = clamped + self._fixed.engine.readings.n_clamped
        return {
            "ticks": self.n_closed,
            "incomplete_ticks": self._queue.n_incomplete,
            "late_messages": self._queue.n_late,
            "clamped_readings": int(clamped.sum()),
        }

    @property
    def behind_s(self) -> float:
        """Seconds for which nothing is sent, because a clock was ahead by as much."""
        return self._queue.n_behind * self._interval_s

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take a message of a bridge or a lane; return the messages of the ticks that close now."""
        kind = value[:1]
        with reading():
            report = decode_report(value, n_lanes=self._n_lanes) if kind == REPORT else None
            raw = None if kind == REPORT else decode_raw(value, of=_RAW_OF[kind])
        self._queue.pass_time(at_s)
        if report is not None:
            self._read(report)
        elif raw is not None and kind == RAW:
            self._queue.put(raw)
        elif raw is not None:
            self._note_statements(raw)
        sends: list[Send] = []
        while (tick := self._queue.due()) is not None:
            if self._is_too_far_ahead(tick):
                break
            sends += self._close(tick)
        return sends

    def _event_s(self, tick: int) -> float:
        """Return the time at which the positions that a tick sends were current."""
        return closes_at(tick, self._interval_s) - self._admission.intake.delay_s

    def _is_too_far_ahead(self, tick: int) -> bool:
        """Return whether too much is still unreported, so that the tick has to wait."""
        oldest = self._sent.oldest
        return oldest is not None and (tick - oldest) * self._interval_s > self._horizon_s

    def _note_statements(self, raw: Raw) -> None:
        """Take in what a bridge passes on about zones that devices own.

        Raises `ValueError` if the settings allow no such zones.
        """
        if self._statements is None:
            raise ValueError("bridges pass zones of devices on, which the settings do not allow")
        self._statements.put(raw)

    def _close(self, tick: int) -> Iterator[Send]:
        now = closes_at(tick, self._interval_s)
        last = self._queue.last
        since = now - self._interval_s
        if last is not None:
            since = max(since, closes_at(last, self._interval_s))
        self._decoder.forget(at_s=self._queue.now, kept_s=self._settings.presence.ttl_s)
        decoded = self._decoder.decode(self._queue.take(tick)).of
        for part in decoded:
            self._decoder.date(part, now=now)
        yield from self._public_messages(decoded[Treatment.PUBLIC], since=since, now=now)
        yield from self._fixed_messages(decoded[Treatment.CLOAKED], since=since, now=now)
        if self._statements is not None:
            self._statements.apply(tick, bridges=self._queue.bridges)
        located = self._admission.locate(decoded[Treatment.MOBILE], since=since, now=now)
        yield from self._outputs.see(located, self._admission.device_zones)
        gone = located.withdrawn
        positions, node, hidden = located.positions, located.counted_at, located.hidden
        slot, ts, id_since = positions.slot, positions.ts, located.id_since
        if located.event_s < located.now:  # which zone it was in is known late
            self._readings.forget(slot[hidden])
        self._readings.forget(gone)
        self._make_room(len(self._devices.n_freed))
        outcome = advance_versions(self._version_of, slot, moving(ts, node), node)
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
        self._sent.add(
            SentTick.of(
                tick, positions, hidden, newest, sent, withdrawn=gone, n_lanes=self._n_lanes
            )
        )
        self.n_closed += 1
        self._forget(np.zeros(0, np.int32), now=now)
        of_lane = dict(zip(sent.district, sent.rows, strict=True))
        withdrawn = handles_of(self.number, gone)
        for lane in range(self._n_lanes):
            batch = Batch(
                self.number,
                tick,
                of_lane.get(lane, no_rows()),
                readings.get(lane, no_readings()),
                withdrawn,
            )
            yield Send("lane", lane, encode_batch(batch))

    def _public_messages(self, decoded: Decoded, *, since: float, now: float) -> Iterator[Send]:
        """Publish the public fixed devices: no district has to do with them."""
        messages = self._public.tick(decoded, since=since, now=now).messages
        self.ledger.settle(Outcome.PUBLISHED, len(messages))
        yield from self._outgoing(messages)

    def _fixed_messages(self, decoded: Decoded, *, since: float, now: float) -> Iterator[Send]:
        """Cloak and publish fixed devices, of which one source has all."""
        if self._fixed is None:
            # A bridge with other settings has sent them: there is no company for them here.
            self.ledger.settle(Outcome.SUPPRESSED__TOO_FEW_DEVICES, len(decoded.ts))
            return
        tick = self._fixed.engine.tick(self._fixed.locate(decoded, since=since, now=now))
        messages = self._fixed.publish(tick, wall_ahead_s=0.0).messages
        self._fixed.forget(tick, now=now)
        self.ledger.settle(Outcome.PUBLISHED, len(tick.carried.slot))
        yield from self._outgoing(messages + self._copies.of(messages))

    def _outgoing(self, messages: Sequence[Outgoing]) -> Iterator[Send]:
        for part in in_parts(messages):
            yield Send("out", self.number, encode_out(part))

    def _read(self, report: Report) -> None:
        """Read a report; book the ticks that all lanes have reported."""
        if self._sent.read(report):
            while (booked := self._sent.pop()) is not None:
                self._book(booked)

    def _book(self, booked: Booked) -> None:
        sent, home_of = booked.sent, self._home_of
        self._accounts.withdraw(sent.withdrawn)
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
        self._forget(freed, now=closes_at(sent.tick, self._interval_s))

    def _forget(self, freed: Int32Array, *, now: float) -> None:
        """Forget these devices, and those whose trips have ended, unless they are still used."""
        freed = self._admission.forget(freed, now=now, present=self._version_of > -np.inf)
        self._outputs.free(freed)

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._version_of)
        if more > 0:
            self._version_of = np.concatenate([self._version_of, np.full(more, -np.inf)])
            self._home_of = with_room(self._home_of, n_slots)[:n_slots]

    def snapshot(self) -> bytes:
        """Return the whole state. It holds where devices are: store it like raw positions."""
        return pack_state(
            self._name,
            {
                "queue": self._queue.state(),
                "ledger": self.ledger.state(),
                "decoder": self._decoder.state(),
                "admission": self._admission.state(),
                "outputs": self._outputs.state(),
                "public_clamped": self._public.n_clamped,
                "fixed": None if self._fixed is None else self._fixed.state(),
                "statements": None if self._statements is None else self._statements.state(),
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
        state = unpack_state(self._name, snapshot)
        self._queue.restore(state["queue"])
        self.ledger.restore(state["ledger"])
        # What it remembers besides is found again.
        self._decoder = self._make_decoder(self.ledger)
        self._decoder.restore(state["decoder"])
        self._admission.restore(state["admission"])
        self._public.n_clamped = state["public_clamped"]
        if self._fixed is not None and state["fixed"] is not None:
            self._fixed.restore(state["fixed"])
        self._outputs.restore(state["outputs"])
        if self._statements is not None and state["statements"] is not None:
            self._statements.restore(state["statements"])
        self._router.restore(state["router"])
        self._accounts.restore(state["accounts"])
        self._sent.restore(state["sent"])
        self._version_of, self._home_of = state["version_of"], state["home_of"]
        self._absent_before, self.n_closed = state["absent_before"], state["n_closed"]


def _at_home(home_of: Int32Array, said: Sequence[tuple[int, Int32Array]]) -> Int32Array:
    """Return the devices, rising, that are in a district which has said something of them.

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

    `secret` is the key of the keys of devices and of their stand-ins in zones, the same for all
    stages. `registries` and `payload_secrets`: places and secrets in the files of the inputs, by
    path.
    """
    topics = TopicRouter(settings.inputs, registries, payload_secrets)
    index_of = GroupReadings(settings.readings).index_of
    districts = districts_of(settings, zoned.network)
    matching = matching_with(zoned, snap_limit_m=settings.network.snap_limit_m, secret=secret)
    pace = pace_of(settings)
    copies = Copies(settings, zoned.network)
    places = places_digest(zoned.network, districts)
    outputs = [each(settings, zoned.network) for each in asked_for(settings)]
    has_fixed = any(Treatment.of(each) == Treatment.CLOAKED for each in settings.inputs)

    def make_fixed(ledger: Ledger) -> Fleet:
        parameters = fixed_fleet(settings, zoned.network)
        return Fleet(parameters, zoned, ledger, secret=secret_of_fixed(secret))

    def make_decoder(ledger: Ledger) -> Decoder:
        ttl_s = settings.presence.ttl_s
        return Decoder(topics, settings.limits, ledger, attribute_of=index_of, ids_kept_s=ttl_s)

    def make(number: int) -> SourceStage:
        return SourceStage(
            settings,
            number=number,
            places=places,
            secret=secret,
            router=Router(districts),
            matching=matching,
            make_decoder=make_decoder,
            make_public=lambda ledger: PublicDevices(settings, zoned, ledger),
            make_fixed=make_fixed if has_fixed and number == FIXED_SOURCE else None,
            copies=copies,
            outputs=outputs,
            pace=pace,
        )

    return make
