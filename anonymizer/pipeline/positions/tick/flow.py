"""The positions flow: arrivals of one tick in, messages out, every position accounted for.

The work of a tick, `PositionFlow.release`, may run in a thread of its own. All other methods belong
to one thread, the event loop's. They never see the counts of half a tick: `release` counts in a
ledger of its own until `book`, and readers get a view made between two ticks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from anonymizer.algorithms.positions.cloaks.beats import longest_beat_s
from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.fixes import Places
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.contributors import counter_of
from anonymizer.pipeline.positions.counts.public_ledger import PublicLedger
from anonymizer.pipeline.positions.decode.decoded import DecodedTick
from anonymizer.pipeline.positions.decode.decoded import joined as joined_decoded
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.out.public_devices import PublicDevices
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.engine import TickRelease
from anonymizer.pipeline.positions.tick.factory import density_rule, fixed_fleet, mobile_fleet
from anonymizer.pipeline.positions.tick.fleet import Fleet, secret_of_fixed
from anonymizer.pipeline.positions.tick.flow_stats import (
    GROUP,
    TICK,
    DensityWatch,
    FlowStats,
    InformationAges,
    LightAudit,
    PseudonymAges,
)
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.positions.tick.intake import LocatedPositions
from anonymizer.pipeline.positions.tick.silence import Reason, Silence
from anonymizer.pipeline.positions.tick.tick_accounts import TickPart, joined
from anonymizer.pipeline.positions.tick.trip_guard import Positions

if TYPE_CHECKING:
    from anonymizer.pipeline.positions.tick.traffic_sample import TrafficSample
    from anonymizer.settings import Settings

_FOLLOWED = 32
"""Devices whose pseudonyms the light audit follows."""


@dataclass(frozen=True, slots=True, eq=False)
class TickOutput:
    """The messages of a tick; `PositionFlow.settle` accounts for them.

    `message_of`, `at_s`: message that contains each position, and its monotonic arrival time, shape
    (n,). The first `n_direct` arrived in this tick; the others had waited for a group. `n_told`:
    devices of which each message tells. `receipts`: to be acknowledged once the messages are
    published.
    """

    messages: list[Outgoing]
    message_of: IntArray
    at_s: FloatArray
    n_direct: int
    n_told: IntArray
    receipts: list[int]

    @property
    def n_positions(self) -> int:
        """Positions in these messages."""
        return len(self.message_of)


@dataclass(frozen=True, slots=True, eq=False)
class FlowView:
    """State of a flow between two ticks, for metrics and the live map.

    `n_newcomers`: those of `n_devices_on_graph`, which count towards k, that wait for a group.
    `n_shut_out`: see `Fleet.n_shut_out`. `hidden_to_k`: see `LightAudit.hidden_to_k`. `oldest_s`:
    age of the oldest pseudonym in the last release. `n_unusable`, `n_clamped`, `n_left_out`:
    readings that were no numbers, readings outside their range, and groups without a published
    reading, by attribute. `silent`: why nothing is published although positions arrive.
    """

    n_devices: int
    n_devices_on_graph: int
    n_newcomers: int
    n_fixed_devices: int
    n_shut_out: int
    hidden_to_k: FloatArray
    oldest_s: float
    attributes: Sequence[str]
    n_unusable: IntArray
    n_clamped: IntArray
    n_left_out: IntArray
    silent: Reason | None


class SeesTicks(Protocol):
    """What is published besides groups and fixed devices; see `anonymizer.outputs`."""

    def begin(self, *, keys: Keys, kept_s: float) -> None:
        """Begin, given the keys of devices, and for how long a silent one is present at most."""

    def tick(
        self,
        located: LocatedPositions,
        freed: Int32Array,
        *,
        zones: DeviceZones | None,
        ahead_s: float,
    ) -> list[Outgoing]:
        """Take in a tick, and the slots that it frees; return messages."""

    def copies(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return what is made of messages about groups and fixed devices alone."""

    def adopt(self, settings: "Settings") -> None:
        """Apply other settings."""

    def close(self) -> None:
        """End, after the last tick."""


class PositionFlow:
    """The live positions flow: decodes, cloaks, verifies and encodes, once per tick.

    Parameters
    ----------
    zoned
        A network with coordinates, and its privacy zones.
    ledger
        Shared with the inbox. Only the event loop's thread uses it.
    registries
        The places that each registry of the inputs lists, by its path.
    payload_secrets
        The secrets of encrypted payloads, by the key file of the inputs.
    outputs
        What else is published of mobile devices.
    """

    def __init__(
        self,
        settings: "Settings",
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        secret: bytes,
        monotonic: Callable[[], float],
        registries: Mapping[Path, Places] = MappingProxyType({}),
        payload_secrets: Mapping[Path, Sequence[bytes]] = MappingProxyType({}),
        outputs: SeesTicks | None = None,
    ) -> None:
        self.stats = FlowStats()
        self.ledger = ledger
        self._tally = Ledger()
        self._n_in_tick = self._n_in_fleets = self._n_in_hand = 0
        self._ticking = self._view_is_old = False
        self._prepared: list[DecodedTick] = []
        """Parts of the next tick."""
        self._adopted: Settings | None = None
        self._interval_s, self._ttl_s = settings.tick.interval_s, settings.presence.ttl_s
        self._monotonic = monotonic
        self._last_tick_s = -np.inf
        self._decoder = Decoder(
            TopicRouter(settings.inputs, registries, payload_secrets),
            settings.limits,
            self._tally,
            attribute_of={each.name: i for i, each in enumerate(settings.readings)},
            ids_kept_s=settings.presence.ttl_s,
        )
        self.inputs = self._decoder.inputs
        self.silence = Silence(settings, self.inputs, ledger)
        treatments = {Treatment.of(each) for each in settings.inputs}
        network = zoned.network
        self.mobile = Fleet(
            mobile_fleet(settings, network),
            zoned,
            self._tally,
            secret=secret,
            inputs=self.inputs,
            has_public_figures=True,
        )
        self._fixed = None  # its engine would cost memory
        if Treatment.CLOAKED in treatments:
            self._fixed = Fleet(
                fixed_fleet(settings, network),
                zoned,
                self._tally,
                secret=secret_of_fixed(secret),
                inputs=self.inputs,
                has_public_figures=True,
            )
        self._public = None
        if Treatment.PUBLIC in treatments:
            self._public = PublicDevices(settings, zoned, self._tally, inputs=self.inputs)
        fleets = {Treatment.MOBILE: self.mobile, Treatment.CLOAKED: self._fixed}
        self._fleets = {each: fleet for each, fleet in fleets.items() if fleet is not None}
        self.public_figures = PublicLedger(
            settings,
            [each.contributors for each in self._fleets.values() if each.contributors],
            secret=secret,
        )
        is_mobile = Treatment.MOBILE in treatments
        self._main = self.mobile if is_mobile else self._fixed or self.mobile
        self.audit = LightAudit(np.arange(_FOLLOWED))
        self.sample = self._traffic_sample(settings) if settings.watch.evidence_s else None
        """The newest traffic, for attacks on it; None: none is kept."""
        self.ages = PseudonymAges()
        self.density_watch = DensityWatch(network)
        self._density_rule = density_rule(settings)
        session = settings.region.mode == "session"
        self._information = InformationAges(groups_last=session and settings.session.beat_s > 0)
        self.information_limit_s = _information_limit_s(settings) + self.mobile.intake.delay_s
        epoch_s = self.mobile.engine.operator.pace.longest_epoch_s
        self.age_limit_s = epoch_s if session else settings.session.rotate_s
        self._outputs = outputs
        if outputs is not None:
            kept_s = self.mobile.engine.operator.pace.longest_ttl_s
            outputs.begin(keys=self.mobile.devices.keys, kept_s=kept_s)
        self._view = self._look()

    def _traffic_sample(self, settings: "Settings") -> "TrafficSample":
        from anonymizer.pipeline.positions.tick.traffic_sample import (  # noqa: PLC0415  few keep one
            TrafficSample,
        )

        pace = self.mobile.engine.operator.pace
        return TrafficSample(
            keep_s=settings.watch.evidence_s,
            before_s=pace.longest_ttl_s + pace.longest_epoch_s,
            keys=self.mobile.devices.keys,
        )

    @property
    def n_held(self) -> int:
        """Positions that are in a tick, or wait for their trip to go on, a group or the broker."""
        return self._n_in_tick + self._n_in_fleets + self._n_in_hand

    @property
    def view(self) -> FlowView:
        """The state between two ticks: now, or if a tick is in progress, at the last look.

        That look is renewed when the tick ends.
        """
        if self._ticking:
            self._view_is_old = True
        else:
            self._view = self._look()
        return self._view

    def _look(self) -> FlowView:
        mobile, fixed, public = self.mobile, self._fixed, self._public
        readings = [each.engine.readings for each in self._fleets.values()]
        clamped = [each.n_clamped for each in readings] + ([public.n_clamped] if public else [])
        return FlowView(
            n_devices=len(mobile.devices),
            n_devices_on_graph=mobile.engine.operator.density.n_devices,
            n_newcomers=mobile.engine.operator.n_waiting,
            hidden_to_k=self.audit.hidden_to_k(),
            oldest_s=self.ages.oldest_s,
            attributes=mobile.engine.readings.names,
            n_fixed_devices=0 if fixed is None else len(fixed.devices),
            n_unusable=self._decoder.n_unusable.copy(),
            n_shut_out=mobile.n_shut_out,
            n_clamped=np.sum(clamped, axis=0),
            n_left_out=np.sum([each.n_left_out for each in readings], axis=0),
            silent=self.silence.why(self._main.engine.operator, self._monotonic),
        )

    @property
    def device_zones(self) -> DeviceZones | None:
        """The zones that mobile devices have stated; None: they state none."""
        return self.mobile.device_zones

    def devices_at(self) -> Int32Array:
        """Return the number of devices counted at each node, shape (nodes,): for the auditor."""
        return self.mobile.engine.operator.density.n_at

    def density_at(self) -> Int32Array:
        """Return the density at each junction, shape (nodes,): for the auditor."""
        return self.mobile.engine.operator.density.n_near

    def tick(
        self, batches: Sequence[Arrivals], *, now: float, wall_ahead_s: float = 0.0
    ) -> TickOutput:
        """Make the release of one tick: `begin`, `release` and `book` in one call."""
        self.begin(batches)
        return self.book(self.release(batches, now=now, wall_ahead_s=wall_ahead_s))

    def begin(self, batches: Sequence[Arrivals]) -> None:
        """Begin a tick: `take`, and show the state before it until `book`."""
        self.take(batches)
        self._ticking = True

    def take(self, batches: Sequence[Arrivals]) -> None:
        """Count these messages as held until `book`."""
        self._n_in_tick += sum(len(batch.deliveries) for batch in batches)
        if batches:
            self.silence.arrived(batches[-1].at_s)

    def prepare(self, batches: Sequence[Arrivals]) -> None:
        """Decode and locate what `take` has got for the next tick, in any thread.

        What is released does not depend on it: only less is left to do when the tick ends.
        """
        self._prepared.append(self._located_early(self._decoder.decode(batches)))

    def _decoded(self, batches: Sequence[Arrivals]) -> DecodedTick:
        """Return all positions of the tick: what is prepared, and what these batches hold."""
        last = self._decoder.decode(batches)
        if not self._prepared:
            return last
        parts, self._prepared = [*self._prepared, self._located_early(last)], []
        return joined_decoded(parts)

    def _located_early(self, decoded: DecodedTick) -> DecodedTick:
        mobile = decoded.of[Treatment.MOBILE]
        slot = np.zeros(len(mobile.ts), np.int32)  # which nobody asks for
        mobile.node = self.mobile.intake.nodes_early(
            Positions(slot, mobile.ts, mobile.lat, mobile.lon, mobile.at_s, mobile.heading)
        )
        return decoded

    def book(self, output: TickOutput) -> TickOutput:
        """Take over the counts of the tick that has ended; return its output.

        Positions that are not in the output are settled or held when this returns.
        """
        self._n_in_tick = 0
        self._n_in_hand += output.n_positions
        self._book_fleets()
        self._ticking = False
        if self._view_is_old:
            self._view, self._view_is_old = self._look(), False
        return output

    def _book_fleets(self) -> None:
        self.ledger.absorb(self._tally)
        self._n_in_fleets = sum(each.n_held for each in self._fleets.values())

    def release(
        self, batches: Sequence[Arrivals], *, now: float, wall_ahead_s: float = 0.0
    ) -> TickOutput:
        """Make the release of one tick, between `begin` and `book`, in any thread.

        `now`: unix seconds at which the tick closes, by a clock that never goes back;
        `wall_ahead_s`: by how much the clock is ahead of it by which devices date their positions.
        """
        self._adopt_now()
        times = [self._monotonic()]
        decoded = self._decoded(batches)
        for part in decoded.of:
            self._decoder.date(part, now=now, wall_ahead_s=wall_ahead_s)
        times.append(self._monotonic())
        # Since the previous tick, but not since the years before the first one, nor for the
        # minutes of a stall.
        since = max(self._last_tick_s, now - self._interval_s)
        fleets = self._fleets.items()
        located = {
            each: fleet.locate(decoded.of[each], since=since, now=now) for each, fleet in fleets
        }
        times.append(self._monotonic())
        ticks = {each: fleet.engine.tick(located[each]) for each, fleet in fleets}
        times.append(self._monotonic())
        ahead_s = wall_ahead_s
        mobile, *fixed = [
            fleet.publish(ticks[each], wall_ahead_s=ahead_s) for each, fleet in fleets
        ]
        self._contribute(located, ticks)
        freed, *_ = [fleet.forget(ticks[each], now=now) for each, fleet in fleets]
        tick = ticks[Treatment.MOBILE]
        public = []
        if self._public is not None:
            window = {"since": since, "now": now, "wall_ahead_s": ahead_s}
            public.append(self._public.tick(decoded.of[Treatment.PUBLIC], **window))
        parts = [mobile, *public, *fixed]
        besides = self._besides(located[Treatment.MOBILE], freed, parts, ahead_s=ahead_s)
        times.append(self._monotonic())
        self.stats.time(times)
        n_unverified = self._tally.n(Outcome.SUPPRESSED__UNVERIFIED)
        self.public_figures.tick(list(ticks.values()), n_unverified=n_unverified, now=now)
        self._measure(tick, now=now)
        if self.sample is not None:
            density = self.mobile.engine.operator.density
            if len(located[Treatment.MOBILE].withdrawn_key):
                self.sample.clear()
            self.sample.see(located[Treatment.MOBILE], tick, n_devices=density.n_devices)
        self._last_tick_s = now
        self._decoder.forget(at_s=self._monotonic(), kept_s=self._ttl_s)
        return TickOutput(*joined([*parts, *besides]), decoded.receipts)

    def _contribute(
        self,
        located: Mapping[Treatment, LocatedPositions],
        ticks: Mapping[Treatment, TickRelease],
    ) -> None:
        """Let the devices of a tick contribute to public counters."""
        refused = self._decoder.take_refused()
        for each, fleet in self._fleets.items():
            if fleet.contributors is not None and each in refused:
                sender, input_, outcome, names = refused[each]
                counter = counter_of(np.array(outcome, np.uint8), np.array(input_, np.int32))
                fleet.contributors.note_senders(
                    self._decoder.senders, np.array(sender), counter, names
                )
            fleet.contribute(located[each], ticks[each])

    def _besides(
        self,
        located: LocatedPositions,
        freed: Int32Array,
        parts: Sequence[TickPart],
        *,
        ahead_s: float,
    ) -> list[TickPart]:
        """Return what the other outputs publish, and the copies of these parts."""
        if self._outputs is None:
            return []
        messages = self._outputs.tick(located, freed, zones=self.device_zones, ahead_s=ahead_s)
        copies = self._outputs.copies([each for part in parts for each in part.messages])
        return _of_nobody([*messages, *copies])

    def adopt(self, settings: "Settings") -> None:
        """Apply other settings at the next tick, as far as `settings.reload` lets them change."""
        self._adopted = settings

    def _adopt_now(self) -> None:
        settings, self._adopted = self._adopted, None
        if settings is None:
            return
        self.silence.adopt(settings)
        self.public_figures.adopt(settings)
        self._decoder.limit(settings.limits)
        self._density_rule = density_rule(settings)
        for fleet in self._fleets.values():
            fleet.adopt(settings.presence, self._density_rule, k_extra=settings.region.k_extra)
        if self._public is not None:
            self._public.presence = settings.presence
        if self._outputs is not None:
            self._outputs.adopt(settings)

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        for fleet in self._fleets.values():
            fleet.close()
        if self._outputs is not None:
            self._outputs.close()
        self._book_fleets()

    def settle(self, output: TickOutput, delivered: Sequence[bool], *, seconds: float) -> None:
        """Account for an output, given which of its messages were published.

        `delivered`: for each message whether it was published; empty: none was. `seconds`: duration
        of publishing.
        """
        out = np.zeros(len(output.messages), bool)
        out[: len(delivered)] = delivered
        published = out[output.message_of]
        n_published = int(published.sum())
        self.ledger.settle(Outcome.PUBLISHED, n_published)
        if n_published:
            self.silence.published()
        self.ledger.settle(Outcome.SUPPRESSED__UNDELIVERED, output.n_positions - n_published)
        self._n_in_hand -= output.n_positions
        self.stats.n_messages_out += int(out.sum())
        self.public_figures.n_told += int(output.n_told[out].sum())
        latency_s = self._monotonic() - output.at_s
        direct = np.arange(output.n_positions) < output.n_direct
        self.stats.latency_s[TICK].observe(latency_s[published & direct])
        self.stats.latency_s[GROUP].observe(latency_s[published & ~direct])
        if output.messages:
            self.stats.stage_s["publish"].observe(seconds)

    def _measure(self, tick: TickRelease, *, now: float) -> None:
        """Measure a release before it is published."""
        engine, release, event_s = self.mobile.engine, tick.release, tick.event_s
        operator, network = engine.operator, engine.network
        self.stats.age_s.observe(self._information.until(now))
        self._information.see(release, tick.until_s, event_s=event_s, now=now)
        self.density_watch.look(operator.density, self._density_rule, now=now)
        self.stats.measure(release, operator.n_hidden_among(release), network)
        self.audit.see(release, operator.place_of, n_nodes=network.n_nodes)
        self.ages.see(release, now=event_s)


def _of_nobody(messages: list[Outgoing]) -> list[TickPart]:
    """Return messages that publish no position."""
    none = np.zeros(0, np.int64)
    n_told = np.zeros(len(messages), np.int64)
    return [TickPart(messages, none, np.zeros(0), 0, n_told)] if messages else []


def _information_limit_s(settings: "Settings") -> float:
    """Return the age of information that no published group is to exceed, without delays."""
    session = settings.session
    if settings.region.mode != "session" or not session.beat_s:
        return settings.presence.ttl_s
    # A group divides its life into equal parts, so one of one part publishes once an epoch.
    return max(longest_beat_s(session.beat_s), session.epoch_s)
