"""Recorder: the records side of a gateway, with its own connection, store and three stages."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

import structlog

from anonymizer.algorithms.records.attributes import Branch
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.hierarchies import read_hierarchies, read_hierarchy
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.anonymize_window import Closing, warm_up
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.pipeline.records.flow import UNMATCHED, Due, RecordFlow
from anonymizer.pipeline.records.inbox import RecordInbox
from anonymizer.pipeline.records.stages import (
    StageContext,
    StageSignals,
    close_stage,
    intake_stage,
    publish_stage,
)
from anonymizer.pipeline.records.topics import topic_filter
from anonymizer.settings import AttributeSettings, Settings, StreamSettings
from anonymizer.store import RecordStore
from anonymizer.transport import MqttLink

P = ParamSpec("P")
T = TypeVar("T")
_SESSION_S = 7 * 86_400
"""Default time for which the broker keeps messages while no gateway is connected."""
_GOODBYE_S = 2.0


def declared_streams(settings: Settings) -> list[Stream]:
    """Return the declared streams of the settings, with their hierarchies.

    Raises
    ------
    SettingsError
        If a hierarchy cannot be read, or a stream cannot be declared.
    """
    return [declare(stream, branches=_branches(stream)) for stream in settings.streams]


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


class Recorder:
    """All streams of a gateway, between the broker and the store.

    Parameters
    ----------
    settings
        Settings with at least one stream.
    streams
        The declared streams of these settings.
    on_state
        Called with whether the broker is connected, and the reason, whenever that changes.

    Raises
    ------
    SettingsError
        If the store cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        streams: Sequence[Stream],
        *,
        on_state: Callable[[bool, str], None] = lambda *_: None,
    ) -> None:
        self._settings = settings
        self._log = structlog.get_logger()
        keep_s = settings.store.keep_published_s
        self.store = RecordStore(settings.store.path, keep_published_s=keep_s)
        n_retired = self.store.retire([UNMATCHED, *(stream.settings.name for stream in streams)])
        self.flow = RecordFlow(
            streams,
            self.store,
            settings.limits,
            max_unpublished=settings.store.max_unpublished,
            at_s=time.monotonic(),
        )
        if n_retired:
            self._log.warning("parts of undeclared streams suppressed", parts=n_retired)
        self.inbox = RecordInbox(settings.tick.queue_limit, stream_of=self.flow.stream_of)
        self._threads = OneThread("store"), OneThread("anonymize")
        self._context = StageContext(
            flow=self.flow,
            in_store=self._threads[0],
            in_worker=self._threads[1],
            wall=time.time,
            clock=time.monotonic,
        )
        broker = settings.broker
        # Records that arrive while no gateway is connected must be kept, unlike live positions.
        lasting = {"session_expiry_s": broker.session_expiry_s or _SESSION_S}
        self._link = MqttLink(
            broker.model_copy(update=lasting),
            client_id=f"{broker.client_id}-records",
            subscriptions=[
                (topic_filter(source), source.qos)
                for stream in settings.streams
                for source in stream.sources
            ],
            deliver=self._deliver,
            on_state=on_state,
            close_timeout_s=_GOODBYE_S,
        )

    @property
    def connected(self) -> bool:
        """Whether the broker is connected."""
        return self._link.connected

    @property
    def store_bytes(self) -> int:
        """Size of the store, in bytes."""
        return self.store.size_bytes

    def warm_up(self) -> None:
        """Compile the kernels before the first window, on an empty one."""
        for state in self.flow.states:
            warm_up(state.stream, state.model)

    async def until_connected(self) -> None:
        """Wait until the broker is connected."""
        await self._link.until_connected()

    async def run(self, stop: asyncio.Event) -> None:
        """Receive, anonymize and publish until `stop`, then drain within `tick.drain_s`.

        Unpublished classes and open windows stay in the store.
        """
        signals, drain_s = StageSignals(), self._settings.tick.drain_s
        try:
            async with asyncio.TaskGroup() as group:
                link = group.create_task(self._link.run(), name="records link")
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
                            publish_stage(self._context, self._link, signals, timeout_s=drain_s),
                        ),
                    )
                ]
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
                await link
        finally:
            await asyncio.to_thread(self._close)
        for state in self.flow.states:
            self._log.info("stream stopped", stream=state.stream.settings.name, held=state.n_held)

    def _close(self) -> None:
        for thread in self._threads:
            thread.close()
        self.store.close()

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self.inbox.put(deliveries)

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


def _branches(stream: StreamSettings) -> dict[str, Sequence[Branch]]:
    return {a.name: _read(stream, a) for a in stream.attributes if a.hierarchy is not None}


def _read(stream: StreamSettings, attribute: AttributeSettings) -> Sequence[Branch]:
    path = attribute.hierarchy
    assert path is not None  # noqa: S101  the caller asked
    where = f"streams: {stream.name}: attributes: {attribute.name}: hierarchy"
    try:
        if path.suffix != ".json":
            return read_hierarchy(path)
        trees = read_hierarchies(path)
    except InputError as error:
        raise SettingsError(f"{where}: {error}") from None
    if attribute.name not in trees:
        raise SettingsError(f"{where}: {path}: has none of this name")
    return trees[attribute.name]
