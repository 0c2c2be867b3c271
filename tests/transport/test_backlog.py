"""The age of a broker's backlog, measured by probes."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest

from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.settings.base import Qos
from anonymizer.transport import MemoryBroker, MemoryLink
from anonymizer.transport.backlog import Backlog
from tests.end_to_end import DEADLINE_S
from tests.transport.support import running

TOPIC = "anonymizer/probe"


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def backlog(clock: Clock, *, qos: Sequence[Qos] = (0,), kept_s: int = 0) -> Backlog:
    settings = BrokerSettings(session_expiry_s=kept_s, max_backlog_s=10)
    link = MemoryLink(MemoryBroker(), client_id="probes", deliver=lambda _: None)
    return Backlog(settings, topic=TOPIC, link=link, qos=qos, monotonic=clock)


def delivery(probe: Outgoing, receipt: int = 0) -> Delivery:
    return Delivery(probe.topic, probe.payload, receipt)


def others(n: int, *, first: int = 1) -> list[Delivery]:
    return [Delivery(f"positions/{i}", b"{}", first + i) for i in range(n)]


def test_what_comes_after_a_probe_is_no_older_than_the_probe() -> None:
    clock = Clock()
    measured = backlog(clock)
    measured.note_state(connected=True)
    first = measured._probe(0)
    clock.now_s += 8
    second = measured._probe(0)
    clock.now_s += 2
    assert (measured.age_s, measured.is_too_old) == (10, False)
    clock.now_s += 2
    assert (measured.age_s, measured.is_too_old) == (12, True)
    measured.without_probes([delivery(first)])
    assert measured.age_s == 12
    measured.without_probes([delivery(second)])
    assert measured.age_s == 4
    assert not measured.is_too_old


def test_without_a_probe_what_arrives_is_as_old_as_the_connection_at_most() -> None:
    clock = Clock()
    measured = backlog(clock)
    assert measured.age_s == -inf
    clock.now_s += 100
    measured.note_state(connected=True)
    clock.now_s += 11
    assert measured.is_too_old
    measured.note_state(connected=False)
    clock.now_s += 100
    assert not measured.is_too_old


def test_a_kept_session_is_as_old_as_the_last_probe_before_it_was_left() -> None:
    clock = Clock()
    measured = backlog(clock, kept_s=60)
    measured.note_state(connected=True)
    assert measured.age_s == inf
    measured.without_probes([delivery(measured._probe(0))])
    measured.note_state(connected=False)
    clock.now_s += 30
    measured.note_state(connected=True)
    assert measured.age_s == 30


def test_the_slower_of_two_queues_counts() -> None:
    clock = Clock()
    measured = backlog(clock, qos=(0, 1))
    measured.note_state(connected=True)
    clock.now_s += 5
    quick, slow = measured._probe(0), measured._probe(1)
    clock.now_s += 20
    measured.without_probes([delivery(quick)])
    assert measured.age_s == 25
    measured.without_probes([delivery(slow)])
    assert measured.age_s == 20


@pytest.mark.parametrize("packed", [True, False])
def test_probes_are_taken_out_of_a_batch_and_nothing_else_is(*, packed: bool) -> None:
    clock = Clock()
    measured = backlog(clock)
    probes = [delivery(measured._probe(0), receipt=90 + i) for i in range(2)]
    batch: Sequence[Delivery] = [*others(3), probes[0], *others(2, first=10), probes[1]]
    rest, receipts = measured.without_probes(PackedDeliveries.of(batch) if packed else batch)
    assert list(rest) == [*others(3), *others(2, first=10)]
    assert receipts == [90, 91]
    again, _ = measured.without_probes(batch)  # none is awaited any more
    assert list(again) == list(rest)


def test_a_probe_in_the_bytes_beside_a_batch_is_no_part_of_it() -> None:
    measured = backlog(Clock())
    probe = delivery(measured._probe(0))
    own = [*others(1), Delivery(TOPIC, b"of somebody", 0)]
    packed = PackedDeliveries.of([*own, probe])
    first = PackedDeliveries(packed.stream, packed.only(np.array([0, 1])).columns)
    assert measured.without_probes(first) == (first, [])
    rest, receipts = measured.without_probes(packed)
    assert (list(rest), receipts) == (own, [])  # at QoS 0 there is no receipt


def test_nobody_else_can_make_a_probe() -> None:
    clock = Clock()
    measured, other = backlog(clock), backlog(clock)
    measured.note_state(connected=True)
    measured._probe(0)
    clock.now_s += 11
    replayed = Delivery("positions/a", b'{"lat":1,"lon":2} ' + measured._probe(0).payload, 0)
    forged = [delivery(other._probe(0)), Delivery(TOPIC, b"0" * 32 + b" 0", 0), replayed]
    assert list(measured.without_probes(forged)[0]) == forged[1:]
    assert measured.is_too_old


def test_probes_that_the_broker_drops_take_no_memory() -> None:
    measured = backlog(Clock())
    for _ in range(3000):
        last = measured._probe(0)
    assert len(measured._awaited) <= 1000
    measured.without_probes([delivery(last)])
    assert not measured._awaited


async def test_probes_come_back_over_the_connection_of_the_input() -> None:
    broker = MemoryBroker()
    returned = asyncio.Event()

    def deliver(batch: Sequence[Delivery]) -> None:
        rest, receipts = measured.without_probes(batch)
        assert not rest
        link.acknowledge(receipts)
        if measured.n_returned >= 4:
            returned.set()

    link = MemoryLink(broker, client_id="gateway", deliver=deliver, subscriptions=[(TOPIC, 1)])
    measured = Backlog(
        BrokerSettings(max_backlog_s=0.1),
        topic=TOPIC,
        link=link,
        qos=(0, 1),
        monotonic=time.monotonic,
    )
    async with running(link):
        measured.note_state(connected=True)
        probing = asyncio.create_task(measured.run(), name="probes")
        async with asyncio.timeout(DEADLINE_S):
            await returned.wait()
        probing.cancel()


def test_what_is_wrong_depends_on_whether_any_probe_ever_came_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = backlog(Clock())
    assert measured.problem.startswith("broker: not connected for probes")
    monkeypatch.setattr(MemoryLink, "connected", True)
    assert "may the gateway use anonymizer/probe?" in measured.problem
    measured.without_probes([delivery(measured._probe(0))])
    assert measured.problem == "broker: positions have waited there for more than 10 s"
