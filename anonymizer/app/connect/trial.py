"""Trial of a broker's users and rules: each may do what it must, and nothing else.

What is published as a device is at latitude and longitude 0, where no gateway believes a device to
be: a trial beside a running gateway is company for nobody.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anonymizer.app.connect.broker_files import tree_of
from anonymizer.app.connect.ecosystems import Ecosystem
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import TransportError
from anonymizer.networks.publication import parts
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.decode.topics import subscription
from anonymizer.settings import BrokerSettings, Settings
from anonymizer.settings.base import overlap
from anonymizer.transport import MqttLink

_ANSWER_S = 5.0
_BY_ANOTHER = "somebody-else"
_PUBLIC = "public/#"


class _Client:
    """A user of the broker, connected, and what has reached it."""

    def __init__(self, name: str, broker: BrokerSettings, topics: Sequence[str]) -> None:
        self.name = name
        self.got: list[Delivery] = []
        self._why = "it does not answer"
        self._changed = asyncio.Event()
        self.link = MqttLink(
            broker,
            client_id=f"anonymizer-trial-{name}",
            deliver=self._deliver,
            subscriptions=[(topic, 1) for topic in topics],
            on_state=self._on_state,
        )

    def _deliver(self, batch: Sequence[Delivery]) -> None:
        self.got += batch
        self.link.acknowledge(each.receipt for each in batch)
        self._changed.set()

    def _on_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        self._why = self._why if connected else reason
        self._changed.set()

    async def connected(self) -> None:
        while not self.link.connected:
            self._changed.clear()
            try:
                async with asyncio.timeout(_ANSWER_S):
                    await self._changed.wait()
            except TimeoutError:
                pass
            if not self.link.connected:
                raise TransportError(f"the broker does not let {self.name} in: {self._why}")

    async def publish(self, *messages: Outgoing) -> bool:
        """Publish; return whether the broker took it all."""
        return all(await self.link.publish(messages, qos=1, timeout_s=_ANSWER_S))

    async def gets(self, topic: str, payload: bytes) -> bool:
        """Wait for a message; return whether it came in time."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                while not self.has(topic, payload):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def has(self, topic: str, payload: bytes) -> bool:
        return any(each.topic == topic and each.payload == payload for each in self.got)


async def try_out(
    settings: Settings,
    network: RoadNetwork,
    ecosystem: Ecosystem,
    *,
    device: BrokerSettings,
    analyst: BrokerSettings,
    public: BrokerSettings | None = None,
    reads_own: bool = False,
    another: BrokerSettings | None = None,
) -> None:
    """Try a broker as all kinds of its users.

    Parameters
    ----------
    settings
        The gateway's. Its broker is that of the gateway's user.
    network
        With coordinates. It is published, as the gateway does at each start.
    device, analyst
        The same broker, with the credentials of a publisher and of an analyst.
    public
        Likewise, of a reader of the copy for the public; None: there is none.
    reads_own
        Whether a device may read what it has sent.
    another
        A second device, of which the first one must read nothing; None: there is none.

    Raises
    ------
    TransportError
        If something is missing; the message says what, in a sentence.
    """
    raw = [subscription(each.topic) for each in settings.inputs]
    trees = [tree_of(settings.output.topic), tree_of(settings.broker.status_topic)]
    async with (
        _connected("gateway", settings.broker, raw) as gateway,
        _connected("analyst", analyst, [f"{each}/#" for each in trees], also=raw) as reader,
        _connected(device.username or "device", device, raw if reads_own else []) as publisher,
    ):
        await _try_raw(ecosystem, gateway, publisher)
        if reads_own and another is not None:
            async with _connected(another.username or "another", another, []) as second:
                await second.publish(Outgoing(*ecosystem.message(second.name, 0.0, 0.0, time=0.0)))
        if reads_own:
            await _try_own(ecosystem, publisher)
        if public is not None:
            async with _connected("public", public, [_PUBLIC], also=["#", *raw]) as everybody:
                await _try_public(settings, gateway, everybody)
        await _try_outputs(settings, network, gateway, publisher, reader)
        if any(overlap(each, got.topic) for each in raw for got in reader.got):
            raise TransportError(
                f"analyst can read what devices publish: add `topic deny {raw[0]}` to its rules"
            )


async def _try_raw(ecosystem: Ecosystem, gateway: _Client, publisher: _Client) -> None:
    """Publish as a device; the gateway receives that, and nothing in another's name."""
    if gateway.link.refused:
        raise TransportError(
            f"the broker does not let gateway subscribe: {'; '.join(gateway.link.refused)}"
        )
    now = time.time()
    own = Outgoing(*ecosystem.message(publisher.name, 0.0, 0.0, time=now))
    forged = Outgoing(*ecosystem.message(_BY_ANOTHER, 0.0, 0.0, time=now))
    if ecosystem.has_users:
        await publisher.publish(forged)
        await publisher.connected()  # some brokers throw a forger out
    if not await publisher.publish(own):
        raise TransportError(f"the broker does not let {publisher.name} publish to {own.topic}")
    if not await gateway.gets(own.topic, own.payload):
        raise TransportError(
            f"the broker takes {own.topic} from {publisher.name} and does not give it to gateway:"
            " its rules let it subscribe, but not read"
        )
    if ecosystem.has_users and gateway.has(forged.topic, forged.payload):
        raise TransportError(
            f"{publisher.name} can publish as another device, to {forged.topic}: let each write"
            " below its own name alone"
        )


async def _try_own(ecosystem: Ecosystem, publisher: _Client) -> None:
    """Publish as a device once more; it reads that, and nothing of another one's."""
    own = Outgoing(*ecosystem.message(publisher.name, 0.0, 0.0, time=time.time()))
    await publisher.publish(own)
    if not await publisher.gets(own.topic, own.payload):
        raise TransportError(f"the broker does not give {own.topic} to {publisher.name}")
    below = ecosystem.rule.replace("%u", publisher.name)
    if not all(overlap(below, each.topic) for each in publisher.got):
        raise TransportError(f"{publisher.name} can read what others send: let it read {below}")


async def _try_public(settings: Settings, gateway: _Client, everybody: _Client) -> None:
    """Publish as the gateway; the public receives its copy, and nothing else."""
    copy = Outgoing(f"{tree_of(settings.topics.density)}/trial", b"for the public")
    other = Outgoing(f"{tree_of(settings.output.topic)}/trial", b"for analysts")
    for each in (other, copy):
        if not await gateway.publish(each):
            raise TransportError(f"the broker does not take {each.topic} from gateway")
    if not await everybody.gets(copy.topic, copy.payload):
        raise TransportError(f"the broker does not give {copy.topic} to public")
    # A topic may name a device, its first level does not.
    if trees := {each.topic.partition("/")[0] for each in everybody.got} - {tree_of(_PUBLIC)}:
        raise TransportError(f"public can read below {min(trees)}: let it read {_PUBLIC} alone")


async def _try_outputs(
    settings: Settings, network: RoadNetwork, gateway: _Client, publisher: _Client, reader: _Client
) -> None:
    """Publish as the gateway; the analyst receives that, and nothing of a device's."""
    topic = settings.topics.network
    about, bodies = parts(network, most_bytes=gateway.link.part_bytes(f"{topic}/parts/{10**6}"))
    published = [
        Outgoing(f"{topic}/parts/{i}", body, retain=True) for i, body in enumerate(bodies)
    ] + [Outgoing(topic, about.encoded(), retain=True)]
    trial = f"{tree_of(settings.output.topic)}/trial"
    await publisher.publish(Outgoing(trial, b"of a device"))
    for each in (*published, Outgoing(trial, b"of the gateway")):
        if not await gateway.publish(each):
            raise TransportError(f"the broker does not take {each.topic} from gateway")
    for each in (*published[-1:], *published, Outgoing(trial, b"of the gateway")):
        if not await reader.gets(each.topic, each.payload):
            raise TransportError(f"the broker does not give {each.topic} to analyst")
    if reader.has(trial, b"of a device"):
        raise TransportError(
            f"{publisher.name} can write what the gateway publishes, {trial}: let gateway alone"
        )


@asynccontextmanager
async def _connected(
    name: str, broker: BrokerSettings, topics: Sequence[str], *, also: Sequence[str] = ()
) -> AsyncIterator[_Client]:
    """Connect a user; `also` are filters that the broker should refuse, or send nothing of."""
    client = _Client(name, broker, [*topics, *also])
    running = asyncio.create_task(client.link.run(), name=f"trial as {name}")
    try:
        await client.connected()
        yield client
    finally:
        await client.link.close()
        await running
