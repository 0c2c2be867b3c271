"""Probes: the latency of a position from its device to an analyst, measured from outside."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
import numpy as np

from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.encoding import GroupMessage
from anonymizer.settings import BrokerSettings
from anonymizer.transport.mqtt import MqttLink

TOPIC = "probes"
"""Topic of an input of the gateway with `device_from = "payload"`."""
CROWD = 10
"""Devices of a probe: at this density, the smallest k applies, and the region is their node."""

_PATIENCE_S = 5.0
_PAUSE_S = 0.1
_DECODER = msgspec.json.Decoder(GroupMessage)


class Prober:
    """Small crowds, each at a node of its own, that report together and await their region.

    The answer to a report is a message whose region is this node alone, with a pseudonym for each
    device of the crowd: no other devices are so many at one node. A crowd has one report in flight.

    Parameters
    ----------
    url
        Address of the broker.
    network
        The network of the gateway.
    n_crowds
        Number of crowds, spread over the nodes.
    topic, qos
        Topic of cloaked positions, and QoS of the subscription.
    """

    def __init__(
        self, url: str, network: RoadNetwork, *, n_crowds: int, topic: str, qos: int
    ) -> None:
        self.latencies_s: list[float] = []
        self.n_published = 0
        self.n_cloaked = 0
        """Messages that the analyst received."""
        self._network = network
        self._qos = qos
        self._node: Int32Array = np.linspace(0, network.n_nodes - 1, n_crowds).astype(np.int32)
        self._awaited: dict[bytes, asyncio.Future[float]] = {}
        self._link = MqttLink(
            BrokerSettings(url=url),
            client_id="prober",
            subscriptions=[(topic, qos)],
            deliver=self._see,
            on_state=lambda _up, _why: None,
        )

    @asynccontextmanager
    async def probing(self) -> AsyncIterator[None]:
        """Probe while the block runs."""
        running = asyncio.create_task(self._link.run(), name="prober")
        await self._link.until_connected()
        crowds = [
            asyncio.create_task(self._repeat(node), name="crowd") for node in self._node.tolist()
        ]
        try:
            yield
        finally:
            for crowd in crowds:
                crowd.cancel()
            await asyncio.wait(crowds)
            await self._link.close()
            await running

    async def _repeat(self, node: int) -> None:
        rng = np.random.default_rng(node)
        payload = self._report(node)
        region = str(self._network.node_id[node]).encode()
        while True:
            # At a random phase of the gateway's tick.
            await asyncio.sleep(float(rng.uniform(0.0, _PAUSE_S)))
            answer = self._awaited[region] = asyncio.get_running_loop().create_future()
            self.n_published += 1
            began = time.perf_counter()
            await self._link.publish([Outgoing(TOPIC, payload)], qos=self._qos, timeout_s=1.0)
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    self.latencies_s.append(await answer - began)

    def _report(self, node: int) -> bytes:
        lat, lon = float(self._network.lat[node]), float(self._network.lon[node])
        crowd = [{"lat": lat, "lon": lon, "device": f"probe-{node}-{i}"} for i in range(CROWD)]
        return msgspec.json.encode(crowd)

    def _see(self, deliveries: Sequence[Delivery]) -> None:
        now = time.perf_counter()
        self.n_cloaked += len(deliveries)
        for delivery in deliveries:
            payload = delivery.payload
            region = payload[payload.find(b"[") + 1 : payload.find(b"]")]
            answer = self._awaited.get(region)
            if answer is None or answer.done():
                continue
            if len(_DECODER.decode(payload).pseudonyms) >= CROWD:
                answer.set_result(now)
        self._link.acknowledge(d.receipt for d in deliveries if d.receipt)
