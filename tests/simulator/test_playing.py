"""Traffic over a real Mosquitto; the subscriber uses aiomqtt, not our own link."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import aiomqtt
import msgspec
import numpy as np

from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker
from simulator.encoding import positions_to
from simulator.fleet import FleetSource
from simulator.playing import Outlet, play
from simulator.publishing import Tally
from simulator.traffic import Traffic
from tests.brokers import PASSWORD, USER, QuickBrokerSettings
from tests.end_to_end import DEADLINE_S, client
from tests.preloaded import ran

NETWORK = "grid:4x4"


@asynccontextmanager
async def subscriber(
    url: str, topic: str, *, username: str | None = None, password: str | None = None
) -> AsyncIterator[aiomqtt.Client]:
    async with client(url, "subscriber", username=username, password=password) as reader:
        await reader.subscribe(topic, qos=1)
        yield reader


async def receive(reader: aiomqtt.Client, n: int) -> list[aiomqtt.Message]:
    messages = []
    async with asyncio.timeout(DEADLINE_S):
        async for message in reader.messages:
            messages.append(message)
            if len(messages) == n:
                break
    return messages


async def simulator(*arguments: object, **environment: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "simulator", *map(str, arguments)),
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


Running: TypeAlias = asyncio.Task[subprocess.CompletedProcess[str]]


def simulates(*arguments: object, **environment: str) -> Running:
    """Let a simulator run to its end meanwhile."""
    words = map(str, arguments)
    return asyncio.create_task(asyncio.to_thread(ran, "simulator", *words, environment=environment))


async def test_a_subscriber_gets_every_message_of_a_run(
    broker: LocalBroker, tmp_path: Path
) -> None:
    async with subscriber(broker.url, "positions/+") as reader:
        running = simulates(
            *("run", "--network", NETWORK, "--devices", 40, "--rate", 25, "--duration", 1),
            *("--qos", 1, "--connections", 2, "--record", tmp_path / "t.parquet"),
            SIMULATOR_BROKER=broker.url,
        )
        messages = await receive(reader, 1000)
        done = await running
    heard = Counter(str(message.topic) for message in messages)
    assert heard == {f"positions/veh-{i:06d}": 25 for i in range(40)}
    payload = msgspec.json.decode(messages[0].payload, type=dict[str, float])
    assert payload.keys() == {"ts", "lat", "lon"}
    assert done.returncode == 0
    assert re.search(r"^sent +1,000 messages from 40 devices$", done.stdout, re.MULTILINE)
    assert re.search(r"^refused +0$", done.stdout, re.MULTILINE)
    assert "of 1,000 msg/s, lag" in done.stderr
    assert (tmp_path / "t.parquet").stat().st_size > 0


async def test_sigterm_ends_a_replay_and_prints_the_summary(
    broker: LocalBroker, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("device_id,ts,lat,lon\n" + "a/b,1,2,3\nc,1,2,3\n" * 3)
    arguments = ("replay", trace, "--loop", "--quiet", "--broker", broker.url)
    async with subscriber(broker.url, "positions/+") as reader:
        process = await simulator(*arguments)
        messages = await receive(reader, 12)
        process.send_signal(signal.SIGTERM)
        code, out, err = await ended(process)
    assert {str(message.topic) for message in messages} == {"positions/a%2Fb", "positions/c"}
    assert (code, err) == (0, "")
    assert "messages from 2 devices" in out


async def test_the_password_can_come_from_the_environment(password_broker: LocalBroker) -> None:
    arguments = (
        *("run", "--network", NETWORK, "--devices", 5, "--duration", 1, "--username", USER),
        *("--topic", "allowed/{device}", "--broker", password_broker.url),
    )
    async with subscriber(
        password_broker.url, "allowed/+", username=USER, password=PASSWORD
    ) as reader:
        right = simulates(
            *(*arguments, "--connect-timeout", DEADLINE_S),
            SIMULATOR_PASSWORD=PASSWORD,
            FORCE_COLOR="1",
        )
        wrong = simulates(*arguments, SIMULATOR_PASSWORD=PASSWORD[::-1])
        await receive(reader, 5)
        done, refused = await right, await wrong
    assert done.returncode == 0
    assert "sent      5 messages" in done.stdout
    assert "━" in done.stderr
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "refused: Not authorized" in refused.stderr


async def test_traffic_continues_after_a_restart_of_the_broker(broker: LocalBroker) -> None:
    traffic = Traffic(load_network(NETWORK), 20)
    source = FleetSource(traffic, rate_hz=5.0)
    tally = Tally(was_heard=np.zeros(20, np.bool_))
    settings = QuickBrokerSettings(url=broker.url)
    encode = positions_to("positions/{device}", source.device_id)
    playing = asyncio.create_task(
        play(source, Outlet(broker=settings), tally, encode=encode, quiet=True)
    )
    async with asyncio.timeout(DEADLINE_S):
        async with subscriber(broker.url, "positions/+") as reader:
            await receive(reader, 30)
        await broker.kill()
        await broker.start()
        async with subscriber(broker.url, "positions/+") as reader:
            await receive(reader, 30)
        os.kill(os.getpid(), signal.SIGINT)
        await playing
    assert tally.n_sent >= 60
    assert tally.n_devices == 20
    assert tally.n_pauses >= 1
    assert not tally.paused
