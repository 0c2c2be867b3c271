"""Records that the broker has lost while no gateway ran are not lost in silence."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from anonymizer.app.gateway.kept_session import SHOWN_S, KeptSession
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.app.gateway.recording import publish, serving_records
from tests.app.gateway.records import compiled, stored_accounts
from tests.app.gateway.test_takeover import ids_of
from tests.end_to_end import DEADLINE_S, Gateway, client, eventually, http_client
from tests.pipeline.records.made import traffic

__all__ = ["compiled"]

LOST = 'anonymizer_broker_sessions_lost_total{link="records"} '
PARTS = list(traffic(n_vehicles=167, n_windows=1, seed=1))[:500]


@pytest.fixture
async def keeper(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    """A broker that keeps its sessions over restarts."""
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = mosquitto(folder, persistence=True, stop_timeout_s=DEADLINE_S)
    await broker.start()
    yield broker
    await broker.stop()


@asynccontextmanager
async def serving(folder: Path, broker: LocalBroker) -> AsyncIterator[Gateway]:
    """Run a gateway, and end it cleanly."""
    async with serving_records(folder, broker.url) as gateway:
        await gateway.program.logged("broker connected")  # the other connection, which may be later
        yield gateway
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0


async def problems(gateway: Gateway) -> list[str]:
    return list((await gateway.get("/readyz")).json()["problems"])


async def lost(gateway: Gateway) -> float:
    text = (await gateway.get("/metrics")).text
    return float(text.partition(LOST)[2].split()[0])


async def lose_by_theft(broker: LocalBroker, _folder: Path) -> None:
    [name] = {each for each in ids_of(broker) if each.startswith("gateway-records")}
    async with client(broker.url, name, clean_start=True):
        pass


async def lose_by_empty_disk(broker: LocalBroker, folder: Path) -> None:
    assert await broker.stop() == 0
    (folder / "broker" / "mosquitto.db").unlink()
    await broker.start()


@pytest.mark.parametrize("lose", [lose_by_theft, lose_by_empty_disk])
async def test_records_that_the_broker_lost_while_no_gateway_ran_are_told_of(
    lose: Callable[[LocalBroker, Path], Awaitable[None]], keeper: LocalBroker, tmp_path: Path
) -> None:
    async with serving(tmp_path, keeper) as gateway:
        assert (await problems(gateway), await lost(gateway)) == ([], 0)
    async with serving(tmp_path, keeper) as gateway:
        assert (await problems(gateway), await lost(gateway)) == ([], 0)
    await publish(keeper.url, PARTS)
    await lose(keeper, tmp_path)

    async with serving(tmp_path, keeper) as gateway:
        [problem] = await problems(gateway)
        assert problem.startswith("records: the broker had lost the session")
        assert await lost(gateway) == 1
        [told] = gateway.program.events("session for records lost")
        assert told["level"] == "error"
    assert stored_accounts(tmp_path / "records.sqlite") == {}, "500 records are gone"

    async with serving(tmp_path, keeper) as gateway:
        assert await problems(gateway) == [problem], "nobody has seen it yet"
        assert await lost(gateway) == 0
        assert gateway.program.events("session for records lost") == []
        url = gateway.program.events("listening")[0]["url"]
        async with http_client(url) as anybody:
            assert (await anybody.post("/acknowledge")).status_code == 401
        assert await problems(gateway) == [problem]
        assert (await gateway.post("/acknowledge")).status_code == 204
        await eventually(lambda: problems(gateway), lambda found: found == [])
    async with serving(tmp_path, keeper) as gateway:
        assert await problems(gateway) == []


class Clock:
    now_s = 1e9

    def __call__(self) -> float:
        return self.now_s


def test_a_first_session_and_one_of_another_name_are_not_missed() -> None:
    clock = Clock()
    first = KeptSession(b"", name="a", wall=clock)
    assert not first.exists
    first.connected(lost=False)
    assert first.exists
    assert first.changed.is_set()
    assert KeptSession(first.stored, name="a", wall=clock).exists
    other = KeptSession(first.stored, name="b", wall=clock)
    assert not other.exists
    other.connected(lost=False)
    assert not other.problem


def test_a_loss_is_a_problem_for_an_hour_over_restarts() -> None:
    clock = Clock()
    session = KeptSession(b"", name="a", wall=clock)
    for is_lost in (False, True):
        session.connected(lost=is_lost)
    for passed_s in (0.0, SHOWN_S):
        clock.now_s = Clock.now_s + passed_s
        session = KeptSession(session.stored, name="a", wall=clock)
        session.connected(lost=False)
        assert session.problem
    clock.now_s += 1.0
    assert not session.problem
    assert not KeptSession(session.stored, name="a", wall=clock).problem


def test_a_loss_that_was_acknowledged_is_none_after_a_restart() -> None:
    clock = Clock()
    session = KeptSession(b"", name="a", wall=clock)
    for is_lost in (False, True):
        session.connected(lost=is_lost)
    session.acknowledge()
    assert not session.problem
    again = KeptSession(session.stored, name="a", wall=clock)
    assert (again.exists, again.problem) == (True, "")


def test_nothing_was_lost_where_the_clock_has_not_been_set_yet() -> None:
    assert KeptSession(b"", name="records", wall=lambda: 60.0).problem == ""
