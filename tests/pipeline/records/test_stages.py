"""The stages with an in-memory broker: when they acknowledge, wait, drain and fail."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from anonymizer.errors import StoreError
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import ONCE, Delivery, Outgoing
from anonymizer.pipeline.records.anonymize_window import Closing
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.flow import Due
from anonymizer.pipeline.records.inbox import Arrived, RecordInbox
from anonymizer.pipeline.records.stages import (
    StageContext,
    StageSignals,
    close_stage,
    intake_stage,
    publish_stage,
)
from anonymizer.transport import MemoryBroker, MemoryLink
from tests.app.gateway.records import assert_each_window_has_one_partition
from tests.pipeline.records.made import LENGTH_S, Sent, stream, traffic
from tests.pipeline.records.support import NOW, Rig

P = ParamSpec("P")
T = TypeVar("T")


class CallingThread:
    """Runs functions in the calling thread, and records their order."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __call__(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]:
        async def run() -> T:
            self.called.append(getattr(function, "__name__", ""))
            return function(*args, **kwargs)

        return run()


class World:
    """A broker, an analyst, and the records side of a gateway, in one process."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.largest_bytes = 10**6
        self.broker = MemoryBroker()
        self.inbox = RecordInbox(10_000, streams_of=rig.flow.streams_of)
        self.link = MemoryLink(
            self.broker,
            client_id="gateway",
            deliver=self.inbox.put,
            subscriptions=[("records/#", 1)],
            keeps_session=True,
        )
        self.seen: list[bytes] = []
        self.analyst = MemoryLink(
            self.broker,
            client_id="analyst",
            deliver=lambda batch: self.seen.extend(d.payload for d in batch),
            subscriptions=[("anonymized/#", 0)],
        )
        self.store_thread = CallingThread()
        self.signals = StageSignals()
        seconds = itertools.count()
        self.context = StageContext(
            flow=rig.flow,
            in_store=self.store_thread,
            in_worker=CallingThread(),
            wall=lambda: NOW,
            clock=lambda: next(seconds) / 1e6 + rig.clock_s,
        )
        self.closed: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for link in (self.link, self.analyst):
                group.create_task(link.run())
                await link.until_connected()
            self.tasks = [
                group.create_task(stage)
                for stage in (
                    intake_stage(self.context, self.inbox, self.link, self.signals),
                    close_stage(
                        self.context,
                        self.signals,
                        on_closed=lambda due, _: self.closed.append(due.window),
                    ),
                    publish_stage(
                        self.context,
                        self.link,
                        self.signals,
                        takes=lambda message: len(message.payload) <= self.largest_bytes,
                    ),
                )
            ]
            yield
            await self.drain()
            await self.link.close()
            await self.analyst.close()

    async def drain(self) -> None:
        await self.link.stop_receiving()
        self.inbox.close()
        self.signals.drain.set()
        self.signals.over.set()
        await asyncio.wait(self.tasks[:2])
        self.signals.last.set()
        self.signals.closed.set()
        await asyncio.wait(self.tasks)

    def send(self, parts: Sequence[Sent]) -> None:
        self.broker.take([Outgoing(p.topic, p.payload) for p in parts], qos=1)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  there is no event to wait for, nor a real delay
            await asyncio.sleep(0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(Rig(tmp_path))


async def test_parts_are_published_as_classes_and_accounted_for(world: World) -> None:
    async with world.running():
        world.send(list(traffic(n_vehicles=20, n_windows=3, seed=1)))
        await world.until(lambda: len(world.closed) == 2)
        await world.until(lambda: world.rig.accounts().get("published") == 120)
    classes = assert_each_window_has_one_partition(world.seen)
    assert sorted(classes) == [0.0, 60.0]
    assert world.rig.state.n_held == 60  # the last window is open and stays open
    world.rig.crash()
    assert world.rig.state.records.n_records == 20


async def test_no_message_is_acknowledged_before_it_is_stored(world: World) -> None:
    parts = list(traffic(n_vehicles=5, n_windows=1, seed=1))
    stored: list[int] = []
    acknowledge = world.link.acknowledge

    def watched(receipts: Sequence[int]) -> None:
        stored.append(len(world.rig.store.recall(
            "fleet", shape=world.rig.stream.shape, n_sources=3
        ).parts))  # fmt: skip
        acknowledge(receipts)

    world.link.acknowledge = watched  # type: ignore[method-assign, assignment]
    async with world.running():
        world.send(parts)
        await world.until(lambda: len(world.link.settled) == 15)
    assert stored == [15]


async def test_classes_wait_for_a_lost_broker_and_are_published_when_it_is_back(
    world: World,
) -> None:
    async with world.running():
        world.send(list(traffic(n_vehicles=20, n_windows=1, seed=1)))
        await world.until(lambda: len(world.link.settled) == 60)
        world.link.go_down()
        world.rig.clock_s += 1000.0
        await world.until(lambda: world.rig.state.n_waiting > 0)
        assert world.seen == []
        world.link.come_up()
        await world.until(lambda: world.rig.state.n_waiting == 0)
        await world.until(lambda: len(world.seen) == world.rig.state.stats.n_messages)
    assert world.rig.accounts() == {"received": 60, "published": 60}


async def one_window(world: World, *, start: float) -> None:
    """Let a window come in, and wait until all of it is published or suppressed."""
    async with world.running():
        world.send(list(traffic(n_vehicles=20, n_windows=1, seed=1, start=start)))
        await world.until(lambda: world.rig.state.n_held == 60)
        world.rig.clock_s += 1000.0
        await world.until(lambda: world.rig.state.n_held == 0)


async def test_classes_that_the_broker_will_never_take_are_suppressed_and_the_others_published(
    world: World,
) -> None:
    await one_window(world, start=0.0)
    sizes = sorted(map(len, world.seen))
    narrow = World(world.rig)
    narrow.largest_bytes = sizes[len(sizes) // 2]
    await one_window(narrow, start=6000.0)
    accounts = world.rig.accounts()
    assert accounts["suppressed/undelivered"] > 0
    assert accounts["published"] > 60
    assert accounts["published"] + accounts["suppressed/undelivered"] == accounts["received"] == 120
    world.rig.crash()
    assert world.rig.flow.waiting(limit=10**6) == []
    assert world.rig.accounts() == accounts


async def test_a_drain_without_a_broker_leaves_waiting_classes_in_the_store(world: World) -> None:
    async with world.running():
        world.send(list(traffic(n_vehicles=20, n_windows=1, seed=1)))
        await world.until(lambda: len(world.link.settled) == 60)
        world.link.go_down()
        world.rig.clock_s += 1000.0
        await world.until(lambda: len(world.closed) == 1)
    world.rig.crash()
    assert world.rig.state.n_held == 60
    assert sum(m["count"] for m in world.rig.classes()) == 20


async def test_a_backlog_is_received_no_faster_than_windows_are_closed(world: World) -> None:
    parts = list(traffic(n_vehicles=350, n_windows=15, seed=1))
    async with world.running():
        world.send(parts)
        await world.until(lambda: len(world.link.settled) == len(parts))
        await world.until(lambda: len(world.closed) == 14)
    accounts = world.rig.accounts()
    assert accounts["received"] == len(parts)
    assert set(accounts) <= {"received", "published", "suppressed/no_class"}
    called = [name for name in world.store_thread.called if name in {"take", "due"}]
    takes = [i for i, name in enumerate(called) if name == "take"]
    assert len(takes) >= 4
    assert all("due" in called[a:b] for a, b in itertools.pairwise(takes))


@dataclass
class Search:
    """Takes the place of `flow.anonymize`: notes the share of its time that a search has left."""

    rig: Rig
    meanwhile: Sequence[Sent] = ()
    """Parts that are stored during the first search."""
    left: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._anonymize = self.rig.flow.anonymize

    def __call__(
        self,
        due: Due,
        memories: Mapping[bytes, bytes],
        *,
        time_left: Callable[[], float],
        clock: Callable[[], float],
    ) -> Closing:
        if self.meanwhile:
            self.rig.take(*self.meanwhile)
            self.meanwhile = ()
        self.left.append(time_left())
        return self._anonymize(due, memories, time_left=lambda: 0.0, clock=clock)


async def searched(search: Search, parts: Iterable[Sent], *, n_windows: int) -> list[bool]:
    """Return which searches had time left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search.rig.flow, "anonymize", search)
        world = World(search.rig)
        async with world.running():
            world.send(list(parts))
            await world.until(lambda: len(world.closed) == n_windows)
        search.rig.store.close()
    return [share > 0 for share in search.left]


@pytest.mark.parametrize(("method", "searches"), [("auto", False), ("best", True)])
async def test_auto_ends_its_search_when_the_next_window_is_due(
    *, method: str, searches: bool, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, method=method, cumulative="report")
    backlog = traffic(n_vehicles=9, n_windows=5, seed=1)
    assert await searched(Search(rig), backlog, n_windows=4) == [searches] * 3 + [True]


@pytest.mark.parametrize(("method", "searches"), [("auto", False), ("best", True)])
async def test_auto_ends_its_search_when_the_next_window_becomes_due(
    *, method: str, searches: bool, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, method=method, cumulative="report")
    later = list(traffic(n_vehicles=9, n_windows=1, seed=1, start=2 * LENGTH_S))
    search = Search(rig, meanwhile=later)
    first = traffic(n_vehicles=9, n_windows=2, seed=1)
    assert await searched(search, first, n_windows=2) == [searches, True]


def streams(n: int, *, method: str = "hilbert") -> list[Stream]:
    """Streams of one attribute, each with a topic of its own."""
    return [
        stream(
            name=f"s{i}",
            sources=[{"name": "age", "topic": f"of/{i}/{{vehicle}}", "tells": ["age"]}],
            attributes=[{"name": "age", "lo": 18, "hi": 90}],
            promise={"k": 2},
            method=method,
        )
        for i in range(n)
    ]


def of_streams(n: int, *, window: int = 0) -> list[Delivery]:
    """Records of four vehicles in a window of each, and of one in the next, which closes it."""
    start = window * LENGTH_S
    return [
        Delivery(f"of/{i}/{v}", json.dumps({"ts": ts, "age": 20 + v}).encode(), 0)
        for ts, vehicles in ((start + 1, [0, 1, 2, 3]), (start + LENGTH_S + 5, [9]))
        for i in range(n)
        for v in vehicles
    ]


async def test_windows_of_many_streams_that_are_due_at_once_are_stored_together(
    tmp_path: Path,
) -> None:
    world = World(Rig(tmp_path, others=streams(50)))
    world.inbox.put(of_streams(50))
    async with world.running():
        await world.until(lambda: len(world.closed) == 50)
        await world.until(lambda: len(world.seen) == 100)
    assert world.store_thread.called.count("close_all") <= 12
    world.rig.crash()
    accounts = world.rig.store.accounts()
    assert [accounts[f"s{i}"] for i in range(50)] == [{"received": 5, "published": 4}] * 50


def test_of_windows_that_are_stored_together_all_are_or_none(tmp_path: Path) -> None:
    rig = Rig(tmp_path, others=streams(2))
    rig.take_raw(of_streams(2))
    closed = [
        (due, rig.flow.anonymize(due, {}, time_left=lambda: 0.0, clock=lambda: 0.0))
        for due in rig.flow.due(at_s=0.0)
    ]
    (_, whole), (last, halved) = closed
    with pytest.raises(ValueError, match="shorter"):
        rig.flow.close_all(
            [closed[0], (last, replace(halved, n_parts=halved.n_parts[1:]))], now=NOW
        )
    rig.crash()
    assert rig.flow.waiting(limit=9) == []
    assert len(whole.messages) == len(halved.messages) == 2
    assert [state.n_held for state in rig.flow.states[1:]] == [5, 5]


async def test_a_window_begins_from_what_is_stored_of_the_one_before_however_many_are_due(
    tmp_path: Path,
) -> None:
    world = World(Rig(tmp_path, others=streams(2)))
    world.inbox.put([each for w in range(30) for each in of_streams(2, window=w)])
    async with world.running():
        await world.until(lambda: len(world.closed) == 60)
        await world.until(lambda: len(world.seen) == 120)
    seen = [json.loads(payload) for payload in world.seen]
    for i in range(2):
        numbers = [each["message"] for each in seen if each["stream"] == f"s{i}"]
        assert sorted(numbers) == list(range(1, 61))


@pytest.mark.parametrize("method", ["auto", "best"])
async def test_windows_that_are_due_at_once_share_the_time_to_search(
    method: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, others=streams(300, method=method))
    rig.take_raw(of_streams(300))
    searches = await searched(Search(rig), (), n_windows=300)
    assert all(searches[200:]), "what the first ones leave is for the others"
    assert any(searches[:150]) is all(searches[:150]) is (method == "best")


class Slow(Search):
    """Searches for as long as there is time, by the clock of the rig."""

    def __call__(
        self,
        due: Due,
        memories: Mapping[bytes, bytes],
        *,
        time_left: Callable[[], float],
        clock: Callable[[], float],
    ) -> Closing:
        while time_left() > 0:
            self.rig.clock_s += 0.05
        return super().__call__(due, memories, time_left=time_left, clock=clock)


async def test_ten_windows_that_are_due_at_once_take_no_longer_than_one(tmp_path: Path) -> None:
    rig = Rig(tmp_path, others=streams(10, method="auto"))
    rig.take_raw(of_streams(10))
    await searched(Slow(rig), (), n_windows=10)
    assert 2.0 < rig.clock_s < 3.0


class Drained(Search):
    """The drain begins in the first search."""

    world: World

    def __call__(self, *args: Any, **kwargs: Any) -> Closing:  # noqa: ANN401
        self.world.signals.drain.set()
        return super().__call__(*args, **kwargs)


async def test_windows_that_no_search_was_begun_for_stay_open_over_a_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path, others=streams(20))
    rig.take_raw(of_streams(20))
    search = Drained(rig)
    search.world = World(rig)
    monkeypatch.setattr(rig.flow, "anonymize", search)
    async with search.world.running():
        await search.world.signals.drain.wait()
    assert 0 < len(search.world.closed) <= 2


async def send_to_a_broken_store(world: World) -> None:
    async with world.running():
        world.rig.store._db.execute("DROP TABLE accounts")
        world.send(list(traffic(n_vehicles=2, n_windows=1, seed=1)))
        await asyncio.Event().wait()


async def test_a_store_that_fails_ends_the_flow_and_nothing_is_acknowledged(world: World) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await send_to_a_broken_store(world)
    assert caught.group_contains(StoreError, match="cannot be used")
    assert world.link.settled == []


def all_of(arrived: Arrived | None) -> list[Delivery]:
    assert arrived is not None
    return [delivery for batch in arrived.batches for delivery in batch]


def arrive(n: int, *, qos: int) -> list[Delivery]:
    return [Delivery("records/profile/v", b"{}", (i + 1) * qos) for i in range(n)]


async def test_a_full_inbox_refuses_the_newest_at_qos_0_and_none_at_qos_1() -> None:
    inbox = RecordInbox(5, streams_of=lambda _: [3])
    inbox.put(arrive(4, qos=0))
    inbox.put(arrive(3, qos=0))
    inbox.put(arrive(2, qos=1))
    assert inbox.n_waiting == 9
    arrived = await inbox.take()
    assert arrived is not None
    assert [d.receipt for d in all_of(arrived)] == [0] * 5 + [1, 2]
    assert arrived.refused == {3: 2}


async def test_a_backlog_at_qos_1_stays_packed_and_counts_towards_the_limit() -> None:
    inbox = RecordInbox(5, streams_of=lambda _: [3])
    backlog = PackedDeliveries.of(arrive(9, qos=1))
    inbox.put(backlog)
    inbox.put(backlog)
    inbox.put(PackedDeliveries.of(arrive(1, qos=0)))
    arrived = await inbox.take()
    assert arrived is not None
    assert all(batch is backlog for batch in arrived.batches)
    assert (len(arrived.batches), arrived.refused) == (2, {3: 1})


async def test_one_vehicle_cannot_fill_the_inbox_for_the_others() -> None:
    inbox = RecordInbox(1000, streams_of=lambda _: [0])
    inbox.put(arrive(5000, qos=0))
    others = [Delivery(f"records/profile/{i % 50}", b"{}", 0) for i in range(500)]
    inbox.put(others)
    inbox.put(arrive(5000, qos=0))
    arrived = await inbox.take()
    assert arrived is not None
    assert all_of(arrived)[1000:] == others
    assert arrived.refused == {0: 9000}
    inbox.put(arrive(1, qos=0))
    assert inbox.n_waiting == 1


async def test_an_inbox_is_bounded_however_many_vehicles_send() -> None:
    inbox = RecordInbox(100, streams_of=lambda _: [0])
    inbox.put([Delivery(f"records/profile/{i}", b"{}", 0) for i in range(1000)])
    arrived = await inbox.take()
    assert arrived is not None
    assert (len(all_of(arrived)), arrived.refused) == (200, {0: 800})


async def test_an_inbox_is_bounded_in_bytes_and_giant_messages_do_not_crowd_others_out() -> None:
    inbox = RecordInbox(1_000, streams_of=lambda _: [0], max_bytes=1_000_000)
    inbox.put([Delivery("records/profile/giant", bytes(60_000), 0)] * 500)
    n_giant = inbox._n_bytes // 60_000
    assert n_giant == 16
    inbox.put([Delivery(f"records/profile/{i}", b"{}", 0) for i in range(100)])
    inbox.put([Delivery("records/profile/giant", bytes(60_000), 1)])
    arrived = await inbox.take()
    assert arrived is not None
    assert len(all_of(arrived)) == n_giant + 100 + 1
    assert arrived.refused == {0: 500 - n_giant}
    assert inbox._n_bytes == 0


async def test_what_the_broker_sends_again_does_not_wait_twice() -> None:
    inbox = RecordInbox(100, streams_of=lambda _: [0])
    for _ in range(50):
        inbox.put(arrive(3, qos=0) + arrive(2, qos=1))
        inbox.set_aside()
        inbox.reconnected(resumed=True)
        assert inbox._aside == []
        arrived = await inbox.take()
        assert arrived is not None
        assert all_of(arrived) == arrive(3, qos=0)
    assert inbox._n_bytes == inbox.n_waiting == 0


@pytest.mark.parametrize("is_packed", [False, True])
async def test_what_comes_once_is_not_set_aside(*, is_packed: bool) -> None:
    inbox = RecordInbox(100, streams_of=lambda _: [0])
    batch = [Delivery("t", b"%d" % i, receipt) for i, receipt in enumerate([0, 7, ONCE + 8])]
    inbox.put(PackedDeliveries.of(batch) if is_packed else batch)
    inbox.set_aside()
    inbox.reconnected(resumed=True)
    arrived = await inbox.take()
    assert arrived is not None
    assert [delivery.payload for delivery in all_of(arrived)] == [b"0", b"2"]


async def test_what_the_broker_has_forgotten_is_kept_over_failed_attempts_to_connect() -> None:
    inbox = RecordInbox(100, streams_of=lambda _: [0])
    inbox.put(arrive(2, qos=1))
    inbox.set_aside()
    inbox.put(arrive(9, qos=1))  # on a connection that is not of use
    inbox.set_aside()
    inbox.set_aside()
    assert inbox.n_waiting == 0
    inbox.reconnected(resumed=False)
    arrived = await inbox.take()
    assert arrived is not None
    assert all_of(arrived) == arrive(2, qos=1)
    assert inbox._n_bytes == 0


async def test_an_inbox_returns_batches_and_ends_when_it_is_closed_and_empty() -> None:
    inbox = RecordInbox(100_000, streams_of=lambda _: [0])
    inbox.put(arrive(12_000, qos=1))
    inbox.close()
    sizes = []
    while (arrived := await inbox.take()) is not None:
        sizes.append(len(all_of(arrived)))
    assert sizes == [5000, 5000, 2000]
