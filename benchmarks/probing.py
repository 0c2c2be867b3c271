"""Probes: the latency of a message from its device to an analyst, measured from outside.

A probe reports a public device, which the gateway publishes at the end of the tick in which it
arrives. It passes the same connections and queues as the positions around it, and has no region or
beat to wait for. A relay passes it on like any other message.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import numpy as np

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport.link import MqttLink

INPUT = "probes/{device}"
"""Topic of the input of the gateway for probes: fixed devices that are public."""

_PATIENCE_S = 5.0
_PAUSE_S = 0.1
_NAME = b'"device":"'


class Prober:
    """Sends probes, and receives what the program under test publishes.

    Parameters
    ----------
    url
        Address of the broker.
    at
        Latitude and longitude of all probes.
    n_lanes
        How many probes are on their way at once.
    topics, qos
        Topic filters of what is published, probes and others, and QoS of all.
    """

    def __init__(
        self, url: str, at: tuple[float, float], *, n_lanes: int, topics: Sequence[str], qos: int
    ) -> None:
        self.latencies_s: list[float] = []
        """Of the probes that have ended; infinite if there was no answer."""
        self.n_sent = 0
        self.n_others = 0
        """Messages received that are no probes."""
        self._n_lanes = n_lanes
        self._at = at
        self._qos = qos
        self._awaited: dict[bytes, asyncio.Future[float]] = {}
        self._link = MqttLink(
            BrokerSettings(url=url),
            client_id="prober",
            subscriptions=[(topic, qos) for topic in topics],
            deliver=self._see,
            on_state=lambda _up, _why: None,
            rest_s=0.0,  # a rest of the analyst would count as a delay of the gateway
        )

    def quantiles_s(self, *q: float) -> list[float]:
        """Return quantiles of the latencies; NaN if there are none."""
        if not self.latencies_s:
            return [math.nan] * len(q)
        found: list[float] = np.quantile(self.latencies_s, q, method="higher").tolist()
        return found

    @asynccontextmanager
    async def probing(self) -> AsyncIterator[None]:
        """Probe while the block runs."""
        running = asyncio.create_task(self._link.run(), name="prober")
        await self._link.until_connected()
        lanes = [
            asyncio.create_task(self._repeat(lane), name="lane") for lane in range(self._n_lanes)
        ]
        try:
            yield
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.wait(lanes)
            await self._link.close()
            await running

    async def _repeat(self, lane: int) -> None:
        rng = np.random.default_rng(lane)
        lat, lon = self._at
        for number in range(1 << 62):
            # At a random phase of the gateway's tick.
            await asyncio.sleep(float(rng.uniform(0.0, _PAUSE_S)))
            name = b"probe-%d-%d" % (lane, number)
            payload = b'{"lat":%.7f,"lon":%.7f,"device":"%s"}' % (lat, lon, name)
            message = Outgoing(INPUT.format(device=name.decode()), payload)
            answer = self._awaited[name] = asyncio.get_running_loop().create_future()
            latency_s = math.inf
            began = time.perf_counter()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    accepted = await self._link.publish(
                        [message], qos=self._qos, timeout_s=_PATIENCE_S
                    )
                    self.n_sent += all(accepted)
                    latency_s = await answer - began
            self.latencies_s.append(latency_s)
            del self._awaited[name]

    def _see(self, deliveries: Sequence[Delivery]) -> None:
        now = time.perf_counter()
        for delivery in deliveries:
            _, _, rest = delivery.payload.partition(_NAME)
            answer = self._awaited.get(rest.partition(b'"')[0])
            if answer is None:
                self.n_others += 1
            elif not answer.done():
                answer.set_result(now)
        self._link.acknowledge(d.receipt for d in deliveries if d.receipt)
