"""What is prepared before the end of a tick changes nothing but the work that is left."""

import asyncio
import json
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.positions.tick.stages import Ticks, abandon, tick_stage
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, delivery

TABLES: dict[str, Any] = {
    "inputs": [
        {"topic": "positions/{device}"},
        {"topic": "feed", "device_from": "payload"},
        {"topic": "fixed/{device}", "kind": "public"},
    ],
    "readings": [{"name": "speed_mps", "lo": 0, "hi": 60}],
}
READINGS: list[dict[str, object]] = [{}, {"speed_mps": 3}, {"heading_deg": 90, "speed_mps": 9}]


def message(kind: int, device: int, node: int, ts: float | None, readings: int) -> Delivery:
    """Return a message: usual, left to the codec, of many devices, of a fixed one, or hostile."""
    body = a_position(node, ts, readings=READINGS[readings])
    if kind == 0:
        return Delivery(f"positions/{device}", json.dumps(body).encode(), 0)
    if kind == 1:
        text = json.dumps(body | {"note": "\u00e4"})
        return Delivery(f"positions/\N{SNOWMAN}{device}", text.encode(), 0)
    if kind == 2:
        named = [body | {"device": f"d{device}"}, body | {"device": f"\u00e4{device}"}]
        return Delivery("feed", json.dumps(named).encode(), 7)
    if kind == 3:
        return Delivery(f"fixed/{device}", json.dumps(body).encode(), 0)
    return Delivery(f"positions/{device}", b"{", 0)


messages = st.builds(
    message,
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, NETWORK.n_nodes - 1),
    st.none() | st.sampled_from([NOW - 2, NOW - 1, NOW, NOW - 1e6]),
    st.integers(0, len(READINGS) - 1),
)


@settings(max_examples=12)
@given(
    st.lists(st.lists(messages, max_size=8), min_size=1, max_size=3),
    st.lists(st.integers(0, 8), max_size=2),
    st.booleans(),
)
def test_a_tick_in_parts_releases_what_the_whole_tick_does(
    ticks: list[list[Delivery]],
    cuts: list[int],
    trips: bool,  # noqa: FBT001  drawn by hypothesis
) -> None:
    tables = TABLES
    if trips:  # which publish no readings
        times = {"ends_s": 1, "delay_s": 2, "gap_s": 3}
        tables = {"inputs": TABLES["inputs"], "trips": {"enabled": True, **times}}
    whole, parts = Rig(**tables), Rig(**tables)
    for number, arriving in enumerate(ticks):
        whole.put(*arriving)
        expected = whole.tick(now=NOW + number, wall_ahead_s=0.5)
        for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True):
            parts.put(*arriving[start:stop])
            if stop is not None:
                batches = parts.inbox.take()
                parts.flow.take(batches)
                parts.check()
                parts.flow.prepare(batches)
                parts.check()
        found = parts.tick(now=NOW + number, wall_ahead_s=0.5)
        assert found.messages == expected.messages
        assert found.receipts == expected.receipts
        assert found.n_direct == expected.n_direct
        np.testing.assert_array_equal(found.message_of, expected.message_of)
        for rig, output in ((whole, expected), (parts, found)):
            rig.settle(output, [True] * len(output.messages))
        assert parts.outcomes() == whole.outcomes()


async def test_many_messages_are_prepared_and_abandoned_ones_are_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, stop = Rig(queue_limit=100_000), asyncio.Event()
    prepared: list[int] = []
    prepare = rig.flow.prepare

    def witness(batches: list[Arrivals]) -> None:
        prepared.append(sum(len(batch.deliveries) for batch in batches))
        prepare(batches)

    monkeypatch.setattr(rig.flow, "prepare", witness)
    many = [delivery(f"{i}", i % 25, NOW) for i in range(2_000)]
    rig.put(*many)
    ticks: Ticks = asyncio.Queue()
    clock = SteadyClock(wall=lambda: NOW, monotonic=lambda: 0.0)
    stage = tick_stage(
        rig.flow,
        rig.inbox,
        ticks,
        interval_s=1e6,
        late_s=1e6,
        stop=stop,
        clock=clock,
        acknowledge=lambda _: None,
    )
    running = asyncio.create_task(stage)
    try:
        stop.set()
        await running
    finally:
        running.cancel()
    assert prepared == [len(many)]
    output = await ticks.get()
    assert output is not None
    rig.settle(output, [])
    rig.put(*many)
    batches = rig.inbox.take()
    rig.flow.take(batches)
    prepare(batches)
    rig.check()
    abandon(rig.flow, rig.inbox, ticks, clock)
    assert rig.flow.n_held == 0
    rig.check()


async def test_a_failure_while_preparing_is_raised_although_the_stage_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, stop = Rig(queue_limit=100_000), asyncio.Event()
    began, may_end = threading.Event(), threading.Event()

    def fail(_batches: list[Arrivals]) -> None:
        began.set()
        may_end.wait(30.0)
        raise RuntimeError("this fails")

    monkeypatch.setattr(rig.flow, "prepare", fail)
    rig.put(*(delivery(f"{i}", i % 25, NOW) for i in range(2_000)))
    stage = tick_stage(
        rig.flow,
        rig.inbox,
        asyncio.Queue(),
        interval_s=1e6,
        late_s=1e6,
        stop=stop,
        clock=SteadyClock(wall=lambda: NOW, monotonic=lambda: 0.0),
        acknowledge=lambda _: None,
    )
    running = asyncio.create_task(stage)
    stop.set()
    await asyncio.to_thread(began.wait)
    running.cancel()
    await asyncio.sleep(0)  # the stage is cancelled, and waits for the thread
    may_end.set()
    with pytest.raises(RuntimeError, match="this fails"):
        await running
