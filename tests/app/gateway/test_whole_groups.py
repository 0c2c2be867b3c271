"""Groups with a message for each device, and echoes, over connections that break anywhere."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.stages import Ticks, publish_stage
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.end_to_end import DEADLINE_S
from tests.pipeline.positions.support import NOW, Rig, delivery
from tests.transport.faulty_broker import Fault, FaultyBroker
from tests.transport.support import Inbox, running, settings

K = 5
N_DEVICES = 40
N_CUTS = 40


async def tick_until_over(rig: Rig, faulty: FaultyBroker, ticks: Ticks) -> None:
    """Tick once a second of devices that move at random, until all cuts have happened."""
    over = asyncio.create_task(faulty.until_over(), name="cuts")
    rng = random.Random(0)  # noqa: S311  moves, no secrets
    now = NOW
    while not over.done():
        now += 1.0
        rig.put(*(delivery(f"d{i}", rng.randrange(25), now) for i in range(N_DEVICES)))
        await ticks.put(rig.tick(now=now))
        await asyncio.sleep(0.002)  # a cut needs traffic, and so does a connection
    await ticks.put(None)


def lives(messages: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[Any]]:
    """Return when and where each pseudonym was published."""
    seen: dict[str, set[tuple[float, tuple[int, ...]]]] = {}
    for message in messages:
        assert message["k"] >= K
        at = (message["time"], tuple(message["region"]))
        seen.setdefault(message["pseudonym"], set()).add(at)
    return {name: frozenset(life) for name, life in seen.items()}


def echoed_lives(messages: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[Any]]:
    """Return when and where each pseudonym was echoed."""
    seen: dict[str, set[tuple[float, float, float]]] = {}
    for said in messages:
        seen.setdefault(said["device"], set()).add((said["ts"], said["lat"], said["lon"]))
    return {name: frozenset(life) for name, life in seen.items()}


async def test_a_lost_connection_leaves_no_pseudonym_with_a_life_that_fewer_than_k_share(
    broker: LocalBroker,
) -> None:
    rig = Rig(
        region={"mode": "session", "min_nodes": 1},
        session={"beat_s": 0, "epoch_s": 30},
        adka={"density_steps": [], "k_values": [K]},
        output={"forms": ["device"], "qos": 1},
        inputs=[{"echo": "cloaked/echo"}],
    )
    rng = random.Random(6)  # noqa: S311  cuts, no secrets
    cuts = [
        Fault("cut", rng.randrange(2_000 if to_client else 20_000), to_client, 0.0)
        for to_client in rng.choices([False, True], [3, 1], k=N_CUTS)
    ]
    faulty, inbox = FaultyBroker(broker.url, cuts), Inbox()
    ticks: Ticks = asyncio.Queue(2)
    analyst: MqttLink

    def see(batch: Sequence[Delivery]) -> None:
        inbox.deliver(batch)
        analyst.acknowledge(message.receipt for message in batch)

    analyst = MqttLink(
        settings(broker.url),
        client_id="analyst",
        deliver=see,
        subscriptions=[("cloaked/positions", 1), ("cloaked/echo", 1)],
    )
    async with faulty.serving(), running(analyst):
        gateway = MqttLink(settings(faulty.url), client_id="gateway", deliver=lambda _: None)
        async with running(gateway), asyncio.TaskGroup() as group:
            faulty.begin()
            group.create_task(tick_until_over(rig, faulty, ticks))
            group.create_task(
                publish_stage(rig.flow, ticks, gateway, qos=1, timeout_s=DEADLINE_S, whole=True)
            )
        last = Outgoing("cloaked/positions", b"the last")
        assert await analyst.publish([last], qos=1, timeout_s=DEADLINE_S) == [True]
        await inbox.until(lambda: last.payload in inbox.payloads[-1:])
    messages = [json.loads(payload) for payload in inbox.payloads[:-1]]
    for seen in (
        lives(each for each in messages if "region" in each),
        echoed_lives(each for each in messages if "region" not in each),
    ):
        alike = Counter(seen.values())
        assert len(seen) > 3 * N_DEVICES
        assert [n for n in alike.values() if n < K] == []
    assert gateway.counts.n_connections > N_CUTS / 2
    outcomes = rig.outcomes()
    assert outcomes["SUPPRESSED__UNDELIVERED"] > 0
    rig.check()
