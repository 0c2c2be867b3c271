"""The topics of a stream, listened to for a while. Nothing of it is stored."""

import asyncio
import os
from collections.abc import Sequence

from anonymizer.app.tuning.recording import Message
from anonymizer.errors import TransportError
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.topics import topic_filter
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink

MOST_MESSAGES = 2_000_000
"""Heard at most: the tap then ends by itself."""


async def tap(
    broker: BrokerSettings, stream: Stream, *, seconds: float, patience_s: float = 15.0
) -> list[Message]:
    """Return what the topics of a stream carry in the next seconds.

    Parameters
    ----------
    patience_s
        How long the broker may take to let us in.

    Raises
    ------
    TransportError
        If the broker cannot be reached.

    Notes
    -----
    Listens beside a gateway that runs, under a name of its own and at QoS 0: no message is kept
    from anybody, and the broker keeps none for us.
    """
    heard: list[Message] = []
    full = asyncio.Event()

    def deliver(deliveries: Sequence[Delivery]) -> None:
        room = MOST_MESSAGES - len(heard)
        live = (each for each in deliveries if not each.retained)
        heard.extend([Message(each.topic, each.payload) for each in live][:room])
        if len(heard) >= MOST_MESSAGES:
            full.set()

    link = MqttLink(
        broker.model_copy(update={"session_expiry_s": 0}),
        client_id=f"{broker.client_id}-tune-{os.getpid()}",
        subscriptions=[(topic_filter(source), 0) for source in stream.settings.sources],
        deliver=deliver,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="tap")
        try:
            async with asyncio.timeout(patience_s):
                await link.until_connected()
            await asyncio.wait([group.create_task(full.wait(), name="full")], timeout=seconds)
        except TimeoutError:
            reached = False
        else:
            reached = True
        full.set()
        await link.close()
    if not reached:
        raise TransportError(f"the broker cannot be reached within {patience_s:g} s")
    return heard
