"""A link whose input is received in a process of its own, so that it uses another core.

The process (`anonymizer.transport.receiver`) reads the socket, splits the stream into messages and
writes the acknowledgements. It passes whole batches over shared memory. Everything else is as with
`MqttLink`: what is accepted, refused and counted is decided here, in one place.
"""

import asyncio
import contextlib
import os
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

import numpy as np

from anonymizer.pipeline.ports import Deliver, LinkCounts, Loss, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport.channel import (
    BEAT_S,
    Acknowledge,
    Alive,
    Arrived,
    Begin,
    Channel,
    Close,
    Message,
    Quarantined,
    State,
    Stop,
    Stopped,
    Taken,
)
from anonymizer.transport.connecting import backoff_s, reason_of
from anonymizer.transport.mqtt import MqttLink
from anonymizer.transport.packets import MAX_PAYLOAD_BYTES
from anonymizer.transport.quarantine import OnQuarantined
from anonymizer.transport.shared_batches import SharedBatches, open_memory

_MEMORY_BYTES = 64 << 20
"""Room for batches on their way: several times the largest packet. A batch stays there for less
than a tick, so that most of it is never touched."""
_RECEIPTS_OF_A_PROCESS = 1 << 40
_PATIENCE_S = 10 * BEAT_S
_START_S = 60.0
"""Until a new process says something: it loads its modules first."""


class ReceivingLink:
    """A link that publishes on one connection, and receives on another in a process of its own.

    Implements `anonymizer.pipeline.ports.Link`. A process that ends is started again, and one that
    hangs is killed first: its loss is the loss of a connection, after which the broker delivers
    again what was not acknowledged.

    Parameters
    ----------
    settings, subscriptions, deliver, announce, close_timeout_s, max_payload_bytes, on_quarantined
        As of `BrokerLink`.
    client_id, output_client_id
        Ids under which the broker knows the connection of the input, and that of the output.
    on_state
        Called with whether both connections are there and the reason, at every change of either.
    on_input
        Called with whether the input is connected, at every change.
    memory_bytes
        Size of the shared memory.
    patience_s
        A process that says nothing for so long hangs; it has a beat of `BEAT_S`.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        client_id: str,
        output_client_id: str,
        deliver: Deliver,
        subscriptions: Sequence[tuple[str, int]],
        announce: bool = False,
        on_state: Callable[[bool, str], None] = lambda *_: None,
        on_input: Callable[[bool], None] = lambda _: None,
        close_timeout_s: float = 5.0,
        memory_bytes: int = _MEMORY_BYTES,
        patience_s: float = _PATIENCE_S,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        on_quarantined: OnQuarantined = lambda *_: None,
    ) -> None:
        self._settings = settings
        self._client_id = client_id
        self._subscriptions = list(subscriptions)
        self._deliver = deliver
        self._on_state = on_state
        self._on_input = on_input
        self._close_timeout_s = close_timeout_s
        self._max_payload_bytes = max_payload_bytes
        self._on_quarantined = on_quarantined
        self._memory_bytes = memory_bytes
        self._output = MqttLink(
            # What this connection publishes at QoS 1 is never sent later, so nothing is kept.
            settings.model_copy(update={"session_expiry_s": 0}),
            client_id=output_client_id,
            deliver=lambda _: None,
            announce=announce,
            on_state=self._on_output,
            close_timeout_s=close_timeout_s,
        )
        self.patience_s = patience_s
        """A process that says nothing for so long hangs; it has a beat of `BEAT_S`."""
        self.counts = LinkCounts()
        """What happened to the connections of the input since the start."""
        self.pid: int | None = None
        """Of the receiving process, while there is one."""
        self._channel: Channel | None = None
        self._memory: SharedBatches | None = None
        self._failure: Exception | None = None
        self._receiving = True
        self._input_is_up = False
        self._up = asyncio.Event()
        self._stopped = asyncio.Event()
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    @property
    def output_counts(self) -> LinkCounts:
        """What happened to the connections of the output since the start."""
        return self._output.counts

    @property
    def connected(self) -> bool:
        """Whether messages can flow now, in and out."""
        return self._input_is_up and self._output.connected

    async def until_connected(self) -> None:
        """Wait until the broker has accepted both connections and the subscriptions."""
        while not self.connected:
            await self._up.wait()
            await self._output.until_connected()

    async def run(self) -> None:
        """Keep both connections until `close`.

        Raises whatever `deliver` raised. Failures of the broker are reported, never raised.
        """
        self._ended.clear()
        try:
            async with asyncio.TaskGroup() as group:
                receiving = group.create_task(self._keep_receiving(), name="receiving process")
                group.create_task(self._output.run(), name="mqtt output")
                await self._closing.wait()
                await self._close_input(receiving)
                await self._output.close()
        finally:
            self._ended.set()
        if self._failure is not None:
            raise self._failure

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        """Publish a batch, see `BrokerLink.publish`."""
        return await self._output.publish(messages, qos=qos, timeout_s=timeout_s)

    def takes(self, message: Outgoing) -> bool:
        """Return whether the broker takes messages of this size; True while that is not known."""
        return self._output.takes(message)

    def acknowledge(self, receipts: Iterable[int]) -> None:
        """Acknowledge deliveries to the broker; those of an earlier process are ignored."""
        numbers = np.fromiter(receipts, np.int64)
        if len(numbers) and self._channel is not None:
            self._channel.send(Acknowledge(numbers.tobytes()))

    async def collect(self) -> None:
        """Do nothing: the process does not wait for ticks."""

    async def stop_receiving(self) -> None:
        """Stop deliveries for good; return when the last one has been made."""
        self._receiving = False
        if self._channel is not None:
            self._stopped.clear()
            self._channel.send(Stop())
            await self._stopped.wait()

    async def close(self) -> None:
        """Disconnect within the deadline, so that `run` returns. A second call has no effect."""
        self._closing.set()
        await self._ended.wait()

    async def _keep_receiving(self) -> None:
        rng = random.Random()  # noqa: S311  spreads reconnects, keeps no secret
        first_receipt, attempt = 1, 0
        while not self._closing.is_set():
            n_before, attempt = self.counts.n_connections, attempt + 1
            try:
                async with self._process(first_receipt) as channel:
                    if not await self._until_ended(channel):
                        self._on_gone("the receiving process hangs")
            except OSError as error:
                self._set_input(False, f"no receiving process: {reason_of(error)}")
            else:
                if channel.failure is not None:
                    self._failure = channel.failure
                    self._closing.set()
                    return
            if self.counts.n_connections > n_before:
                attempt = 1
            first_receipt += _RECEIPTS_OF_A_PROCESS
            pause_s = backoff_s(self._settings, attempt=attempt, rng=rng)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause_s)

    async def _until_ended(self, channel: Channel) -> bool:
        """Return whether a process has ended, when it has or when it hangs.

        Rounds without a message are counted, not seconds: a gateway that was frozen itself wakes
        up to one round, in which it finds what the process has said meanwhile.
        """
        n_heard, n_silent = 0, 0
        while n_silent * BEAT_S <= (self.patience_s if n_heard else _START_S):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(channel.ended.wait(), BEAT_S)
                return True
            n_silent = 0 if channel.n_heard > n_heard else n_silent + 1
            n_heard = channel.n_heard
        return False

    @contextlib.asynccontextmanager
    async def _process(self, first_receipt: int) -> AsyncIterator[Channel]:
        """Run one process until the block ends, or it does."""
        ours, theirs = socket.socketpair()
        with ours, contextlib.ExitStack() as stack:
            stack.enter_context(theirs)
            file = open_memory(self._memory_bytes)
            stack.callback(os.close, file)
            self._memory = SharedBatches(file)
            given = (theirs.fileno(), file)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "anonymizer.transport.receiver", *map(str, given)),
                pass_fds=given,
                stdin=asyncio.subprocess.DEVNULL,
            )
            stack.close()  # what the process has now
            channel = Channel(self._on_message)
            try:
                await asyncio.get_running_loop().create_connection(lambda: channel, sock=ours)
                self._channel, self.pid = channel, process.pid
                channel.send(self._begin(first_receipt))
                if self._closing.is_set():
                    channel.send(Close())
                yield channel
            finally:
                self._channel = self.pid = None
                channel.close()
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                await process.wait()
                self._memory.close()
                self._on_gone()

    def _begin(self, first_receipt: int) -> Begin:
        password = self._settings.password
        return Begin(
            broker=self._settings.model_dump(mode="json", exclude={"password"}),
            password=password.get_secret_value() if password else None,
            client_id=self._client_id,
            subscriptions=self._subscriptions if self._receiving else [],
            first_receipt=first_receipt,
            counts=self.counts,
            max_payload_bytes=self._max_payload_bytes,
        )

    def _on_message(self, message: Message) -> None:
        if isinstance(message, Arrived) and self._channel is not None and self._memory is not None:
            batch = self._memory.take(message.place)
            self._channel.send(Taken(message.place))
            self._deliver(batch)
        elif isinstance(message, State):
            self._count(message.counts)
            self._set_input(message.connected, message.reason)
        elif isinstance(message, Alive) and message.counts is not None:
            self._count(message.counts)
        elif isinstance(message, Quarantined):
            self._on_quarantined(message.n_bytes, message.name)
        elif isinstance(message, Stopped):
            self._stopped.set()

    def _count(self, counts: LinkCounts) -> None:
        self.counts.n_connections = counts.n_connections
        self.counts.n_sessions_lost = counts.n_sessions_lost
        self.counts.n_quarantined = counts.n_quarantined
        self.counts.lost.update(counts.lost)

    def _on_gone(self, reason: str = "the receiving process has ended") -> None:
        self._stopped.set()  # nothing can follow
        if self._input_is_up:
            self.counts.lost[Loss.PROCESS] += not self._closing.is_set()
            self._set_input(False, reason)

    def _set_input(self, up: bool, reason: str) -> None:  # noqa: FBT001  as of the callback
        self._input_is_up = up
        self._on_input(up)
        (self._up.set if up else self._up.clear)()
        if up and not self._output.connected:
            return  # that is reported by itself
        self._on_state(up, reason)

    def _on_output(self, up: bool, reason: str) -> None:  # noqa: FBT001  as of the callback
        if not up or self._input_is_up:
            self._on_state(up, reason)

    async def _close_input(self, receiving: asyncio.Task[None]) -> None:
        """End the process: by itself if it does in time."""
        if self._channel is not None:
            self._channel.send(Close())
        await asyncio.wait([receiving], timeout=self._close_timeout_s)
        if self._channel is not None:
            self._channel.close()
