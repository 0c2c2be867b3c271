"""The positions flow: arrivals of one tick in, messages out, every position accounted for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.positions.operator import classify_time
from anonymizer.algorithms.positions.protection import round_time
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.decoding import Decoded, Decoder, date_the_undated
from anonymizer.pipeline.positions.encoding import ReleaseEncoder
from anonymizer.pipeline.positions.factory import Places, cloaking_operator, density_rule
from anonymizer.pipeline.positions.flow_stats import FlowStats, LightAudit, PseudonymAges
from anonymizer.pipeline.positions.group_readings import GroupReadings
from anonymizer.pipeline.positions.inbox import Arrivals
from anonymizer.pipeline.positions.tick_accounts import Accounts
from anonymizer.pipeline.positions.topics import TopicRouter
from anonymizer.pipeline.positions.trip_guard import Positions, TripGuard
from anonymizer.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class TickOutput:
    """What a tick wants published; `PositionFlow.settle` ends it.

    Attributes
    ----------
    messages
        To be published.
    message_of, at_s
        Which message carries each position in hand, and its monotonic arrival time, shape (n,).
    n_direct
        The first so many came in this very tick; the rest had waited for a group.
    receipts
        To be acknowledged once the messages are out.
    """

    messages: list[Outgoing]
    message_of: IntArray
    at_s: FloatArray
    n_direct: int
    receipts: list[int]

    @property
    def n_positions(self) -> int:
        """Positions that are in hand with this output."""
        return len(self.message_of)


class PositionFlow:
    """Decodes, locates, cloaks, verifies and encodes; one call a tick.

    Parameters
    ----------
    settings
        All of them; the flow takes what concerns it.
    network
        With coordinates, and no road in a privacy zone (see `anonymizer.app.zoning`).
    ledger
        Shared with the inbox.
    secret
        Key of the pseudonyms, see `DeviceTable`.
    monotonic
        Seconds by a clock that never goes back, for latencies.
    """

    def __init__(
        self,
        settings: Settings,
        network: RoadNetwork,
        ledger: Ledger,
        *,
        secret: bytes,
        monotonic: Callable[[], float],
    ) -> None:
        self.stats = FlowStats()
        self.ledger = ledger
        self._n_in_hand = 0
        self._presence = settings.presence
        self._interval_s = settings.tick.interval_s
        self._monotonic = monotonic
        self._since = -np.inf
        self.readings = GroupReadings(settings.readings, ttl_s=settings.presence.ttl_s)
        self._decoder = Decoder(
            TopicRouter(settings.inputs),
            settings.limits,
            ledger,
            attribute_of=self.readings.index_of,
        )
        self._trips = TripGuard(settings.trips, ledger)
        self._place = Places(settings, network)
        self._time_step_s = settings.output.time_step_s
        self._accounts = Accounts(ledger)
        self._devices = DeviceTable(secret=secret, max_devices=settings.presence.max_devices)
        self._network = network
        self._n_watched = settings.watch.sample
        self.audit = LightAudit(self._n_watched)
        self.ages = PseudonymAges()
        session = settings.region.mode == "session"
        self.age_limit_s = settings.session.epoch_s if session else settings.pseudonym.rotate_s
        self._operator = cloaking_operator(settings, network)
        self._encoder = ReleaseEncoder(
            network, topic=settings.output.topic, form=settings.output.form
        )

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to go on, for a group, or for the broker."""
        return self._trips.n_held + self._accounts.n_waiting + self._n_in_hand

    @property
    def n_newcomers(self) -> int:
        """Devices on the graph that wait for a group."""
        return self._operator.n_waiting

    @property
    def n_devices(self) -> int:
        """Devices present, on the graph or off it."""
        return len(self._devices)

    @property
    def n_devices_on_graph(self) -> int:
        """Devices that count towards k."""
        return self._operator.density.n_devices

    def devices_at(self) -> Int32Array:
        """Return how many devices count as being at each node, shape (nodes,): for an auditor."""
        return self._operator.density.n_at

    def tick(self, batches: Sequence[Arrivals], receipts: list[int], *, now: float) -> TickOutput:
        """Make the release of one tick.

        Parameters
        ----------
        batches, receipts
            What `Inbox.take` gave.
        now
            Unix seconds that the tick closes at.

        Notes
        -----
        Everything that is not in the output is settled in the ledger when this returns.
        """
        laps = [self._monotonic()]
        decoded = self._decoder.decode(batches)
        laps.append(self._monotonic())
        slot, ts, lat, lon, at_s = self._trips.pass_on(self._believed(decoded, now), now=now)
        node = self._place.find(lat, lon)
        laps.append(self._monotonic())
        told_s = now - self._trips.delay_s
        result = self._operator.tick(slot, ts, node, now=told_s)
        laps.append(self._monotonic())
        messages, message_of_member = self._encoder.encode(
            result.release,
            time=round_time(told_s, self._time_step_s),
            pseudonyms=self._devices.pseudonyms,
            told=self.readings.tell(result.release, now=now),
        )
        carried = self._accounts.book(result, slot, at_s)
        gone = self._trips.gone(result.freed, now=now, present=self._operator.density.is_known)
        self._devices.free(gone)
        self.readings.forget(gone)
        laps.append(self._monotonic())
        self.stats.time(laps)
        self._look_at(result.release)
        self.ages.see(result.release, now=told_s)
        self._since = now
        message_of_slot = np.full(len(self._operator.density.node_of), -1, np.int64)
        message_of_slot[result.release.member] = message_of_member
        self._n_in_hand += len(carried.slot)
        return TickOutput(
            messages,
            message_of_slot[carried.slot],
            carried.at_s,
            carried.n_direct,
            receipts + decoded.receipts,
        )

    def adopt(self, settings: Settings) -> None:
        """Go by other settings, as far as they may change: see `settings.changing`.

        The light audit begins anew where it is to follow others: of pseudonyms that live already
        it then knows less than an adversary does.
        """
        self._presence = settings.presence
        self._decoder.limit(settings.limits)
        self._operator.set_rule(density_rule(settings), k_extra=settings.region.k_extra)
        if settings.watch.sample != self._n_watched:
            self._n_watched = settings.watch.sample
            self.audit = LightAudit(self._n_watched)

    def close(self) -> None:
        """Settle what waits; after the last tick."""
        self._trips.close()
        self._accounts.close()

    def settle(self, output: TickOutput, delivered: Sequence[bool], *, seconds: float) -> None:
        """Account for an output, given which of its messages the broker took.

        Parameters
        ----------
        output
            As `tick` returned it.
        delivered
            For each message whether it is out; empty: none is.
        seconds
            What publishing took.
        """
        out = np.zeros(len(output.messages), bool)
        out[: len(delivered)] = delivered
        carried = out[output.message_of]
        n_published = int(carried.sum())
        self.ledger.settle(Outcome.PUBLISHED, n_published)
        self.ledger.settle(Outcome.SUPPRESSED__UNDELIVERED, output.n_positions - n_published)
        self._n_in_hand -= output.n_positions
        self.stats.n_messages_out += int(out.sum())
        took_s = self._monotonic() - output.at_s
        direct = np.arange(output.n_positions) < output.n_direct
        self.stats.end_to_end_s.observe(took_s[carried & direct])
        self.stats.waited_s.observe(took_s[carried & ~direct])
        if output.messages:
            self.stats.stage_s["publish"].observe(seconds)

    def _look_at(self, release: Release) -> None:
        """Measure what is about to be published."""
        operator = self._operator
        self.stats.measure(release, operator.n_hidden_among(release), self._network)
        self.audit.see(release, operator.place_of, n_nodes=self._network.n_nodes)

    def _believed(self, decoded: Decoded, now: float) -> Positions:
        """Judge the times and give slots; settle what falls out."""
        # Since the tick before, but not the years since a first one or the minutes of a stall.
        since = max(self._since, now - self._interval_s)
        ts = date_the_undated(np.array(decoded.ts, np.float64), since=since, now=now)
        fate = classify_time(
            ts, now, ahead_s=self._presence.max_ahead_s, behind_s=self._presence.max_behind_s
        )
        slot = np.full(len(ts), NO_SLOT, np.int32)
        timely = np.flatnonzero(fate == Outcome.HELD)
        # Only what is believed may take a slot: a refused message must leave no trace.
        slot[timely] = [self._devices.slot(decoded.device[i]) for i in timely.tolist()]
        fate[timely[slot[timely] == NO_SLOT]] = Outcome.SUPPRESSED__OVERLOAD
        self.readings.note(
            np.array(decoded.reading_row, np.int64),
            np.array(decoded.reading_attribute, np.int64),
            np.array(decoded.reading_value, np.float64),
            slot=slot,
            ts=ts,
        )
        kept = _settled(fate, self.ledger)
        lat, lon, at_s = (
            np.array(column, np.float64)[kept]
            for column in (decoded.lat, decoded.lon, decoded.at_s)
        )
        return Positions(slot[kept], ts[kept], lat, lon, at_s)


def _settled(fate: UInt8Array, ledger: Ledger) -> IntArray:
    """Settle what has met its fate; return the indices of the rest."""
    held = fate == Outcome.HELD
    ledger.settle_all(fate[~held])
    return np.flatnonzero(held)
