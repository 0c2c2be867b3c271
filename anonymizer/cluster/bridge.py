"""Bridge: raw positions and records from MQTT to Kafka, and what is published from Kafka to MQTT.

It keeps nothing: an MQTT message is acknowledged when Kafka has it, and what is read from Kafka is
committed when MQTT has it. So a bridge may be killed at any moment; what was under way comes once
more. For the same reason one that loses Kafka for good is replaced by a new one in its process.
Several bridges share the topics of both sides.
"""

import asyncio
import gc
import secrets
import time
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from anonymizer.app.gateway.api import api_routes
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.refused_outputs import RefusedOutputs
from anonymizer.app.gateway.service import raise_known, stop_at_signal
from anonymizer.app.gateway.starting import Startup
from anonymizer.cluster.bridge_metrics import PUBLIC_OF_BRIDGES, BridgeCollector, Passed
from anonymizer.cluster.clients import Receiver, Sender
from anonymizer.cluster.held_files import HeldFiles
from anonymizer.cluster.inflow import Inflow, RisingTime
from anonymizer.cluster.kafka import check_options, ensure_topics
from anonymizer.cluster.limits import check_cluster, reads_mqtt
from anonymizer.cluster.outflow import Outflow
from anonymizer.cluster.patience import Patience
from anonymizer.cluster.positions.bridge_queue import BridgeQueue
from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.cluster.positions.raw_batches import RAW, STATEMENTS
from anonymizer.cluster.records.stream_routing import StreamRouting
from anonymizer.cluster.release_keeper import ReleaseKeeper
from anonymizer.cluster.topic_reader import TopicReader
from anonymizer.cluster.topics import Kind, topics_of
from anonymizer.crashes import CRASHES
from anonymizer.errors import SettingsError
from anonymizer.observe.link_metrics import LinkCollector
from anonymizer.observe.logs import configure_logs, log_quarantined
from anonymizer.observe.metrics import PublicCollector, new_registry, public_registry
from anonymizer.outputs.file_routes import file_routes
from anonymizer.pipeline.positions.decode.topics import subscription
from anonymizer.pipeline.positions.tick.device_zones import ZONES_BYTES
from anonymizer.pipeline.records.topics import subscriptions
from anonymizer.settings import Settings
from anonymizer.store import ReleaseFile
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of
from anonymizer.transport.kafka_clients import client_options
from anonymizer.transport.kafka_problems import KafkaLostError
from anonymizer.web import create_application
from anonymizer.web.token import read_token

_MOST_BYTES = 64 << 20
"""With so many bytes that Kafka does not have yet, nothing more is read from MQTT."""
_STUCK_S = 10.0
"""Time for which messages may wait for Kafka before the bridge is not ready."""
_GOODBYE_S = 2.0
_STATEMENTS = {"zones", "absent"}
"""Connections on which devices state their zones, and that they take no part."""


async def run_bridge(settings: Settings, *, name: str) -> None:
    """Run a bridge until SIGTERM or SIGINT.

    `name` is unique among the bridges, and the same after a restart. SettingsError if the settings
    cannot be used, ask for what there is not in a cluster, or for no bridge.
    """
    configure_logs(settings.log)
    if settings.streams or "path" in settings.store.model_fields_set:
        CRASHES.remember(Path(f"{settings.store.path}.{name}"))
    check_cluster(settings)
    if not reads_mqtt(settings):
        raise SettingsError(
            "inputs, streams: all are in Kafka, which workers read: there is nothing for a bridge"
        )
    check_options(settings)
    if settings.broker.max_backlog_s:
        structlog.get_logger().warning("not used in a cluster", key="broker.max_backlog_s")
    try:
        async with AsyncExitStack() as stack:
            startup = None
            if settings.http.enabled:
                startup = Startup(settings.http)
                await stack.enter_async_context(startup.server.serving())
                structlog.get_logger().info("listening", url=startup.server.url)
            stop, patience = stop_at_signal(), Patience()
            lost = "it has not answered yet"
            while not stop.is_set():
                async with AsyncExitStack() as attempt:
                    bridge = Bridge(settings, name=name)
                    bridge.note_lost(lost)
                    if startup is not None:
                        startup.server.show(bridge.application(attempt))
                    # What is loaded by now is no garbage: a quarter of its time went into it.
                    gc.collect()
                    gc.freeze()
                    lost = await _run_until_lost(bridge, settings, stop)
                    if not stop.is_set():
                        bridge.note_lost(lost)
                        await _first_of(stop.wait(), asyncio.sleep(patience.next_s()))
    except BaseExceptionGroup as group:
        raise_known(group)
        raise


async def _run_until_lost(bridge: "Bridge", settings: Settings, stop: asyncio.Event) -> str:
    """Run a bridge until `stop` is set or Kafka is lost for it; return why that is."""
    try:
        try:
            await asyncio.to_thread(ensure_topics, settings)
            await bridge.run(stop)
        except BaseExceptionGroup as group:
            raise_known(group)
            raise
    except KafkaLostError as error:
        structlog.get_logger().warning("waits for Kafka", reason=str(error))
        return str(error)
    return ""


async def _first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait for one of several, and cancel the others."""
    tasks = [asyncio.create_task(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


class Bridge:
    """Both directions, on a connection of their own each. To be made in a running event loop.

    `settings`, `name`: see `run_bridge`.
    """

    def __init__(self, settings: Settings, *, name: str) -> None:
        self._settings = settings
        self._name = name
        self._log = structlog.get_logger().bind(bridge=name)
        self._topics = topics_of(settings)
        self._now = RisingTime(
            lambda jump_s: self._log.warning(
                "the system's clock was set to another time", forward_s=round(jump_s, 3)
            )
        ).now
        self.passed = Passed()
        self._stored = asyncio.Event()
        self._key = secrets.token_bytes(32)
        limits = settings.limits
        self._routing = StreamRouting(settings.streams)
        self._devices = DeviceRouting(settings.inputs)
        self._inflows: dict[str, Inflow] = {}
        self._links: dict[str, MqttLink] = {}
        """The connection of each inflow."""
        inputs = [each for each in settings.inputs if each.kafka is None]
        streams = [each for each in settings.streams if each.kafka is None]
        zones = settings.device_zones
        if zones.enabled and any(each.kind == "mobile" for each in inputs):
            queue = BridgeQueue(
                settings.cluster.n_parts,
                max_payload_bytes=ZONES_BYTES,
                parts_of=self._devices.of_statements(zones.filter_topic).parts_of,
            )
            # Before the positions: a tick is stated after the zones that hold from it on.
            self._pass_on(
                "zones", "source", queue, [(subscription(zones.filter_topic), 1)], of=STATEMENTS
            )
        if zones.enabled and streams:  # a vehicle may be in each stream
            queue = BridgeQueue(
                self._routing.n_stages, max_payload_bytes=ZONES_BYTES, parts_of=None
            )
            self._pass_on(
                "absent", "stream", queue, [(subscription(zones.filter_topic), 1)], of=STATEMENTS
            )
        if inputs:
            queue = BridgeQueue(
                settings.cluster.n_parts,
                max_payload_bytes=limits.max_payload_bytes,
                parts_of=self._devices.parts_of,
            )
            filters = [(subscription(each.topic), each.qos) for each in inputs]
            self._pass_on("in", "source", queue, filters)
        if streams:
            queue = BridgeQueue(
                self._routing.n_stages,
                max_payload_bytes=limits.max_payload_bytes,
                parts_of=self._routing.parts_of,
            )
            self._pass_on("records", "stream", queue, subscriptions(streams))
        broker = settings.broker
        status_topic = f"{broker.status_topic}/{name}"
        self._out = MqttLink(
            broker.model_copy(update={"session_expiry_s": 0, "status_topic": status_topic}),
            client_id=client_id_of(broker, key=self._key, role=f"out-{name}"),
            deliver=lambda _: None,
            on_state=self._note_out,
            announce=True,
            close_timeout_s=_GOODBYE_S,
        )
        self._refused = RefusedOutputs(
            settings,
            client_id=client_id_of(broker, key=self._key, role=f"ask-{name}"),
            connected=lambda: self._out.connected,
            n_undelivered=lambda: self.passed.n_refused["not_taken"],
            unused=[settings.topics.rejected],
        )
        self._outflow = Outflow(settings, self._out, self.passed)
        self._receiver: Receiver | None = None
        self._keeper: ReleaseKeeper | None = None
        self._lost, self._lost_at = "", 0.0

    def _note_out(self, up: bool, why: str) -> None:  # noqa: FBT001  the link's callback
        self._log.info("mqtt out", connected=up, reason=why)
        self._refused.renew()

    def note_lost(self, why: str) -> None:
        """Say from now on that Kafka is lost, and why; empty: it is not."""
        self._lost, self._lost_at = why, time.monotonic()

    def _pass_on(
        self,
        role: str,
        kind: Kind,
        queue: BridgeQueue,
        filters: Sequence[tuple[str, int]],
        *,
        of: bytes = RAW,
    ) -> None:
        """Pass on what comes by a connection, for which `role` stands, to the stages of a kind."""
        broker = self._settings.broker
        if of == RAW:
            # Shared, so that each message comes to one of the bridges.
            shared = f"$share/{self._settings.kafka.group}"
            filters = [(f"{shared}/{topic}", qos) for topic, qos in filters]
        else:
            # Who shares a subscription gets nothing that is retained.
            broker = broker.model_copy(update={"session_expiry_s": 0})

        inflow = self._inflows[role] = Inflow(
            bridge=self._name,
            kind=kind,
            topic=self._topics.sources if kind == "source" else self._topics.parts,
            queue=queue,
            acknowledge=partial(self._acknowledge, role),
            most_receipts=broker.receive_maximum // 2,
            now=self._now,
            interval_s=self._settings.tick.interval_s,
            passed=self.passed,
            changed=self._note_change,
            of=of,
        )
        # It publishes nothing: an answer to that would lie behind the input, and have to be read.
        self._links[role] = MqttLink(
            broker,
            client_id=client_id_of(broker, key=self._key, role=f"{role}-{self._name}"),
            subscriptions=filters,
            deliver=inflow.deliver,
            on_state=lambda up, why: self._log.info(f"mqtt {role}", connected=up, reason=why),
            close_timeout_s=_GOODBYE_S,
            max_payload_bytes=max(self._settings.limits.max_payload_bytes, ZONES_BYTES),
            on_quarantined=partial(log_quarantined, role),
            rest_s=self._settings.tick.rest_s,
        )

    def _acknowledge(self, role: str, receipts: Iterable[int]) -> None:
        self._links[role].acknowledge(receipts)

    async def run(self, stop: asyncio.Event) -> None:
        """Pass messages on until `stop` is set; then what has arrived, within `tick.drain_s`."""
        self.note_lost("")
        options = client_options(self._settings.kafka)
        sender = Sender(options)
        self._receiver = receiver = Receiver(
            options,
            self._topics.out,
            group=f"{self._settings.kafka.group}.bridges",
            pass_on=self._outflow.publish,
        )
        for inflow in self._inflows.values():
            inflow.sender = sender
        self._log.info("bridge started", takes=list(self._inflows))
        try:
            async with asyncio.TaskGroup() as group:
                heard = group.create_task(self._until_zones_are_heard(), name="zones")
                for name, link in self._links.items():
                    after = None if name in _STATEMENTS else heard
                    group.create_task(_run(link, after), name=f"mqtt {name}")
                group.create_task(self._out.run(), name="mqtt out")
                ends = [
                    group.create_task(_failing(each.failed), name="kafka")
                    for each in (sender, receiver)
                ]
                endless = [heard]
                endless.append(group.create_task(self._refused.run(), name="refused outputs"))
                endless.append(group.create_task(self._state_ticks(), name="ticks"))
                await stop.wait()
                for task in endless:
                    task.cancel()
                await self._drain(receiver)
                for link in self._links.values():
                    await link.close()
                await self._out.close()
                for end in ends:
                    end.cancel()
        finally:
            sender.close()
        self._log.info("bridge stopped")

    async def _until_zones_are_heard(self) -> None:
        """Wait until statements can arrive, if there are any, before positions and records do."""
        for role in _STATEMENTS & self._links.keys():
            await self._links[role].until_connected()

    async def _drain(self, receiver: Receiver) -> None:
        """Send what has arrived, and say that nothing more will come."""
        drain_s = self._settings.tick.drain_s
        for name, inflow in self._inflows.items():
            await self._links[name].stop_receiving()
            inflow.state_last()
        await receiver.close(within_s=drain_s / 2)
        with suppress(TimeoutError):
            async with asyncio.timeout(drain_s / 2):
                while any(inflow.n_unstored for inflow in self._inflows.values()):
                    self._stored.clear()
                    await self._stored.wait()

    # MQTT to Kafka.

    async def _state_ticks(self) -> None:
        """Send, at the end of every tick, what has arrived, and that the tick is over."""
        interval_s = self._settings.tick.interval_s
        while True:
            now_s = self._now()
            for role, inflow in self._inflows.items():
                await self._links[role].collect()
                inflow.state_tick()
            self._routing.forget(at_s=time.monotonic())
            self._devices.forget(at_s=time.monotonic())
            await asyncio.sleep(max(0.0, (now_s // interval_s + 1) * interval_s - self._now()))

    def _note_change(self) -> None:
        """Stop reading while too much waits for Kafka, or go on when half of it is there."""
        self._stored.set()
        inflows = self._inflows.values()
        waiting = self.passed.n_bytes + sum(inflow.n_waiting_bytes for inflow in inflows)
        if waiting >= _MOST_BYTES:
            self.passed.is_paused = True
        elif waiting < _MOST_BYTES // 2:
            self.passed.is_paused = False
        for link in self._links.values():
            link.read(on=not self.passed.is_paused)

    # What is known about it.

    def application(self, stack: AsyncExitStack) -> FastAPI:
        """Return health and metrics, and queries on what is published, which is kept.

        What has to be closed at the end is pushed onto `stack`.

        SettingsError or StoreError if the streams or the file of the releases cannot be used.
        """
        settings, token = self._settings, read_token(self._settings.http)

        def note_malformed() -> None:
            self.passed.n_refused["malformed"] += 1

        held = HeldFiles(note_malformed)
        if routes := file_routes(settings, held.newest, token=token):
            reader = TopicReader(client_options(settings.kafka), self._topics.files, held.keep)
            stack.push_async_callback(asyncio.to_thread, reader.close)
        if settings.streams:
            store = settings.store
            file = ReleaseFile(store.path, keep_published_s=store.keep_published_s)
            self._keeper = ReleaseKeeper(
                client_options(settings.kafka),
                self._topics.releases,
                file,
                malformed=note_malformed,
            )
            stack.push_async_callback(asyncio.to_thread, self._keeper.close)
            routes.append(api_routes(settings, declared_streams(settings)))
        return create_application(
            self.registry(exact=False),
            exact=self.registry(exact=True),
            token=token,
            alive=list,
            ready=self.why_not_ready,
            more=routes,
        )

    def registry(self, *, exact: bool) -> CollectorRegistry:
        """Return the metrics: all, or those that anybody may read."""
        own = BridgeCollector(
            self.passed,
            connected=lambda: self._out.connected and all(self._is_connected()),
            lag=lambda: self._receiver.lag if self._receiver else 0,
            owned=lambda: self._receiver.owned if self._receiver else 0,
            releases_lag=lambda: self._keeper.lag if self._keeper else 0,
            waited_s=self._waited_s,
        )
        links = LinkCollector(
            {name: link.counts for name, link in self._links.items()} | {"out": self._out.counts}
        )
        if exact:
            return new_registry(own, links)
        return public_registry(PublicCollector(own, PUBLIC_OF_BRIDGES), links)

    def _is_connected(self) -> list[bool]:
        return [link.connected for link in self._links.values()]

    def _waited_s(self) -> float:
        """Return for how many seconds Kafka has taken none of the waiting messages."""
        now_s = time.monotonic()
        since = [inflow.waits_since_s for inflow in self._inflows.values()]
        since += [self._lost_at if self._lost else None]
        return now_s - min((each for each in since if each is not None), default=now_s)

    def why_not_ready(self) -> list[str]:
        """Return why messages are not passed on; empty if they are."""
        waited_s = self._waited_s()
        problems = {
            "broker: not connected for input": not all(self._is_connected()),
            "broker: not connected for output": not self._out.connected,
            f"waits for Kafka: {self._lost}": bool(self._lost),
            f"kafka: has taken nothing for {waited_s:.0f} s": waited_s > _STUCK_S,
            "kafka: too much waits for it": self.passed.is_paused,
            self._outflow.problem: bool(self._outflow.problem),
        }
        found = [problem for problem, there_is in problems.items() if there_is]
        return found + self._refused.problems


async def _run(link: MqttLink, after: asyncio.Task[None] | None) -> None:
    """Keep a connection until it is closed; with `after`, when that has ended."""
    if after is not None:
        await after
    await link.run()


async def _failing(failed: asyncio.Future[None]) -> None:
    """Raise what ends a client of Kafka."""
    await failed
