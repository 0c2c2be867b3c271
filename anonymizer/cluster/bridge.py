"""Bridge: raw positions from MQTT to Kafka, and what the lanes publish from Kafka to MQTT.

It keeps nothing: an MQTT message is acknowledged when Kafka has it, and what is read from Kafka is
committed when MQTT has it. So a bridge may be killed at any moment; what was under way comes once
more. Several bridges share the topics of both sides.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from anonymizer.app.gateway.service import raise_known, stop_at_signal
from anonymizer.app.gateway.starting import Startup
from anonymizer.cluster.bridge_metrics import BridgeCollector, Passed
from anonymizer.cluster.clients import Receiver, Sender
from anonymizer.cluster.kafka import client_options, ensure_topics
from anonymizer.cluster.limits import check_cluster
from anonymizer.cluster.topics import key_of, topics_of
from anonymizer.observe.link_metrics import LinkCollector
from anonymizer.observe.logs import configure_logs
from anonymizer.observe.metrics import new_registry
from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.bridge_queue import BridgeQueue, Load
from anonymizer.pipeline.positions.raw_batches import Raw, decode_out, encode_raw
from anonymizer.pipeline.positions.topics import subscription
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of
from anonymizer.web import create_application
from anonymizer.web.auth import read_token

_PIECE_BYTES = 1 << 19
"""What waits for a source is sent before the tick ends when it has so many bytes."""
_MOST_BYTES = 64 << 20
"""With so many bytes that Kafka does not have yet, nothing more is read from MQTT."""
_MOST_STATEMENTS = 100
"""Messages to a source that Kafka does not have yet, beyond which empty ones are left out."""
_STUCK_S = 10.0
"""Time for which messages may wait for Kafka before the bridge is not ready."""
_PUBLISH_S = 10.0
_RETRY_S = 1.0
"""Time before what the MQTT broker has refused is offered again."""
_GOODBYE_S = 2.0


async def run_bridge(settings: Settings, *, name: str) -> None:
    """Run a bridge until SIGTERM or SIGINT.

    Parameters
    ----------
    settings
        The same for all workers and bridges of a cluster.
    name
        Unique among the bridges, and the same after a restart.

    Raises
    ------
    SettingsError
        If the settings cannot be used, or ask for what there is not in a cluster.
    TransportError
        If Kafka is not there at the start, or refuses what is sent.
    """
    configure_logs(settings.log)
    check_cluster(settings)
    if settings.broker.probe_topic:
        structlog.get_logger().warning("not used in a cluster", key="broker.probe_topic")
    try:
        async with AsyncExitStack() as stack:
            startup = None
            if settings.http.enabled:
                startup = Startup(settings.http)
                startup.doing = "connects to Kafka"
                await stack.enter_async_context(startup.server.serving())
            await asyncio.to_thread(ensure_topics, settings)
            bridge = Bridge(settings, name=name)
            if startup is not None:
                startup.server.show(bridge.application())
                structlog.get_logger().info("listening", url=startup.server.url)
            await bridge.run(stop_at_signal())
    except BaseExceptionGroup as group:
        raise_known(group)
        raise


class Bridge:
    """Both directions, on a connection of their own each. To be made in a running event loop.

    Parameters
    ----------
    settings, name
        See `run_bridge`.
    """

    def __init__(self, settings: Settings, *, name: str) -> None:
        self._settings = settings
        self._name = name
        self._log = structlog.get_logger().bind(bridge=name)
        self._topics = topics_of(settings)
        self._n_sources = settings.cluster.n_sources
        self._queue = BridgeQueue(
            self._n_sources, max_payload_bytes=settings.limits.max_payload_bytes
        )
        self._clock = SteadyClock(
            wall=time.time,
            monotonic=time.monotonic,
            on_jump=lambda jump_s: self._log.warning(
                "the system's clock was put", forward_s=round(jump_s, 3)
            ),
        )
        self._now_s = 0.0
        self.passed = Passed()
        self._unstored = [0] * self._n_sources
        self._since_s: dict[int, float] = {}
        self._stored = asyncio.Event()
        key = secrets.token_bytes(32)
        broker = settings.broker
        self._most_receipts = max(1, broker.receive_maximum // 2)
        group = settings.cluster.prefix
        # It publishes nothing: an answer to that would lie behind the input, and have to be read.
        self._in = MqttLink(
            broker,
            client_id=client_id_of(broker, key=key, role=f"in-{name}"),
            # Shared, so that each message comes to one of the bridges.
            subscriptions=[
                (f"$share/{group}/{subscription(each.topic)}", each.qos) for each in settings.inputs
            ],
            deliver=self._deliver,
            on_state=lambda up, why: self._log.info("mqtt in", connected=up, reason=why),
            close_timeout_s=_GOODBYE_S,
        )
        status_topic = f"{broker.status_topic}/{name}"
        self._out = MqttLink(
            broker.model_copy(update={"session_expiry_s": 0, "status_topic": status_topic}),
            client_id=client_id_of(broker, key=key, role=f"out-{name}"),
            deliver=lambda _: None,
            on_state=lambda up, why: self._log.info("mqtt out", connected=up, reason=why),
            announce=True,
            close_timeout_s=_GOODBYE_S,
        )
        self._sender: Sender | None = None
        self._receiver: Receiver | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Pass messages on until `stop` is set; then what has arrived, within `tick.drain_s`."""
        options = client_options(self._settings)
        self._sender = sender = Sender(options)
        self._receiver = receiver = Receiver(
            options,
            self._topics.out,
            group=f"{self._settings.cluster.prefix}.bridges",
            pass_on=self._publish,
        )
        self._log.info("bridge started", sources=self._n_sources)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._in.run(), name="mqtt in")
                group.create_task(self._out.run(), name="mqtt out")
                ends = [
                    group.create_task(_failing(each.failed), name="kafka")
                    for each in (sender, receiver)
                ]
                ticking = group.create_task(self._state_ticks(), name="ticks")
                await stop.wait()
                ticking.cancel()
                await self._drain(receiver)
                await self._in.close()
                await self._out.close()
                for end in ends:
                    end.cancel()
        finally:
            sender.close()
        self._log.info("bridge stopped")

    async def _drain(self, receiver: Receiver) -> None:
        """Send what has arrived, and say that nothing more will come."""
        drain_s = self._settings.tick.drain_s
        await self._in.stop_receiving()
        for source in range(self._n_sources):
            self._send(source, tick=self._tick(), last=True)
        await receiver.close(within_s=drain_s / 2)
        with suppress(TimeoutError):
            async with asyncio.timeout(drain_s / 2):
                while any(self._unstored):
                    self._stored.clear()
                    await self._stored.wait()

    # MQTT to Kafka.

    def _now(self) -> float:
        """Return unix time, by a clock that never goes back and otherwise follows the wall's."""
        self._now_s = max(self._now_s, self._clock.now() + max(0.0, self._clock.wall_ahead_s()))
        return self._now_s

    def _tick(self) -> int:
        """Return the present tick."""
        return int(self._now() // self._settings.tick.interval_s)

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.passed.n_received += len(deliveries)
        self._queue.put(deliveries, at_s=self._now())
        for source in range(self._n_sources):
            if (
                self._queue.n_bytes[source] >= _PIECE_BYTES
                or self._queue.n_messages[source] * self._n_sources >= self._most_receipts
            ):
                # The present tick is not over: all of the one before has been sent.
                self._send(source, tick=self._tick() - 1)
        self._read_or_wait()

    async def _state_ticks(self) -> None:
        """Send, at the end of every tick, what has arrived, and that the tick is over."""
        interval_s = self._settings.tick.interval_s
        while True:
            present = self._tick()
            for source in range(self._n_sources):
                if self._queue.n_messages[source] or self._unstored[source] < _MOST_STATEMENTS:
                    self._send(source, tick=present - 1)
            await asyncio.sleep(max(0.0, (present + 1) * interval_s - self._now()))

    def _send(self, source: int, *, tick: int, last: bool = False) -> None:
        assert self._sender is not None  # noqa: S101  `run` has made it
        load = self._queue.take(source)
        rest = load._replace(arrivals=[])
        self.passed.n_waiting += load.n_messages
        self.passed.n_bytes += load.n_bytes
        self._unstored[source] += 1
        self._since_s.setdefault(source, time.monotonic())
        self._sender.send(
            self._topics.sources.name,
            key_of("source", source, self._topics.sources.n_partitions),
            encode_raw(Raw(self._name, tick, last, load.arrivals)),
            stored=lambda: self._note_stored(source, rest),
        )

    def _note_stored(self, source: int, load: Load) -> None:
        self._in.acknowledge(load.receipts)
        self.passed.n_stored += load.n_messages
        self.passed.n_waiting -= load.n_messages
        self.passed.n_bytes -= load.n_bytes
        self._unstored[source] -= 1
        del self._since_s[source]
        if self._unstored[source]:
            self._since_s[source] = time.monotonic()
        self._stored.set()
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Stop reading while too much waits for Kafka, or go on when half of it is there."""
        waiting = self.passed.n_bytes + sum(self._queue.n_bytes)
        if waiting >= _MOST_BYTES:
            self.passed.is_paused = True
        elif waiting < _MOST_BYTES // 2:
            self.passed.is_paused = False
        self._in.read(on=not self.passed.is_paused)

    # Kafka to MQTT.

    async def _publish(self, values: Sequence[bytes]) -> None:
        """Publish some values of `out`; return when the broker has all that it takes."""
        pending = []
        for value in values:
            try:
                pending += decode_out(value)
            except ValueError as error:
                self.passed.n_refused["malformed"] += 1
                self._log.error("a message in Kafka cannot be read", problem=str(error))
        while pending:
            await self._out.until_connected()
            results = await self._out.publish(pending, qos=1, timeout_s=_PUBLISH_S)
            self.passed.n_published += sum(result is True for result in results)
            left = [
                each for each, result in zip(pending, results, strict=True) if result is not True
            ]
            pending = [each for each in left if self._out.takes(each)]
            self.passed.n_refused["too_large"] += len(left) - len(pending)
            if pending and self._out.connected:
                await asyncio.sleep(_RETRY_S)

    # What is known about it.

    def application(self) -> FastAPI:
        """Return health and metrics."""
        return create_application(
            self._registry(exact=False),
            exact=self._registry(exact=True),
            token=read_token(self._settings.http),
            alive=list,
            ready=self.why_not_ready,
        )

    def _registry(self, *, exact: bool) -> CollectorRegistry:
        return new_registry(
            BridgeCollector(
                self.passed,
                connected=lambda: self._in.connected and self._out.connected,
                lag=lambda: self._receiver.lag if self._receiver else 0,
                owned=lambda: self._receiver.owned if self._receiver else 0,
                waited_s=self._waited_s,
                exact=exact,
            ),
            LinkCollector({"in": self._in.counts, "out": self._out.counts}),
        )

    def _waited_s(self) -> float:
        """Return for how long Kafka has taken nothing of what waits for it, in seconds."""
        now_s = time.monotonic()
        return now_s - min(self._since_s.values(), default=now_s)

    def why_not_ready(self) -> list[str]:
        """Return why nothing passes, if that is so."""
        waited_s = self._waited_s()
        problems = {
            "broker: not connected for input": not self._in.connected,
            "broker: not connected for output": not self._out.connected,
            f"kafka: has taken nothing for {waited_s:.0f} s": waited_s > _STUCK_S,
            "kafka: too much waits for it": self.passed.is_paused,
        }
        return [problem for problem, there_is in problems.items() if there_is]


async def _failing(failed: asyncio.Future[None]) -> None:
    """Raise what ends a client of Kafka."""
    await failed
