"""The three ends of the stages: drain, cancel, failure."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence

import pytest

from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import TransportError
from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ports import Delivery, Link, Outgoing
from anonymizer.pipeline.positions.tick.stages import (
    QUEUED_TICKS,
    Ticks,
    abandon,
    publish_stage,
    tick_stage,
)
from anonymizer.transport.memory import MemoryBroker, MemoryLink
from tests.end_to_end import eventually
from tests.pipeline.positions.support import NOW, Rig, delivery

DEADLINE_S = 10.0


class SlowLink:
    """A link whose broker answers when the test says so.

    `answer` lets every publication end; `asked` is set by the first.
    """

    connected = True

    def __init__(self, *, refuses: Exception | None = None) -> None:
        self.asked = asyncio.Event()
        self.answer = asyncio.Event()
        self.acknowledged: list[int] = []
        self.published: list[Outgoing] = []
        self._refuses = refuses

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        assert (qos, timeout_s) == (1, DEADLINE_S)
        self.asked.set()
        await self.answer.wait()
        if self._refuses is not None:
            raise self._refuses
        self.published += messages
        return [True] * len(messages)

    def acknowledge(self, receipts: Iterable[int]) -> None:
        self.acknowledged += receipts

    async def stop_receiving(self) -> None:
        raise AssertionError("no stage ends a link: its owner does")

    async def close(self) -> None:
        raise AssertionError("no stage ends a link: its owner does")


class Stages:
    """Both stages over one rig.

    With `busy`, a pair of positions comes in during each of the first ticks. With a publisher
    that waits there is one wherever one can be when `stuck` is set: in the hands of either
    stage, in each place of the queue and in the inbox.
    """

    def __init__(
        self,
        link: Link,
        rig: Rig,
        *,
        interval_s: float = 0.001,
        late_s: float = DEADLINE_S,
        busy: bool = False,
        collect: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.rig = rig
        self.stop = asyncio.Event()
        self.stuck = asyncio.Event()
        self._busy = False
        self._n_ticks = 0
        self.lateness: list[bool] = []
        self.clock = SteadyClock(wall=self._wall, monotonic=lambda: 0.0)
        self._busy = busy
        self.ticks: Ticks = asyncio.Queue(QUEUED_TICKS)
        self.ticking = tick_stage(
            rig.flow,
            rig.inbox,
            self.ticks,
            interval_s=interval_s,
            late_s=late_s,
            stop=self.stop,
            clock=self.clock,
            acknowledge=link.acknowledge,
            collect=collect,
            on_late=self.lateness.append,
        )
        self.publishing = publish_stage(rig.flow, self.ticks, link, qos=1, timeout_s=DEADLINE_S)

    def start(self, group: asyncio.TaskGroup) -> list["asyncio.Task[None]"]:
        return [group.create_task(self.ticking), group.create_task(self.publishing)]

    async def until(self, condition: Callable[[], bool]) -> None:
        async def look() -> bool:
            return condition()

        await eventually(look, bool)

    def _wall(self) -> float:
        if self._busy and not self.stuck.is_set():
            self._n_ticks += 1
            self.rig.inbox.put(pair(self._n_ticks), at_s=0.0)
            if self._n_ticks == QUEUED_TICKS + 2:
                self.stuck.set()
        return NOW


def pair(i: int) -> tuple[Delivery, Delivery]:
    """Return the positions of two devices that hide each other, each with a receipt."""
    first, second = 2 * i + 1, 2 * i + 2
    return (
        delivery(f"a{i}", i % 25, NOW, receipt=first),
        delivery(f"b{i}", i % 25, NOW, receipt=second),
    )


async def test_raw_positions_come_in_and_regions_go_out_through_a_broker() -> None:
    broker, rig = MemoryBroker(), Rig()
    heard: asyncio.Queue[Delivery] = asyncio.Queue()

    def listen(batch: Sequence[Delivery]) -> None:
        for message in batch:
            heard.put_nowait(message)

    gateway = MemoryLink(
        broker,
        client_id="gateway",
        subscriptions=[("positions/+", 1)],
        deliver=lambda batch: rig.put(*batch),
    )
    analyst = MemoryLink(
        broker, client_id="analyst", subscriptions=[("cloaked/#", 1)], deliver=listen
    )
    stages = Stages(gateway, rig)
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        links = [group.create_task(link.run()) for link in (gateway, analyst)]
        await asyncio.gather(gateway.until_connected(), analyst.until_connected())
        stages_running = stages.start(group)
        raw = [Outgoing(d.topic, d.payload) for d in pair(3)]
        broker.take(raw, qos=1)
        message = json.loads((await heard.get()).payload)
        assert message["region"] == [3]
        stages.stop.set()
        await asyncio.wait(stages_running)
        await asyncio.gather(gateway.close(), analyst.close(), *links)
    assert {d.topic for d in gateway.settled} == {"positions/a3", "positions/b3"}
    assert rig.outcomes() == {"PUBLISHED": 2}
    rig.check()


async def test_what_a_link_has_not_read_yet_is_in_the_tick_that_collects_it() -> None:
    rig, link = Rig(), SlowLink()

    async def collect() -> None:
        rig.put(*pair(3))

    stages = Stages(link, rig, collect=collect)
    stages.stop.set()
    link.answer.set()
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        stages.start(group)
    assert rig.outcomes() == {"PUBLISHED": 2}
    assert sorted(link.acknowledged) == [7, 8]


async def test_drain_publishes_and_acknowledges_all_that_is_queued() -> None:
    link, rig = SlowLink(), Rig()
    stages = Stages(link, rig, busy=True)
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        rig.put(*pair(0))
        stages.start(group)
        await stages.stuck.wait()
        stages.stop.set()
        link.answer.set()
    n = 2 * (QUEUED_TICKS + 3)
    assert rig.outcomes() == {"PUBLISHED": n}
    assert sorted(link.acknowledged) == list(range(1, n + 1))
    assert rig.inbox.n_waiting == rig.flow.n_held == 0
    assert stages.ticks.empty()


async def test_told_to_stop_before_they_start_the_stages_still_finish_what_waits() -> None:
    link, rig = SlowLink(), Rig()
    link.answer.set()
    stages = Stages(link, rig, interval_s=1000.0)
    rig.put(*pair(0))
    stages.stop.set()
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        stages.start(group)
    assert rig.outcomes() == {"PUBLISHED": 2}


async def test_a_cancelled_flow_settles_everything_as_undelivered_and_acknowledges_nothing() -> (
    None
):
    link, rig = SlowLink(), Rig()
    stages = Stages(link, rig, busy=True)
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        rig.put(*pair(0))
        tasks = stages.start(group)
        await stages.stuck.wait()
        await link.asked.wait()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    rig.check()
    abandon(rig.flow, rig.inbox, stages.ticks, stages.clock)
    rig.check()
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 2 * (QUEUED_TICKS + 3)}
    assert rig.flow.n_held == rig.inbox.n_waiting == 0
    assert not link.acknowledged
    assert not link.published


async def test_abandoning_a_closed_queue_finds_nothing_behind_its_end() -> None:
    rig = Rig()
    ticks: Ticks = asyncio.Queue(QUEUED_TICKS)
    rig.put(*pair(0))
    ticks.put_nowait(rig.tick())
    ticks.put_nowait(None)
    abandon(rig.flow, rig.inbox, ticks, SteadyClock(wall=lambda: NOW, monotonic=lambda: 0.0))
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 2}
    assert ticks.empty()


async def test_a_link_that_fails_ends_both_stages_through_their_group() -> None:
    link, rig = SlowLink(refuses=TransportError("gone")), Rig()
    link.answer.set()
    stages = Stages(link, rig)
    rig.put(*pair(0))
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
            stages.start(group)
    assert caught.group_contains(TransportError)
    rig.check()
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 2}
    assert link.acknowledged == []


async def test_a_tick_that_fails_ends_the_publisher_too() -> None:
    stages = Stages(SlowLink(), Rig())
    stages.rig.inbox.put([Delivery("positions/a", [1], 0)], at_s=0.0)  # type: ignore[arg-type]
    tasks: list[asyncio.Task[None]] = []

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
            tasks.extend(stages.start(group))

    with pytest.raises(ExceptionGroup) as caught:
        await run()
    assert caught.group_contains(TypeError)
    assert tasks[1].cancelled()


class ScriptedLink(SlowLink):
    """A link that answers with one script after the other, and is down where there is None."""

    def __init__(self, *scripts: Sequence[bool | None] | None) -> None:
        super().__init__()
        self._scripts = list(scripts)

    @property
    def connected(self) -> bool:  # type: ignore[override]
        if self._scripts and self._scripts[0] is None:
            self._scripts.pop(0)
            return False
        return True

    async def publish(
        self, messages: Sequence[Outgoing], *, qos: int, timeout_s: float
    ) -> Sequence[bool | None]:
        assert (qos, timeout_s) == (1, DEADLINE_S)
        self.published += messages
        script = self._scripts.pop(0) if self._scripts else None
        return [True] * len(messages) if script is None else script


async def publish_pairs(link: ScriptedLink, n: int) -> tuple[Rig, list[list[Outgoing]]]:
    """Publish the outputs of so many ticks with two messages each; return these."""
    rig = Rig(output={"forms": ["device"], "qos": 1})
    ticks: Ticks = asyncio.Queue()
    sent = []
    for i in range(n):
        rig.put(*pair(i))
        output = rig.tick()
        sent.append(output.messages)
        ticks.put_nowait(output)
    ticks.put_nowait(None)
    async with asyncio.timeout(DEADLINE_S):
        await publish_stage(rig.flow, ticks, link, qos=1, timeout_s=DEADLINE_S, whole=True)
    rig.check()
    assert rig.flow.n_held == 0
    return rig, sent


async def test_the_rest_of_an_interrupted_output_goes_out_before_anything_newer() -> None:
    link = ScriptedLink([True, None], None, [None])
    rig, (first, _, _, last) = await publish_pairs(link, 4)
    # The second output finds no connection, the third a broker that is lost again at once.
    assert link.published == [*first, first[1], first[1], *last]
    assert rig.outcomes() == {"PUBLISHED": 4, "SUPPRESSED__UNDELIVERED": 4}
    assert link.acknowledged == [3, 4, 5, 6, 1, 2, 7, 8]


async def test_a_drain_finishes_the_output_that_was_interrupted() -> None:
    link = ScriptedLink([None, True], None, [None])
    rig, [only] = await publish_pairs(link, 1)
    assert link.published == [*only, only[0], only[0]]
    assert rig.outcomes() == {"PUBLISHED": 2}


async def test_what_the_broker_refused_is_not_sent_again() -> None:
    link = ScriptedLink([False, False], [None, False], [False])
    rig, (first, second) = await publish_pairs(link, 2)
    assert link.published == [*first, *second, second[0]]
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 4}


async def test_a_cancelled_publisher_counts_what_the_broker_has_of_an_interrupted_output() -> None:
    link = ScriptedLink([True, None], *[None] * 1000)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await publish_pairs(link, 1)
    assert link.acknowledged == []


async def test_while_a_tick_is_late_the_newest_position_of_each_device_wins() -> None:
    link, rig = SlowLink(), Rig()
    stages = Stages(link, rig, late_s=0.001)

    def arrive(*deliveries: Delivery) -> None:
        link.acknowledge(rig.inbox.put(deliveries, at_s=0.0))
        rig.check()

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        arrive(*pair(0))
        stages.start(group)
        await link.asked.wait()
        # The publisher is slow, the queue fills up, and the next tick cannot begin.
        await stages.until(stages.ticks.full)
        arrive(*pair(1))
        await stages.until(lambda: rig.inbox.is_overloaded)
        for receipt in range(100, 200):
            arrive(delivery("a1", 24, NOW, receipt=receipt))
        assert set(range(100, 200)) <= set(link.acknowledged)
        stages.stop.set()
        link.answer.set()
    rig.check()
    assert rig.flow.n_held == rig.inbox.n_waiting == 0
    assert rig.ledger.n(Outcome.SUPPRESSED__OVERLOAD) >= 99
    assert {1, 2, 3, 4} <= set(link.acknowledged)


async def test_ticks_that_are_late_are_counted_and_reported_once_until_they_are_on_time() -> None:
    link, rig = SlowLink(), Rig()
    stages = Stages(link, rig, late_s=0.05)
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        rig.put(*pair(0))
        stages.start(group)
        await link.asked.wait()
        # The publisher is slow, the queue fills up, and the next tick cannot begin.
        await stages.until(lambda: rig.flow.stats.n_late_ticks == 1)
        assert stages.lateness == [True]
        n_ticks = rig.flow.stats.n_ticks
        link.answer.set()
        await stages.until(lambda: rig.flow.stats.n_ticks > n_ticks + 1)
        assert stages.lateness == [True]
        await stages.until(lambda: len(stages.lateness) > 1)
        stages.stop.set()
    assert stages.lateness[:2] == [True, False]
    assert rig.flow.stats.n_ticks > n_ticks + 99


class Gate:
    """A clock that stops a tick in its thread until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> float:
        if threading.current_thread() is not threading.main_thread():
            self.reached.set()
            assert self.open.wait(DEADLINE_S)
        return 0.0


async def test_the_loop_runs_while_a_tick_does() -> None:
    """A tick blocks no other task: the broker gets its pings, and HTTP its answers."""
    gate = Gate()
    link, rig = SlowLink(), Rig(monotonic=gate)
    link.answer.set()
    stages = Stages(link, rig)
    rig.put(*pair(0))
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        stages.start(group)
        await asyncio.to_thread(gate.reached.wait)
        rig.check()
        assert (rig.inbox.n_waiting, rig.flow.n_held) == (0, 2)
        rig.put(*pair(1))
        assert rig.flow.view.n_devices == 0
        stages.stop.set()
        gate.open.set()
    assert rig.outcomes() == {"PUBLISHED": 4}
    assert rig.flow.view.n_devices == 4


async def test_a_tick_that_is_cancelled_is_still_accounted_for() -> None:
    gate = Gate()
    link, rig = SlowLink(), Rig(monotonic=gate)
    stages = Stages(link, rig)
    rig.put(*pair(0))
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        tasks = stages.start(group)
        await asyncio.to_thread(gate.reached.wait)
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
        assert not tasks[0].done()
        gate.open.set()
        await asyncio.wait(tasks)
    rig.check()
    abandon(rig.flow, rig.inbox, stages.ticks, stages.clock)
    assert rig.outcomes() == {"SUPPRESSED__UNDELIVERED": 2}
