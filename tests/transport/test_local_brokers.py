"""Local brokers: Mosquitto and the embedded broker."""

import asyncio
import signal
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
import pytest

from anonymizer.errors import SettingsError, TransportError
from anonymizer.pipeline.ports import Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import (
    LocalBroker,
    broker_if_none,
    find_mosquitto,
    free_port,
    mosquitto,
    running_embedded_broker,
    running_mosquitto,
)
from tests.end_to_end import DEADLINE_S
from tests.mosquitto import WANTED, main, version_of
from tests.transport.support import Inbox, running, settings


async def accepts(url: str) -> bool:
    address = urlsplit(url)
    try:
        _reader, writer = await asyncio.open_connection(address.hostname, address.port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_a_mosquitto_accepts_connections_only_while_it_runs() -> None:
    async with running_mosquitto("max_queued_messages 7") as url:
        assert await accepts(url)
        async with running_mosquitto() as other:
            assert other != url
    assert not await accepts(url)


async def test_a_mosquitto_is_configured_not_to_lose_bursts(tmp_path: Path) -> None:
    broker = mosquitto(tmp_path, "max_queued_messages 7", "allow_anonymous false")
    await broker.start()
    config = (tmp_path / "mosquitto.conf").read_text().splitlines()
    await broker.stop()
    await broker.stop()
    assert "max_inflight_messages 2000" in config
    assert "max_queued_messages 7" in config
    assert "max_queued_messages 0" not in config
    assert "allow_anonymous true" not in config


async def test_a_mosquitto_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TransportError, match="did not start"):
        await mosquitto(tmp_path, "nonsense 1").start()


async def test_a_port_that_is_taken_is_an_error(broker: LocalBroker, tmp_path: Path) -> None:
    port = urlsplit(broker.url).port or 0
    folder = tmp_path / "other"
    folder.mkdir()
    with pytest.raises(TransportError, match="did not start"):
        await mosquitto(folder, port=port).start()


async def test_a_broker_that_ends_without_output_is_reported_as_such() -> None:
    silent = LocalBroker(lambda _port: [sys.executable, "-c", ""], ready="never", port=1)
    with pytest.raises(TransportError, match="it wrote no output"):
        await silent.start()
    await silent.kill()
    silent.send_signal(0)


STUBBORN = """
import signal
signal.signal(15, signal.SIG_IGN)
print('up', flush=True)
signal.pause()
"""


async def test_a_broker_that_does_not_stop_in_time_is_killed() -> None:
    broker = LocalBroker(
        lambda _port: [sys.executable, "-c", STUBBORN], ready="up", stop_timeout_s=0.05
    )
    await broker.start()
    async with asyncio.timeout(DEADLINE_S):
        assert await broker.stop() == -signal.SIGKILL


async def test_a_broker_that_has_ended_when_its_time_is_up_is_no_error() -> None:
    code = "import signal; print('up', flush=True); signal.pause()"
    broker = LocalBroker(
        lambda _port: [sys.executable, "-c", code], ready="up", stop_timeout_s=0.05
    )
    await broker.start()
    asyncio.get_running_loop().call_soon(time.sleep, 0.5)  # this process stands still meanwhile
    assert await broker.stop() in {-signal.SIGTERM, -signal.SIGKILL}


FORGETFUL = """
import signal
said = []
signal.signal(15, lambda *_: said.append(1))
print('up', flush=True)
while len(said) < 2:
    signal.pause()
"""


async def test_a_broker_that_misses_the_first_signal_is_told_again() -> None:
    broker = LocalBroker(
        lambda _port: [sys.executable, "-c", FORGETFUL], ready="up", stop_timeout_s=DEADLINE_S
    )
    await broker.start()
    assert await broker.stop() == 0


async def test_a_broker_that_does_not_become_ready_in_time_is_an_error() -> None:
    broker = LocalBroker(
        lambda _port: [sys.executable, "-c", "import signal; signal.pause()"],
        ready="up",
        port=1,
        start_timeout_s=0.05,
    )
    with pytest.raises(TransportError, match="did not start"):
        await broker.start()


def test_mosquitto_is_found_on_the_path_and_in_the_usual_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = find_mosquitto()
    assert found is not None
    elsewhere = tmp_path / "mosquitto"
    elsewhere.symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_mosquitto() == elsewhere
    assert version_of(found) >= WANTED
    assert main() == 0


async def test_the_embedded_broker_carries_messages_both_ways_at_qos_0_and_1() -> None:
    inbox = Inbox()
    async with running_embedded_broker() as url:
        link = MqttLink(
            settings(url, version="3.1.1"),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("in/+", 1)],
            announce=True,
        )
        address = urlsplit(url)
        async with (
            running(link),
            aiomqtt.Client(str(address.hostname), address.port or 0) as other,
            asyncio.timeout(DEADLINE_S),
        ):
            await other.subscribe("out")
            await other.publish("in/1", b"hello", qos=1)
            await inbox.receives(1)
            link.acknowledge([inbox.deliveries[0].receipt])
            assert await link.publish([Outgoing("out", b"0")], qos=0, timeout_s=DEADLINE_S) == [
                True
            ]
            assert await link.publish([Outgoing("out", b"1")], qos=1, timeout_s=DEADLINE_S) == [
                True
            ]
            messages = aiter(other.messages)
            assert [(await anext(messages)).payload for _ in range(2)] == [b"0", b"1"]
    assert not await accepts(url)


async def test_a_broker_is_started_only_where_none_answers() -> None:
    port = free_port()
    wanted = settings(f"mqtt://127.0.0.1:{port}")
    async with broker_if_none(wanted) as (name, broker):
        assert name == f"Mosquitto at {wanted.url}"
        assert broker == wanted
        assert await accepts(wanted.url)
        async with broker_if_none(wanted) as (none, same):
            assert (none, same) == ("", wanted)
    assert not await accepts(wanted.url)


async def test_no_broker_is_started_for_an_address_with_tls() -> None:
    port = free_port()
    with pytest.raises(SettingsError, match=r"broker\.url: no broker answers at mqtts://127"):
        async with broker_if_none(settings(f"mqtts://127.0.0.1:{port}")):
            pass
