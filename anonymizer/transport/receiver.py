"""The receiving process: `python -m anonymizer.transport.receiver SOCKET MEMORY`.

`anonymizer.transport.receiving` starts it, with the file descriptors of a channel and of shared
memory. It keeps one connection to the broker, splits what arrives into messages, and passes them
on. It ends when its gateway says so or is gone, however that ended.
"""

import asyncio
import logging
import signal
import socket
import sys
from collections import deque
from collections.abc import Sequence

import numpy as np

from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, LinkCounts
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
from anonymizer.transport.mqtt import MqttLink
from anonymizer.transport.shared_batches import SharedBatches


class Receiver:
    """Receives from the broker for a gateway.

    Parameters
    ----------
    memory
        Where the batches go.

    Notes
    -----
    While there is no room for a batch, nothing is read from the broker: as in one process, what
    is not read stays there.
    """

    def __init__(self, memory: SharedBatches) -> None:
        self.channel = Channel(self._on_message)
        self._memory = memory
        self._waiting: deque[PackedDeliveries] = deque()
        self._link: MqttLink | None = None
        self._begun = asyncio.Event()
        self._stopping = False

    async def run(self) -> None:
        """Receive until the gateway closes the link or is gone."""
        async with asyncio.TaskGroup() as group:
            receiving = group.create_task(self._receive(), name="receive")
            ended = group.create_task(self.channel.ended.wait(), name="end of the gateway")
            beating = group.create_task(self._beat(), name="beat")
            await asyncio.wait([receiving, ended], return_when=asyncio.FIRST_COMPLETED)
            for task in (receiving, ended, beating):
                task.cancel()

    async def _beat(self) -> None:
        while True:
            self.channel.send(Alive(self._link.counts if self._link else None))
            await asyncio.sleep(BEAT_S)

    async def _receive(self) -> None:
        await self._begun.wait()
        if self._link is not None:
            await self._link.run()

    def _on_message(self, message: Message) -> None:
        if isinstance(message, Begin):
            self._link = self._new_link(message)
            self._begun.set()
        elif self._link is None:
            raise ValueError("a message before the first one")
        elif isinstance(message, Acknowledge):
            self._link.acknowledge(np.frombuffer(message.receipts, np.int64).tolist())
        elif isinstance(message, Taken):
            self._memory.release(message.place)
            self._pass_on(self._link)
        elif isinstance(message, Stop):
            self._ending = asyncio.create_task(self._stop(self._link), name="stop")
        elif isinstance(message, Close):
            self._ending = asyncio.create_task(self._link.close(), name="close")

    def _new_link(self, begin: Begin) -> MqttLink:
        link = MqttLink(
            BrokerSettings.model_validate(begin.broker | {"password": begin.password}),
            client_id=begin.client_id,
            subscriptions=begin.subscriptions,
            deliver=self._deliver,
            on_state=lambda up, why: self._report(link.counts, connected=up, reason=why),
            counts=begin.counts,
            first_receipt=begin.first_receipt,
            max_payload_bytes=begin.max_payload_bytes,
            on_quarantined=lambda n, name: self.channel.send(Quarantined(n, name)),
        )
        return link

    def _report(self, counts: LinkCounts, *, connected: bool, reason: str) -> None:
        self.channel.send(State(connected, reason, counts))

    def _deliver(self, batch: Sequence[Delivery]) -> None:
        self._waiting.append(PackedDeliveries.of(batch))
        if self._link is not None:
            self._pass_on(self._link)

    def _pass_on(self, link: MqttLink) -> None:
        """Put what waits into the memory, as far as there is room."""
        while self._waiting and (place := self._memory.put(self._waiting[0])) is not None:
            self._waiting.popleft()
            self.channel.send(Arrived(place))
        link.read(on=not self._waiting)
        if self._stopping and not self._waiting:
            self._stopping = False
            self.channel.send(Stopped())

    async def _stop(self, link: MqttLink) -> None:
        await link.stop_receiving()
        self._stopping = True
        self._pass_on(link)


async def receive(channel: int, memory: int) -> None:
    """Receive for the gateway at the other end of a channel, given both file descriptors."""
    # Ctrl-C reaches every process of a terminal, and a supervisor's SIGTERM every one of a service:
    # the gateway decides when its input ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    receiver = Receiver(SharedBatches(memory))
    await asyncio.get_running_loop().create_connection(
        lambda: receiver.channel, sock=socket.socket(fileno=channel)
    )
    await receiver.run()
    receiver.channel.close()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(receive(*map(int, sys.argv[1:])))
