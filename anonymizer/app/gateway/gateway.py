"""Gateway: raw data from MQTT in, anonymous data to MQTT out, monitored over HTTP."""

import asyncio
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

import structlog

from anonymizer.app.gateway.analyst_topics import CurrentTopic, NetworkTopics
from anonymizer.app.gateway.input_watch import InputArrivals, InputWatch
from anonymizer.app.gateway.own_metrics import OwnMetrics
from anonymizer.app.gateway.own_reports import OwnReports
from anonymizer.app.gateway.position_stages import PositionStages
from anonymizer.app.gateway.preflight import read_registries, read_secrets
from anonymizer.app.gateway.readiness import Readiness
from anonymizer.app.gateway.refused_outputs import RefusedOutputs
from anonymizer.app.gateway.sides import LOOK_S, GatewaySide, Service, Sides
from anonymizer.app.gateway.unsent import Unsent
from anonymizer.app.gateway.wrong_clock import AheadOfClock, budget_of
from anonymizer.app.gateway.zones_link import ZonesLink
from anonymizer.app.live_map.frames import Viewer
from anonymizer.app.live_map.screen import AnalystView
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.domain.outcomes import Outcome
from anonymizer.kernel_cache import current_background
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.observe.logs import log_quarantined
from anonymizer.outputs.current.current_groups import CurrentGroups
from anonymizer.outputs.one_process import Outputs
from anonymizer.outputs.output_metrics import OutputCollector
from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.topics import shared_topics, subscription
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.pipeline.positions.tick.stages import QUEUED_TICKS, Ticks
from anonymizer.settings import Settings, zones_of
from anonymizer.transport import MqttLink
from anonymizer.transport.backlog import Backlog
from anonymizer.transport.broker_drops import BrokerDrops
from anonymizer.transport.connecting import client_id_of
from anonymizer.transport.other_gateways import OtherGateways

if TYPE_CHECKING:
    from fastapi import FastAPI

    from anonymizer.app.gateway.own_evidence import OwnEvidence
    from anonymizer.app.gateway.recorder import Recorder
    from anonymizer.pipeline.records.declaration import Stream
    from anonymizer.transport.kafka import KafkaLink
    from anonymizer.web import HttpServer

_SWITCH_S = 0.0005
"""For how long a tick may compute while the event loop waits to receive, a tenth of Python's
default. With too little CPU these waits, not the work, decide how much is received."""
_SLOW_S = 1.0
"""Between two looks whether a slow output has something to publish."""
_GOODBYE_S = 2.0
"""Deadline of a clean disconnection."""


class _Phase(Enum):
    """Phase of a gateway; it determines how a lost connection is reported."""

    SERVING = auto()
    DRAINING = auto()
    LEAVING = auto()


class Gateway:
    """The positions flow and the streams of records, connected to the broker and to HTTP.

    Parameters
    ----------
    demo
        Whether the devices are simulated: then their true positions may be shown to anybody.
    http
        A server that serves already and is to answer for this gateway. None: it starts its own, if
        the settings have one.

    Raises
    ------
    SettingsError
        If a file named in the settings cannot be used, or the HTTP address is in use.
    """

    def __init__(
        self,
        settings: Settings,
        network: RoadNetwork,
        streams: "Sequence[Stream]" = (),
        *,
        demo: bool = False,
        http: "HttpServer | None" = None,
    ) -> None:
        self._settings = settings
        self._log = structlog.get_logger()
        self.ledger = Ledger()
        self.inbox = Inbox(
            settings.presence.queue_limit,
            self.ledger,
            is_shared=shared_topics(settings.inputs),
            is_awaited=settings.in_kafka,
        )
        self._secret = secrets.token_bytes(32)
        budget = budget_of(settings)
        self._outputs = Outputs(settings, network, secret=self._secret, budget=budget)
        self.flow = PositionFlow(
            settings,
            with_zones(network, zones_of(settings.zones)),
            self.ledger,
            secret=self._secret,
            monotonic=time.monotonic,
            registries=read_registries(settings),
            payload_secrets=read_secrets(settings),
            outputs=self._outputs,
        )
        is_for_auditors = demo or settings.http.raw_view
        self.screen = AnalystView(
            settings.region.mode,
            network.node_id,
            self.flow,
            monotonic=time.monotonic,
            silent=None if is_for_auditors else lambda: self._watch.silent,
        )
        self._viewer = Viewer(
            [self.screen],
            devices_at=self.flow.devices_at if is_for_auditors else None,
            density_at=self.flow.density_at if is_for_auditors else None,
        )
        self._clock = SteadyClock(
            wall=time.time,
            monotonic=time.monotonic,
            on_jump=lambda jump_s: self._log.warning(
                "the system's clock has jumped", forward_s=round(jump_s, 3)
            ),
        )
        self._ticks: Ticks = asyncio.Queue(QUEUED_TICKS)
        self._phase = _Phase.SERVING
        self.records = self._recorder(streams) if streams else None
        self._watch = InputWatch(
            settings,
            self.flow,
            connections=self._connections,
            of_records=lambda: self.records.ledgers if self.records else [],
        )
        # Without a store nothing outlives this process, and neither does the session.
        key = self.records.store.secret if self.records else secrets.token_bytes(32)
        self._others = self._other_gateways(key=key)
        self._backlog = _backlog(settings, self._others)
        self._link = self._kafka_link() if settings.in_kafka else self._mqtt_link(key=key)
        counts_drops = settings.broker.drops_topic and not settings.in_kafka
        self._drops = BrokerDrops(settings.broker, key=key) if counts_drops else None
        self._evidence = self._own_evidence()
        self._ahead = AheadOfClock(
            time.time,
            steady=self._clock.now,
            budget=budget,
            streams=lambda now: self.records.held_back(now) if self.records else [],
            outputs=self._outputs.held_until,
        )
        self._refused = self._refused_outputs(key=key)
        self._sides = Sides(list(self._all_sides(network, key=key)))
        self._metrics = OwnMetrics(
            self.flow,
            self.inbox,
            n_queued_ticks=self._ticks.qsize,
            connected=lambda: self._link.connected,
            n_dropped=lambda: self._drops.n if self._drops else None,
            sides=self._sides,
        )
        self.registry = self._metrics.exact
        self._readiness = Readiness(
            settings.tick,
            self.flow,
            self._sides,
            stopping=lambda: self._phase is not _Phase.SERVING,
        )
        self._own_http = http is None
        self._application = self._http_application(network, streams, demo=demo)
        self.http = http or self._http_server()

    # What only some gateways need is imported where it is made: records and HTTP take longer to
    # load than all the rest.

    def _recorder(self, streams: "Sequence[Stream]") -> "Recorder":
        from anonymizer.app.gateway.recorder import Recorder  # noqa: PLC0415  see above

        return Recorder(self._settings, streams, on_state=self._on_records_state)

    def _own_evidence(self) -> "OwnEvidence | None":
        if self.flow.sample is None:
            return None
        from anonymizer.app.gateway.own_evidence import OwnEvidence  # noqa: PLC0415  see above

        return OwnEvidence(self._settings, self.flow.mobile.engine.network, self.flow.sample)

    def _kafka_link(self) -> "KafkaLink":
        from anonymizer.transport.kafka import KafkaLink  # noqa: PLC0415  it needs an extra

        settings = self._settings
        return KafkaLink(
            settings.kafka,
            inputs=settings.inputs,
            outputs=settings.kafka_outputs,
            deliver=self._deliver,
            on_state=self._on_state,
            timeout_s=settings.tick.drain_s,
            most_waiting=settings.presence.queue_limit,
            max_payload_bytes=settings.limits.max_payload_bytes,
            has_room=lambda: self.inbox.has_room,
        )

    def _mqtt_link(self, *, key: bytes) -> MqttLink:
        settings = self._settings
        subscriptions = [(subscription(i.topic), i.qos) for i in settings.inputs]
        if self._backlog:
            subscriptions.append((settings.topics.probe, max(self._backlog.qos)))
        return MqttLink(
            settings.broker,
            client_id=client_id_of(settings.broker, key=key),
            subscriptions=subscriptions,
            deliver=self._deliver,
            on_state=self._on_state,
            announce=True,
            needs_qos_1=settings.output.form == "device" or any(i.echo for i in settings.inputs),
            close_timeout_s=_GOODBYE_S,
            max_payload_bytes=settings.limits.max_payload_bytes,
            on_quarantined=partial(log_quarantined, "positions"),
            rest_s=settings.tick.rest_s,
        )

    def _all_sides(self, network: RoadNetwork, *, key: bytes) -> Iterator[GatewaySide]:
        """Yield all that is beside the flow, in the order in which it ends."""
        settings, link, unsent = self._settings, self._link, Unsent(self._publishing)
        yield self._watch.side()
        yield GatewaySide(services=[Service("viewer", self._viewer.run)], sees=[self.screen.see])
        if settings.inputs and isinstance(link, MqttLink):
            yield NetworkTopics(settings, network, link, unsent).side()
            if settings.current.every_s:
                groups = CurrentGroups(
                    topic=settings.topics.current,
                    network=network_version(network),
                    grace_s=2 * settings.tick.interval_s,
                )
                now = self._published_now
                yield CurrentTopic(settings.current, groups, link, unsent, now=now).side()
        yield self._own_reports()
        if others := self._others:
            yield _gauge("others", others, notes=lambda: others.notes)
        zones = self._zones_link(key=key)
        yield self._of_positions(zones)
        if zones:
            yield zones.side()
        if self._evidence:
            yield self._evidence.side()
        yield self._of_outputs()
        if self._drops:
            yield _gauge("drops", self._drops)
        if self._backlog:
            yield GatewaySide(services=[Service("probes", self._backlog.run)])
        if self.records:
            yield self.records.side()
        yield unsent.side()
        if self._refused:
            yield self._refused.side()
        yield self._ahead.side()

    def _own_reports(self) -> GatewaySide:
        """Return the last that is said before the connections are closed."""
        reports = OwnReports(
            self._settings,
            self.flow.public_figures,
            self._link,
            watch=self._watch,
            refused=lambda: self._refused.silent if self._refused else "",
            ready=lambda: not self._readiness.why_not_ready(),
        )

        async def close() -> None:
            await reports.close()
            self._phase = _Phase.LEAVING

        return GatewaySide(services=[Service("own reports", reports.run, last=close)])

    def _refused_outputs(self, *, key: bytes) -> RefusedOutputs | None:
        settings = self._settings
        if settings.in_kafka:
            return None
        return RefusedOutputs(
            settings,
            client_id=f"{client_id_of(settings.broker, key=key)}-ask",
            connected=lambda: self._link.connected,
            n_undelivered=lambda: self.ledger.n(Outcome.SUPPRESSED__UNDELIVERED),
        )

    def _other_gateways(self, *, key: bytes) -> OtherGateways | None:
        if self._settings.in_kafka:  # where they share a group
            return None
        return OtherGateways(
            self._settings.broker,
            topic=self._settings.topics.probe,
            key=key,
            started_ns=time.time_ns(),
            found=lambda: self._log.warning("another gateway began, and is to end: this one stays"),
        )

    def _zones_link(self, *, key: bytes) -> ZonesLink | None:
        if self.flow.device_zones is None:
            return None
        withdraw = self.records.withdraw if self.records else None
        return ZonesLink(self._settings, self.flow.device_zones, key=key, withdraw=withdraw)

    def _of_positions(self, zones: ZonesLink | None) -> GatewaySide:
        """Return the connection of positions; statements of zones can arrive before these."""
        link, backlog = self._link, self._backlog

        async def receive() -> None:
            await self._until_alone()
            if zones:
                await zones.until_connected()
            await link.run()

        def problems() -> list[str]:
            is_too_old = backlog is not None and link.connected and backlog.is_too_old
            return _of_broker(link) + ([backlog.problem] if backlog and is_too_old else [])

        return GatewaySide(
            services=[Service("link", receive, close=link.close)],
            links={"positions": link.counts},
            problems=problems,
            notes=lambda: link.lacks if isinstance(link, MqttLink) else (),
        )

    def _of_outputs(self) -> GatewaySide:
        slow = Service("slow outputs", partial(_publish_slow, self._outputs))
        figures = [OutputCollector(self._outputs.figures)]
        return GatewaySide(
            services=[slow] if self._outputs.are_slow else [], exact=figures, public=figures
        )

    def _publishing(self) -> dict[str, MqttLink]:
        """Return the connections to a broker that publish, by what they publish."""
        links = {"positions": self._link, "classes": self.records and self.records.output}
        return {what: link for what, link in links.items() if isinstance(link, MqttLink)}

    def _http_server(self) -> "HttpServer | None":
        if self._application is None:
            return None
        from anonymizer.web import HttpServer  # noqa: PLC0415  see above

        return HttpServer(self._application, self._settings.http)

    def _http_application(
        self, network: RoadNetwork, streams: "Sequence[Stream]", *, demo: bool
    ) -> "FastAPI | None":
        if not self._settings.http.enabled:
            return None
        from anonymizer.app.gateway.http_side import application  # noqa: PLC0415  see above

        return application(
            self._settings,
            network,
            streams,
            viewer=self._viewer,
            demo=demo,
            current=lambda: self._settings,
            metrics=self._metrics,
            readiness=self._readiness,
            evidence=self._evidence,
            outputs=self._outputs,
            acknowledge=self.records.session.acknowledge if self.records else None,
        )

    def warm_up(self) -> None:
        """Compile the kernels before the first message, on an empty tick."""
        self.flow.settle(self.flow.tick([], now=self._clock.now()), [], seconds=0.0)
        if self.records:
            self.records.warm_up()

    def show_beside(self, other: "Gateway") -> None:
        """Let the map show what another gateway makes of the same traffic."""
        other.screen.node_id = self.screen.node_id  # that of the drawn network, which has them all
        self._viewer.add(other.screen)

    def adopt(self, settings: Settings) -> None:
        """Apply other settings, as far as they may change: see `settings.reload`."""
        self._settings = settings
        self.flow.adopt(settings)

    async def until_connected(self) -> None:
        """Wait until the broker is connected."""
        await self._link.until_connected()
        if self.records:
            await self.records.until_connected()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then drain within the deadline and disconnect.

        Whatever the broker does, this returns at most a few seconds after `tick.drain_s`.
        """
        sys.setswitchinterval(_SWITCH_S)
        for problem in self._ahead.problems:
            self._log.error("the clock", problem=problem)
        async with AsyncExitStack() as stack:
            if self.http and self._application:
                if self._own_http:
                    await stack.enter_async_context(self.http.serving())
                self.http.show(self._application)
                self._log.info("listening", url=self.http.url)
            async with asyncio.TaskGroup() as group:
                if self.records:  # they end by themselves, in their own time
                    group.create_task(self._record(self.records, stop), name="records")
                stages = self._stages()
                self._sides.start(group)
                stages.start(group)
                await stop.wait()
                self._phase = _Phase.DRAINING
                await stages.drain()
                await self._sides.stop()
        self._log.info("stopped", received=self.ledger.n_received, **self._counts())

    async def _record(self, records: "Recorder", stop: asyncio.Event) -> None:
        """Take in records, unless an older gateway does, whose session this one would take over."""
        await self._until_alone()
        await records.run(stop)

    async def _until_alone(self) -> None:
        if self._others:
            await self._others.until_alone()

    def _published_now(self) -> float:
        """Return the time of a message that would be published now."""
        return self._clock.now() + self._clock.wall_ahead_s() - self.flow.mobile.intake.delay_s

    def _stages(self) -> PositionStages:
        return PositionStages(
            self._settings,
            self.flow,
            self.inbox,
            self._ticks,
            self._link,
            sees=self._sides.sees,
            clock=self._clock,
            on_late=self._on_late,
        )

    def _connections(self) -> list[InputArrivals]:
        """Return the state of each input of positions, and of the connection of records."""
        found, link = [], self._link
        answers = link.answers if isinstance(link, MqttLink) else {}
        topics = [subscription(each.topic) for each in self._settings.inputs]
        if len(topics) > 1 and time.monotonic() - self.flow.stats.last_tick_s > LOOK_S:
            topics = []  # what has arrived is counted by input only when a tick has decoded it
        for i, topic in enumerate(topics):
            one, counts = len(topics) == 1, self.flow.inputs
            n = counts.n_usable(i) + sum(counts.refused(i).values())
            found.append(
                InputArrivals(
                    "positions" if one else f"positions (input no. {i + 1})",
                    link.connected,
                    self.ledger.n_received if one else n,
                    [topic],
                    answers.get(topic, ""),
                )
            )
        if self.records:
            n, topics = self.records.n_received, self.records.topics
            found.append(InputArrivals("records", self.records.connected, n, topics))
        return found

    def _counts(self) -> dict[str, int]:
        """Return the number of positions by `outcome/reason`, without zeros."""
        counts = self.ledger.counts().items()
        return {"/".join(filter(None, outcome.label)): n for outcome, n in counts if n}

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        if self._backlog:
            is_too_old = self._backlog.is_too_old
            deliveries, receipts = self._backlog.without_probes(deliveries)
            self._link.acknowledge(receipts)
            if is_too_old:
                self._link.acknowledge(self.inbox.refuse(deliveries))
                return
        self._link.acknowledge(self.inbox.put(deliveries, at_s=time.monotonic()))

    def _on_late(self, late: bool) -> None:  # noqa: FBT001  the stage's callback
        if late:
            kept = "of several positions of a device the newest is kept"
            background = current_background()
            compiles = background is not None and background.n_kernels_waiting
            (self._log.info if compiles else self._log.warning)(
                "ticks are late: " + ("the rest waits in Kafka" if self.inbox.is_awaited else kept),
                interval_s=self._settings.tick.interval_s,
            )
        else:
            self._log.info("ticks are on time again", late=self.flow.stats.n_late_ticks)

    def _on_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        if self._backlog:
            self._backlog.note_state(connected=connected)
        if connected:
            self._log.info("broker connected")
            for each in self._link.refused:
                self._log.warning("the broker refuses a subscription", filter=each)
            if isinstance(self._link, MqttLink):
                for each in filter(None, [*self._link.lacks, self._link.blocked]):
                    self._log.warning("the broker cannot do everything", lacks=each)
            self._sides.connected()
        elif self._phase is not _Phase.LEAVING:
            self._log.warning("no broker", reason=reason)

    def _on_records_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  likewise
        if connected:
            self._log.info("broker connected for records")
        elif self._phase is _Phase.SERVING:
            self._log.warning("no broker for records", reason=reason)


def _backlog(settings: Settings, others: OtherGateways | None) -> Backlog | None:
    if not settings.broker.max_backlog_s or others is None or not settings.inputs:
        return None
    return Backlog(
        settings.broker,
        topic=settings.topics.probe,
        link=others.link,
        qos=[i.qos for i in settings.inputs],
        monotonic=time.monotonic,
    )


def _of_broker(link: "MqttLink | KafkaLink") -> list[str]:
    """Return what is wrong with the broker, as it or the system says."""
    problems = [f"broker: subscription refused: {each}" for each in link.refused]
    if not link.connected:
        said = link.problem if isinstance(link, MqttLink) else ""
        refused = said.startswith("subscription refused")  # of all filters
        why = said if refused else ": ".join(filter(None, ["not connected", said]))
        problems.append(f"broker: {why}")
    if isinstance(link, MqttLink) and link.blocked:
        problems.append(f"broker: {link.blocked}")
    return problems


def _gauge(
    name: str,
    gauge: BrokerDrops | OtherGateways,
    notes: Callable[[], Sequence[str]] = tuple,
) -> GatewaySide:
    services = [Service(name, gauge.run, close=gauge.close)]
    return GatewaySide(services=services, links={name: gauge.counts}, notes=notes)


async def _publish_slow(outputs: Outputs) -> None:
    """Publish what slow outputs make, one window after the other, in a thread."""
    while True:
        while await asyncio.to_thread(outputs.publish_slow):
            pass
        await asyncio.sleep(_SLOW_S)
