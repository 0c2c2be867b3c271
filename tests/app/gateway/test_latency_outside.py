"""Latency and age as subscribers see them, measured from outside, and as the gateway says they are.

Each position carries its number as a reading that is published with the pseudonym, so a subscriber
knows which position a message is about. A private gateway would publish no such reading. What the
broker and both clients take is outside of what a gateway can see, so ticks last longer than that.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiomqtt
import numpy as np
import pytest

from anonymizer.client.messages import Collector
from anonymizer.client.releases import Releases
from anonymizer.domain.arrays import FloatArray
from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker
from benchmarks.gateways import Scrape
from tests.end_to_end import Gateway, client, quick, serving

GRID = load_network("grid:20x20")
N_DEVICES, EVERY_S, FOR_S, TICK_S = 200, 1.5, 12.0, 1.0
NUMBER = {
    "name": "number",
    "lo": 0.0,
    "hi": 1e6,
    "step": 0.0,
    "statistics": ["mean", "each"],
}
SESSION = {"beat_s": 2.0, "epoch_s": 30.0}
MODES: dict[str, dict[str, Any]] = {
    "snapshot": {"region": {"mode": "snapshot"}},
    "session": {"region": {"mode": "session"}, "session": SESSION},
}
ATTEMPTS = 4
"""While the broker or the gateway stands still, for a second say, what waits for it is late, and
the gateway cannot know that."""
LATENCY, AGE = "anonymizer_latency_seconds", "anonymizer_age_of_information_seconds"


class Outside:
    """Devices and a subscriber, which share a clock and nothing with the gateway."""

    def __init__(self) -> None:
        self.sent_s: list[float] = []
        """When each position was handed to the broker, by its number."""
        self.seen_s: dict[int, float] = {}
        """When the first message about a position was received, by its number."""
        self.late_s: list[float] = []
        """How late this process was whenever it wanted to send, on a machine that is busy."""
        self.collector = Collector()

    @property
    def latency_s(self) -> FloatArray:
        return np.array([seen_s - self.sent_s[n] for n, seen_s in self.seen_s.items()])

    def about(self, measured_s: float) -> object:
        """Return what equals a time that was measured here, as well as this process can tell."""
        late_s = float(np.quantile(self.late_s, 0.99))
        return pytest.approx(measured_s, abs=0.2 * measured_s + late_s)

    @property
    def releases(self) -> Releases:
        return Releases(self.collector.columns, None, self.collector.left_out)

    async def drive(self, devices: aiomqtt.Client) -> None:
        """Send a position of one device after the other, evenly in time."""
        place = np.random.default_rng(1).integers(GRID.n_nodes, size=N_DEVICES).tolist()
        began = time.perf_counter()
        for number in range(round(FOR_S / EVERY_S * N_DEVICES)):
            device = number % N_DEVICES
            body = {
                "lat": float(GRID.lat[place[device]]),
                "lon": float(GRID.lon[place[device]]),
                "readings": {"number": number},
            }
            due_s = began + number * EVERY_S / N_DEVICES
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            self.sent_s.append(time.perf_counter())
            self.late_s.append(self.sent_s[-1] - due_s)
            await devices.publish(f"positions/device-{device}", json.dumps(body).encode(), qos=1)

    @asynccontextmanager
    async def listening(self, url: str) -> AsyncIterator[None]:
        async with client(url, "subscriber") as connection:
            await connection.subscribe("cloaked/positions", qos=1)
            task = asyncio.create_task(self._listen(connection), name="subscriber")
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _listen(self, connection: aiomqtt.Client) -> None:
        async for message in connection.messages:
            now = time.perf_counter()
            assert isinstance(message.payload, bytes)
            columns = self.collector.columns
            n_known = len(columns.values)
            self.collector.take(message.payload)
            for values in columns.values[n_known:]:
                number = (values or {}).get("number")
                if number is not None:
                    self.seen_s.setdefault(round(number), now)


async def scrape(gateway: Gateway) -> Scrape:
    return Scrape.of((await gateway.get("/metrics")).text)


async def measured(broker: LocalBroker, folder: Path, mode: str) -> tuple[Outside, Scrape]:
    """Drive a gateway; return what was seen from outside, and what it says itself."""
    tables: Mapping[str, Any] = MODES[mode] | {
        "readings": [NUMBER],
        "tick": {"interval_s": TICK_S},
        "adka": {"k_values": [5, 5, 5]},
        "inputs": [{"qos": 1}],
        "output": {"qos": 1},
    }
    outside = Outside()
    async with (
        serving(folder, quick(broker.url, **tables)) as gateway,
        client(broker.url, "devices") as devices,
        outside.listening(broker.url),
    ):
        await gateway.until_ready()
        await outside.drive(devices)
        return outside, await scrape(gateway)


def pairs(outside: Outside, said: Scrape) -> Iterator[tuple[float, object]]:
    """Yield each quantile and mean as the gateway says it, and as it was measured."""
    for q in (0.5, 0.99):
        measured_s = float(np.quantile(outside.latency_s, q))
        yield said.quantile(LATENCY, q), outside.about(measured_s)
    # Many moments in a tick: a few would fall on the same ages in every tick.
    ages = outside.releases.ages(outside.releases.moments(TICK_S / 100))
    known = ages["devices"] > 0
    mean_s = float(np.average(ages["mean_s"][known], weights=ages["devices"][known]))
    yield said.mean(AGE), outside.about(mean_s)


@pytest.mark.parametrize("mode", ["session", pytest.param("snapshot", marks=pytest.mark.soak)])
async def test_latency_and_age_agree_with_what_a_subscriber_measures(
    broker: LocalBroker, tmp_path: Path, mode: str
) -> None:
    for _ in range(ATTEMPTS):
        outside, said = await measured(broker, tmp_path, mode)
        compared = list(pairs(outside, said))
        if all(its == ours for its, ours in compared):
            break
    for its, ours in compared:
        assert its == ours
    assert len(outside.seen_s) >= 400
    assert said.n_received >= 0.9 * len(outside.sent_s)
    n_waited = said.values[f'{LATENCY}_count{{waited_for="group"}}']
    assert (n_waited > 0) == (mode == "session")
