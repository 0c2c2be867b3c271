"""The simulator waits for its gateway, and sends readings that one can declare."""

import asyncio
import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import mosquitto
from simulator.encoding import positions_to
from simulator.fleet import FleetSource, Speeds
from simulator.reports import Turns
from simulator.traffic import Traffic
from simulator.waiting import until_ready
from tests.end_to_end import ANONYMIZER, DEADLINE_S, client, quick, running, serving

SIMULATOR = ANONYMIZER.with_name("simulator")


class Answers:
    """An HTTP server that gives these answers in turn, and the last one again and again."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self._answers = list(answers)
        self.n_asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        code, body = self._answers[min(self.n_asked, len(self._answers) - 1)]
        self.n_asked += 1
        head = f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()


def not_ready(*problems: str) -> tuple[int, bytes]:
    return 503, json.dumps({"status": "failing", "problems": problems}).encode()


async def test_it_waits_until_the_gateway_is_ready_and_says_why_it_is_not() -> None:
    starting = not_ready("starting: reads the network")
    answers = Answers(
        starting, starting, (503, b"{"), not_ready("broker: not connected"), (200, b"{}")
    )
    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    said: list[str] = []
    async with asyncio.timeout(DEADLINE_S), server:
        await until_ready(url, tell=said.append)
    assert said == [
        f"waiting for {url}: starting: reads the network",
        f"waiting for {url}: answers 503",
        f"waiting for {url}: broker: not connected",
    ]
    assert answers.n_asked == 5


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "file:///etc/passwd", "http://"])
async def test_only_a_web_address_is_waited_for(url: str) -> None:
    with pytest.raises(SettingsError, match="--wait-for: must be http"):
        await until_ready(url)


async def test_traffic_begins_when_the_gateway_is_ready(tmp_path: Path) -> None:
    broker = mosquitto(tmp_path)
    await broker.start()
    try:
        async with (
            serving(tmp_path, quick(broker.url, log={"level": "info"})) as gateway,
            client(broker.url, "witness") as witness,
        ):
            await witness.subscribe("positions/#")
            url = gateway.program.events("listening")[0]["url"]
            arguments = ["--network", "grid:5x5", "--devices", "9", "--duration", "5", "--readings"]
            async with running(
                SIMULATOR, "run", *arguments, "--broker", broker.url, "--wait-for", url, "--quiet"
            ):
                async with asyncio.timeout(DEADLINE_S):
                    async for message in witness.messages:
                        assert isinstance(message.payload, bytes)
                        if b"speed_mps" in message.payload:
                            break
                await gateway.until(lambda now: now.received > 0)
    finally:
        await broker.stop()
    [fix] = CODECS["native"](message.payload)
    assert isinstance(fix, Fix)
    assert fix.readings is not None
    assert 0 <= fix.readings["speed_mps"] < 70


def test_speeds_are_distance_over_time_since_the_previous_report() -> None:
    rng = np.random.default_rng(3)
    speeds = Speeds(4)
    before: dict[int, tuple[float, float, float]] = {}
    for second in range(20):
        n = int(rng.integers(0, 9))
        device, due = rng.integers(0, 4, n), np.sort(rng.uniform(0, 1, n)) + second / 2
        lat, lon = rng.uniform(0, 0.01, n), rng.uniform(0, 0.01, n)
        found = speeds.since(Turns(device, due, np.arange(n)), lat, lon)
        for i, each in enumerate(device.tolist()):
            if each not in before:
                assert np.isnan(found[i])
            else:
                old_lat, old_lon, old_due = before[each]
                dx = 111_195 * (lon[i] - old_lon)
                dy = 111_195 * (lat[i] - old_lat)
                wanted = np.hypot(dx, dy) / (due[i] - old_due)
                assert due[i] <= old_due or abs(found[i] / wanted - 1) < 1e-3
            before[each] = lat[i], lon[i], due[i]


def test_reports_of_moving_devices_state_plausible_speeds() -> None:
    traffic = Traffic(load_network("city:400"), 30, seed=1, parked_share=0.2)
    source = FleetSource(traffic, rate_hz=1.0, seed=1, states_speed=True)
    encode = positions_to("positions/{device}", source.device_id)
    first, later = source.take(1.0, limit=999), source.take(20.0, limit=9999)
    assert not any(b"readings" in m.payload for m in encode(first, first.due_s)[:30])
    speeds = [json.loads(m.payload)["readings"]["speed_mps"] for m in encode(later, later.due_s)]
    assert 0 <= min(speeds) <= max(speeds) < 60
    assert np.mean(np.array(speeds) > 1) > 0.3
