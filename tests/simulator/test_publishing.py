"""The publishing loop with an in-memory broker and virtual time."""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.domain.trace import Trace
from anonymizer.files.traces import read_trace
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.transport import MemoryBroker, MemoryLink
from simulator.encoding import named_positions_to, positions_to, topic_level
from simulator.publishing import (
    MAX_BATCH,
    MAX_NAP_S,
    TICK_S,
    SystemClock,
    Tally,
    publish,
)
from simulator.reports import Reports, Source
from simulator.trace_replay import ReplaySource
from tests.simulator.support import VirtualClock

TOPIC = "positions/{device}"


def replay(
    ts: Sequence[float], *, ids: Sequence[str] = (), recorded: bool = False, loop: bool = False
) -> ReplaySource:
    n = len(ts)
    names = tuple(ids) or tuple(f"d{i}" for i in range(n))
    where = np.arange(n, dtype=np.float64)
    trace = Trace(names, np.arange(n) % len(names), np.array(ts, np.float64), where, where)
    return ReplaySource(trace, speed=1.0, recorded_time=recorded, loop=loop)


class Heard:
    """A broker, with all messages that a subscriber to every topic receives."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(max_queued=10_000_000)
        self.messages: list[Delivery] = []

    @property
    def payloads(self) -> list[dict[str, Any]]:
        return [json.loads(message.payload) for message in self.messages]

    @asynccontextmanager
    async def links(
        self, n: int = 1, *, kind: Callable[..., MemoryLink] = MemoryLink
    ) -> AsyncIterator[list[MemoryLink]]:
        ear = MemoryLink(
            self.broker, client_id="ear", deliver=self.messages.extend, subscriptions=[("#", 0)]
        )
        links = [kind(self.broker, client_id=f"{i}", deliver=lambda _: None) for i in range(n)]
        running = [asyncio.create_task(link.run()) for link in (ear, *links)]
        await asyncio.gather(*(link.until_connected() for link in (ear, *links)))
        yield links
        for link in (*links, ear):
            await link.close()
        await asyncio.gather(*running)


async def play(
    source: Source,
    links: Sequence[MemoryLink],
    *,
    clock: VirtualClock | None = None,
    stop: asyncio.Event | None = None,
) -> Tally:
    tally = Tally(was_heard=np.zeros(len(source.device_id), np.bool_))
    await publish(
        source,
        links,
        encode=positions_to(TOPIC, source.device_id),
        qos=0,
        stop=stop or asyncio.Event(),
        clock=clock or VirtualClock(),
        tally=tally,
    )
    await asyncio.sleep(0)
    return tally


async def test_all_messages_arrive_in_order_with_times_as_if_live() -> None:
    heard, clock = Heard(), VirtualClock(start_s=1_000_000.0)
    async with heard.links() as links:
        tally = await play(replay([50, 50.5, 52]), links, clock=clock)
    assert [message.topic for message in heard.messages] == [
        "positions/d0",
        "positions/d1",
        "positions/d2",
    ]
    assert heard.payloads == [
        {"ts": 1_000_000.0, "lat": 0, "lon": 0},
        {"ts": 1_000_000.5, "lat": 1, "lon": 1},
        {"ts": 1_000_002.0, "lat": 2, "lon": 2},
    ]
    assert (tally.n_sent, tally.n_refused, tally.n_devices, tally.n_pauses) == (3, 0, 3, 0)
    assert tally.rate_per_s == 3 / tally.played_s


@pytest.mark.parametrize("n_links", [1, 2])
async def test_positions_that_share_a_message_state_their_devices(n_links: int) -> None:
    heard, source = Heard(), replay([50.0] * 7)
    tally = Tally(was_heard=np.zeros(7, np.bool_))
    async with heard.links(n_links) as links:
        await publish(
            source,
            links,
            encode=named_positions_to(TOPIC, source.device_id, per_message=3),
            qos=0,
            stop=asyncio.Event(),
            clock=VirtualClock(start_s=1_000.0),
            tally=tally,
            per_message=3,
        )
        await asyncio.sleep(0)
    assert {message.topic for message in heard.messages} == {"positions/batch"}
    arrays: list[list[dict[str, float]]] = [json.loads(each.payload) for each in heard.messages]
    assert sorted(map(len, arrays)) == [1, 3, 3]
    expected = [{"device": f"d{i}", "ts": 1_000.0, "lat": i, "lon": i} for i in range(7)]
    assert sorted((each for array in arrays for each in array), key=str) == expected
    assert (tally.n_sent, tally.n_refused, tally.n_devices) == (7, 0, 7)


async def test_recorded_times_are_stated_on_request() -> None:
    heard = Heard()
    async with heard.links() as links:
        await play(replay([50, 50.5], recorded=True), links)
    assert [payload["ts"] for payload in heard.payloads] == [50, 50.5]


class Watched:
    """A source that passes each batch to a witness first."""

    def __init__(self, source: Source, witness: Callable[[Reports], None]) -> None:
        self.device_id = source.device_id
        self.rate_per_s = source.rate_per_s
        self.n_total = source.n_total
        self._source = source
        self._witness = witness

    @property
    def next_due_s(self) -> float:
        return self._source.next_due_s

    def take(self, until_s: float, *, limit: int) -> Reports:
        reports = self._source.take(until_s, limit=limit)
        self._witness(reports)
        return reports


async def test_a_message_is_never_early_and_at_most_a_tick_late() -> None:
    clock, heard = VirtualClock(), Heard()
    due_s = [0, 0.01, 0.02, 0.1, 0.5, 0.51, 3, 3]

    def check(reports: Reports) -> None:
        assert (reports.due_s <= clock.slept_s).all()
        assert (reports.due_s >= clock.slept_s - TICK_S - 1e-9).all()

    async with heard.links() as links:
        tally = await play(Watched(replay(due_s), check), links, clock=clock)
    assert tally.n_sent == len(due_s)
    assert clock.n_sleeps <= len(due_s) + 3 / MAX_NAP_S


async def test_a_device_keeps_to_one_connection_so_its_reports_stay_in_order() -> None:
    heard = Heard()
    used: dict[str, set[str]] = defaultdict(set)

    class WatchedLink(MemoryLink):
        async def publish(
            self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
        ) -> Sequence[bool | None]:
            for message in messages:
                used[message.topic].add(self.client_id)
            return await super().publish(messages, qos=qos, timeout_s=timeout_s)

    async with heard.links(3, kind=WatchedLink) as links:
        tally = await play(replay([i / 100 for i in range(50)], ids="abcdefg"), links)
    assert (tally.n_sent, tally.n_devices) == (50, 7)
    assert {len(links_used) for links_used in used.values()} == {1}
    assert set.union(*used.values()) == {"0", "1", "2"}


async def test_with_a_slow_broker_the_lag_grows_but_not_the_batches() -> None:
    heard, clock = Heard(), VirtualClock()
    n = 5 * MAX_BATCH
    batches: list[int] = []
    lags: list[float] = []
    tally = Tally(was_heard=np.zeros(n, np.bool_))

    class SlowLink(MemoryLink):
        """Accepts one full batch per second, and refuses one device."""

        async def publish(
            self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
        ) -> Sequence[bool]:
            batches.append(len(messages))
            await clock.sleep(len(messages) / MAX_BATCH)
            await super().publish(messages, qos=qos, timeout_s=timeout_s)
            return [message.topic != "positions/d1" for message in messages]

    source = replay([i * 0.5 / MAX_BATCH for i in range(n)])
    watched = Watched(source, lambda _: lags.append(tally.lag_s))
    async with heard.links(kind=SlowLink) as links:
        await publish(
            watched,
            links,
            encode=positions_to(TOPIC, source.device_id),
            qos=0,
            stop=asyncio.Event(),
            clock=clock,
            tally=tally,
        )
    assert (tally.n_sent, tally.n_refused, tally.n_devices) == (n - 1, 1, n - 1)
    assert max(batches) == MAX_BATCH
    assert lags == sorted(lags)
    assert max(lags) > 1.0
    assert tally.played_s == pytest.approx(5.0, abs=0.2)


class Interrupted(VirtualClock):
    """Breaks a link at one sleep and restores it some sleeps later."""

    def __init__(self, link: MemoryLink, *, down_at: int, up_after: int) -> None:
        super().__init__(start_s=0.0)
        self._link = link
        self._down_at = down_at
        self._up_at = down_at + up_after

    async def sleep(self, delay_s: float) -> None:
        await super().sleep(delay_s)
        await asyncio.sleep(0)
        if self.n_sleeps == self._down_at:
            self._link.go_down()
        if self.n_sleeps == self._up_at:
            self._link.come_up()


async def test_a_lost_connection_pauses_the_traffic_which_then_continues() -> None:
    heard = Heard()
    async with heard.links(2) as links:
        clock = Interrupted(links[1], down_at=8, up_after=20)
        tally = await play(replay([i / 10 for i in range(40)]), links, clock=clock)
    assert (tally.n_sent, tally.n_refused, tally.n_pauses) == (40, 0, 1)
    assert not tally.paused
    steps_s = np.diff([payload["ts"] for payload in heard.payloads])
    assert np.count_nonzero(steps_s > 0.11) == 1
    assert steps_s.max() == pytest.approx(0.1 + 20 * MAX_NAP_S)
    assert tally.played_s == pytest.approx(3.9, abs=TICK_S)


async def test_a_stop_ends_the_traffic_while_playing_and_while_paused() -> None:
    class Stopping(VirtualClock):
        async def sleep(self, delay_s: float) -> None:
            await super().sleep(delay_s)
            if self.slept_s > 2:
                stop.set()

    for down in (False, True):
        heard, stop = Heard(), asyncio.Event()
        async with heard.links() as links:
            if down:
                links[0].go_down()
            tally = await play(replay([0, 1, 2], loop=True), links, clock=Stopping(), stop=stop)
        assert tally.n_sent == (0 if down else 3)
        assert tally.n_pauses == down
        if down:
            assert tally.rate_per_s == 0


def test_an_id_becomes_one_topic_level_and_different_ids_stay_different() -> None:
    assert topic_level("a/b+c#d%e\0") == "a%2Fb%2Bc%23d%25e%00"
    assert topic_level("Strassenbahn 7 Ä") == "Strassenbahn 7 Ä"
    assert topic_level("%2F") != topic_level("/")


async def test_the_system_clock_runs() -> None:
    clock = SystemClock()
    before = clock.now(), clock.monotonic()
    await clock.sleep(0.001)
    assert clock.now() >= before[0]
    assert clock.monotonic() > before[1]


@pytest.mark.data
async def test_the_taxis_of_san_francisco_all_arrive_in_ten_seconds_of_play() -> None:
    path = Path(os.environ["ANONYMIZER_DATA"]) / "traces/cabspotting_sf_2008-05-19_20.parquet"
    heard, clock = Heard(), VirtualClock()
    async with heard.links(2) as links:
        source = ReplaySource(read_trace(path), speed=3600.0, duration_s=10.0)
        tally = await play(source, links, clock=clock)
    assert source.n_total == tally.n_sent == len(heard.messages)
    assert tally.n_sent > 100_000
    assert tally.played_s == pytest.approx(10.0, abs=2 * TICK_S)
    assert len({message.topic for message in heard.messages}) == tally.n_devices
    stated = [json.loads(message.payload)["ts"] for message in heard.messages[::997]]
    assert max(stated) - min(stated) == pytest.approx(10.0, abs=0.5)
