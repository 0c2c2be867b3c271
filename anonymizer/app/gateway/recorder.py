"""Recorder: the records side of a gateway, with its own connections, store and three stages."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import structlog

from anonymizer.app.gateway.daemon_thread import in_daemon_thread
from anonymizer.app.gateway.kept_session import KeptSession
from anonymizer.app.gateway.refused_parts import RefusedParts
from anonymizer.app.gateway.sides import GatewaySide
from anonymizer.errors import SettingsError, StoreError
from anonymizer.observe.logs import log_quarantined
from anonymizer.observe.public_record_metrics import PublicRecordCollector
from anonymizer.observe.record_metrics import RecordCollector
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.records.anonymize_window import Closing, warm_up
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.flow import UNMATCHED, Due, RecordFlow
from anonymizer.pipeline.records.inbox import RecordInbox
from anonymizer.pipeline.records.stages import (
    StageContext,
    StageSignals,
    close_stage,
    intake_stage,
    publish_stage,
)
from anonymizer.pipeline.records.stream_state import ahead_until
from anonymizer.pipeline.records.topics import subscriptions
from anonymizer.settings import Settings
from anonymizer.store import RecordStore
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of

if TYPE_CHECKING:
    from anonymizer.transport.kafka import KafkaLink

P = ParamSpec("P")
T = TypeVar("T")
_SESSION_S = 7 * 86_400
"""Default time for which the broker keeps messages while no gateway is connected."""
_GOODBYE_S = 2.0
_RETRY_S = 2.0
"""Pause before the store is opened again."""


def open_flow(
    settings: Settings, streams: Sequence[Stream], *, min_free_bytes: int = 0
) -> tuple[RecordStore, RecordFlow, int]:
    """Open the store; return it, the flow on it, and how many parts no stream is declared for.

    Raises `SettingsError` or `StoreError` if the store cannot be used.
    """
    store = RecordStore(
        settings.store.path,
        keep_published_s=settings.store.keep_published_s,
        min_free_bytes=min_free_bytes,
    )
    try:
        n_retired = store.retire([UNMATCHED, *(stream.settings.name for stream in streams)])
        flow = RecordFlow(streams, store, settings.limits, at_s=time.monotonic())
    except BaseException:  # also if interrupted: the lock must be released
        store.close()
        raise
    return store, flow, n_retired


class OneThread:
    """A thread that runs one function at a time."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        """Run a function in the thread; return its result."""
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._pool, partial(function, *args, **kwargs))

    def close(self) -> None:
        """Wait for the current function; discard the queued ones."""
        self._pool.shutdown(cancel_futures=True)


def _abandoned_at_the_end(
    function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> Awaitable[T]:
    """Run a function in a thread for which nobody waits when the drain's deadline has passed.

    A window may take minutes, and nothing of it is stored then: it is closed at the next start.
    """
    return in_daemon_thread(partial(function, *args, **kwargs), name="anonymize")


class Recorder:
    """All streams of a gateway, between the broker and the store.

    If the store cannot be used any more, for example because the disk is full, everything is made
    again from the store as after a crash, as soon as it can be used. Until then records wait at the
    broker.

    Parameters
    ----------
    settings
        Settings with at least one stream.
    on_state
        Called with whether the broker is connected, and the reason, whenever that changes.
    min_free_bytes
        While less is free on the disk of the store, records wait at the broker.

    Raises
    ------
    SettingsError, StoreError
        If the store cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        streams: Sequence[Stream],
        *,
        on_state: Callable[[bool, str], None] = lambda *_: None,
        min_free_bytes: int = 100_000_000,
    ) -> None:
        self._settings = settings
        self._min_free_bytes = min_free_bytes
        self._streams = streams
        self._on_state = on_state
        self._n_sessions_lost = 0
        self._withdrawn: set[str] = set()
        self._log = structlog.get_logger()
        self._refused = RefusedParts(time.monotonic)
        self.usable = True
        """Whether the store can be used. If not, records wait, and the flow is out of date."""
        self._begin(*self._open())
        client_id = client_id_of(settings.broker, key=self.store.secret, role="records")
        self.session = KeptSession(
            self.store.session, name=f"{client_id} {settings.broker.url}", wall=time.time
        )
        """What the MQTT broker keeps for records."""
        self._kafka = self._kafka_link() if settings.streams[0].kafka else None
        self._link: MqttLink | KafkaLink
        self.output: MqttLink | KafkaLink
        if self._kafka:
            self._link = self.output = self._kafka
        else:
            self._link, self.output = self._mqtt_links(client_id)

    def _mqtt_links(self, client_id: str) -> tuple[MqttLink, MqttLink]:
        """Return the connections for records and for classes."""
        settings, broker = self._settings, self._settings.broker
        # Records that arrive while no gateway is connected must be kept, unlike live positions.
        lasting = {"session_expiry_s": broker.session_expiry_s or _SESSION_S}
        link = MqttLink(
            broker.model_copy(update=lasting),
            client_id=client_id,
            has_session=self.session.exists,
            subscriptions=subscriptions(settings.streams),
            deliver=self._deliver,
            on_state=self._note_state,
            close_timeout_s=_GOODBYE_S,
            max_payload_bytes=settings.limits.max_payload_bytes,
            on_quarantined=partial(log_quarantined, "records"),
        )
        # The broker acknowledges classes on the connection on which it has them. Behind a backlog
        # of records, which is read no faster than it is stored, that would be too late.
        output = MqttLink(
            broker,
            client_id=client_id_of(broker, key=self.store.secret, role="classes"),
            deliver=lambda _: None,
            on_state=self._note_output,
            close_timeout_s=_GOODBYE_S,
        )
        return link, output

    def _kafka_link(self) -> "KafkaLink":
        """Return the one connection for records and classes."""
        from anonymizer.transport.kafka import KafkaLink  # noqa: PLC0415  it needs an extra

        settings, streams = self._settings, self._settings.streams
        return KafkaLink(
            settings.kafka.model_copy(update={"group": f"{settings.kafka.group}.records"}),
            inputs=[source for stream in streams for source in stream.sources],
            outputs={stream.output_topic: stream.kafka or "" for stream in streams},
            deliver=self._deliver,
            on_state=self._on_state,
            timeout_s=settings.tick.drain_s,
            most_waiting=settings.presence.queue_limit,
            max_payload_bytes=settings.limits.max_payload_bytes,
            kept_places=lambda: self.store.kept_places(),  # noqa: PLW0108  another one after a failure
        )

    async def withdraw(self, said: Mapping[str, bool]) -> None:
        """Take in which vehicles take no part (true) and which do again, see `RecordFlow`.

        If the store cannot be used now, it is done when it can be used again. The names of those
        who take no part are kept: no more of them than the broker keeps statements.
        """
        for vehicle, takes_no_part in said.items():
            (self._withdrawn.add if takes_no_part else self._withdrawn.discard)(vehicle)
        if self.usable:
            with contextlib.suppress(StoreError):  # the stages find out by themselves
                await self._context.in_store(self.flow.withdraw, said)

    @property
    def connected(self) -> bool:
        """Whether the broker is connected, for records and for classes."""
        return self._link.connected and self.output.connected

    @cached_property
    def topics(self) -> list[str]:
        """The topics and filters that it subscribes to."""
        if self._kafka:
            read = [source.kafka for each in self._settings.streams for source in each.sources]
            return sorted({topic for topic in read if topic is not None})
        return [topic for topic, _ in subscriptions(self._settings.streams)]

    def side(self) -> GatewaySide:
        """Return what it is to a gateway; it ends by itself, in its own time."""
        classes = {} if self._kafka else {"classes": self.output.counts}
        return GatewaySide(
            links={"records": self._link.counts, **classes},
            problems=self._problems,
            exact=[RecordCollector(self)],
            public=[PublicRecordCollector(self)],
        )

    @property
    def store_bytes(self) -> int:
        """Size of the store, in bytes."""
        return self.store.size_bytes

    @property
    def free_bytes(self) -> int:
        """Free space on the disk of the store, in bytes; 0 if that is not known."""
        try:
            return self.store.free_bytes
        except StoreError:
            return 0

    @property
    def ledgers(self) -> list[tuple[str, Ledger, int]]:
        """Name, ledger and held parts of each stream, and of what belongs to none."""
        of_streams = [
            (f"stream {state.stream.settings.name}", state.accounts, state.n_held)
            for state in self.flow.states
        ]
        return [*of_streams, ("records", self.flow.unmatched, 0)]

    @property
    def n_received(self) -> int:
        """Number of parts that have arrived, of all streams and of none."""
        of_streams = sum(state.accounts.n_received for state in self.flow.states)
        return of_streams + self.flow.unmatched.n_received

    def held_back(self, now: float) -> list[tuple[str, float]]:
        """Return the streams that a clock that was ahead holds back, and until when."""
        until_of = {
            f"stream {state.stream.settings.name}": ahead_until(state.windows, now=now)
            for state in self.flow.states
        }
        return [(name, until) for name, until in until_of.items() if until is not None]

    def _problems(self) -> list[str]:
        problems = [f"broker: subscription refused: {each}" for each in self._link.refused]
        if not self.connected:
            problems.append("broker: not connected for records")
        if not self.usable:
            problems.append("store: cannot be used, so records wait at the broker")
        if self.session.problem:
            problems.append(self.session.problem)
        return problems + self._refused.problems(self.ledgers)

    def warm_up(self) -> None:
        """Compile the kernels before the first window, on an empty one."""
        for state in self.flow.states:
            some = dict.fromkeys(state.stream.open_columns, "0123456789")
            warm_up(*state.in_window(some))

    async def until_connected(self) -> None:
        """Wait until the broker is connected."""
        await self._link.until_connected()
        await self.output.until_connected()

    async def run(self, stop: asyncio.Event) -> None:
        """Receive, anonymize and publish until `stop`, then drain within `tick.drain_s`.

        Unpublished classes and open windows stay in the store, and what it has not stored stays at
        the broker.
        """
        while (failure := await self._serve(stop)) is not None:
            self.usable = False
            self._log.error("records wait", problem=str(failure))
            if stop.is_set() or not await self._reopen(stop):
                return
            self.usable = True
            self._log.info("records go on")
        for state in self.flow.states:
            self._log.info("stream stopped", stream=state.stream.settings.name, held=state.n_held)

    async def _reopen(self, stop: asyncio.Event) -> bool:
        """Open the store as soon as it can be used; return False if `stop` is set before."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await stop.wait()
                    return False
            try:
                store, flow = await asyncio.to_thread(self._open)
            except (SettingsError, StoreError):
                continue
            try:
                await asyncio.to_thread(store.check_space)
            except StoreError:
                store.close()
            else:
                flow.withdraw(dict.fromkeys(self._withdrawn, True))
                self._begin(store, flow)
                return True

    async def _serve(self, stop: asyncio.Event) -> StoreError | None:
        """Serve until `stop` and drain, or return the failure of the store."""
        try:
            await self._run_stages(stop)
        except BaseExceptionGroup as group:
            failures, others = group.split(StoreError)
            if failures is None or others is not None:
                raise
            return _first(failures)
        finally:
            await asyncio.to_thread(self._close)
        return None

    def _takes(self, message: Outgoing) -> bool:
        fits = self.output.takes(message)
        self.output.counts.n_too_large += not fits
        return fits

    async def _run_stages(self, stop: asyncio.Event) -> None:
        signals, drain_s = StageSignals(), self._settings.tick.drain_s
        async with asyncio.TaskGroup() as group:
            links = [
                group.create_task(link.run(), name=f"{name} link")
                for link, name in {self.output: "classes", self._link: "records"}.items()
            ]
            intake, closing, publishing = stages = [
                group.create_task(stage, name=name)
                for name, stage in (
                    ("intake", intake_stage(self._context, self.inbox, self._link, signals)),
                    (
                        "close windows",
                        close_stage(self._context, signals, on_closed=self._log_window),
                    ),
                    (
                        "publish classes",
                        publish_stage(self._context, self.output, signals, takes=self._takes),
                    ),
                )
            ]
            keeping = group.create_task(self._keep_session(), name="keep session")
            await stop.wait()
            try:
                async with asyncio.timeout(drain_s):
                    await self._link.stop_receiving()
                    self.inbox.close()
                    signals.drain.set()
                    signals.over.set()
                    await asyncio.wait([intake, closing])
                    signals.last.set()
                    signals.closed.set()
                    await asyncio.wait([publishing])
            except TimeoutError:
                for stage in stages:
                    stage.cancel()
                await asyncio.wait(stages)
                self._log.warning("drain deadline passed", flow="records")
            await self._link.close()
            await self.output.close()
            await asyncio.wait(links)
            keeping.cancel()

    async def _keep_session(self) -> None:
        """Store what is known of the session whenever it changes."""
        while True:
            await self.session.changed.wait()
            self.session.changed.clear()
            await self._context.in_store(self.store.keep_session, self.session.stored)

    def _open(self) -> tuple[RecordStore, RecordFlow]:
        store, flow, n_retired = open_flow(
            self._settings, self._streams, min_free_bytes=self._min_free_bytes
        )
        if n_retired:
            self._log.warning("parts of undeclared streams suppressed", parts=n_retired)
        if not store.folds_ids:
            self._log.warning(
                "one vehicle may count twice: AB-1 and ab1 are two in this store",
                why="an earlier version made the store",
                to_change="state another store.path: streams begin anew",
            )
        return store, flow

    def _begin(self, store: RecordStore, flow: RecordFlow) -> None:
        self.store, self.flow = store, flow
        self.inbox = RecordInbox(self._settings.presence.queue_limit, streams_of=flow.streams_of)
        self._in_store = OneThread("store")
        self._context = StageContext(
            flow=flow,
            in_store=self._in_store,
            in_worker=_abandoned_at_the_end,
            wall=time.time,
            clock=time.monotonic,
            places_of=lambda receipts: self._kafka.places_of(receipts) if self._kafka else {},
        )

    def _close(self) -> None:
        self._in_store.close()
        self.store.close()

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.inbox.put(deliveries)

    def _note_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        if connected:
            n_lost = self._link.counts.n_sessions_lost
            lost = n_lost > self._n_sessions_lost
            self.inbox.reconnected(resumed=not lost)
            if self._link.counts.n_connections == 1:  # of later ones the counter is enough
                self.session.connected(lost=lost)
            self._n_sessions_lost = n_lost
        else:
            self.inbox.set_aside()
        self._on_state(connected, reason)

    def _note_output(self, connected: bool, reason: str) -> None:  # noqa: FBT001  likewise
        # A broker that is away is reported by the connection for records.
        if not connected and self._link.connected:
            self._on_state(False, f"for classes: {reason}")

    def _log_window(self, due: Due, closing: Closing) -> None:
        """Log the counts of a closed window; no value and no vehicle."""
        state = self.flow.states[due.stream]
        start, end = state.stream.rule.span(due.window)
        say = self._log.error if closing.n_unverified else self._log.info
        say(
            "window closed",
            stream=state.stream.settings.name,
            start=start,
            end=end,
            refused_classes=closing.n_unverified,
            **{name: round(value, 4) for name, value in closing.summary.items()},
        )
        if closing.silent:
            sources = state.stream.settings.sources
            self._log.warning(
                "silent sources: their attributes were withheld",
                stream=state.stream.settings.name,
                start=start,
                sources=[sources[s].name for s in closing.silent],
            )


def _first(group: BaseExceptionGroup[StoreError]) -> StoreError:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
