"""The gateway in this process, on a Mosquitto: what it promises while parts of it fail."""

import asyncio
import json
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.gateway.input_troubles import TOO_LARGE
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker
from tests import naive
from tests.app.gateway.started import NETWORK, gateway_for, running, say, settled
from tests.end_to_end import DEADLINE_S, client, eventually, http_client, quick, send, witness
from tests.transport.faulty_broker import FaultyBroker


async def test_each_region_is_the_one_that_the_plain_algorithm_grows_for_that_device(
    broker: LocalBroker,
) -> None:
    rng = np.random.default_rng(11)
    # They jump across the town; which jumps are believed has a proof of its own.
    anything = [{"max_speed_mps": 1e9}]
    gateway = gateway_for(broker, tick={"interval_s": 0.005}, inputs=anything)
    graph = nx.Graph(naive.graph_of(NETWORK))
    node_of: dict[str, int] = {}
    async with (
        running(gateway),
        client(broker.url, "publisher") as publisher,
        witness(broker.url) as watching,
    ):
        for turn in range(120):
            # One at a time: whoever moves is whom the next message is about.
            device = f"tram-{turn % 60}"
            node_of[device] = node = int(rng.integers(0, NETWORK.n_nodes))
            await send(publisher, [say(device, node)])
            await settled(gateway, turn + 1)
            if gateway.ledger.n(Outcome.PUBLISHED) == watching.n_pseudonyms:
                continue
            await watching.until(
                lambda: gateway.ledger.n(Outcome.PUBLISHED) == watching.n_pseudonyms
            )
            [*_, message] = watching.on("cloaked/positions")
            at = Counter(node_of.values())
            density = at[node] + sum(at[other] for other in graph[node])
            assert message["k"] == (10 if density < 4 else 5 if density < 10 else 2)
            assert node in message["region"]
            assert sum(at[inside] for inside in message["region"]) >= message["k"]
            assert nx.is_connected(graph.subgraph(message["region"]))
            assert len(message["pseudonyms"]) == 1
    assert gateway.ledger.n(Outcome.PUBLISHED) > 80


async def test_a_device_a_message_is_published_on_request(broker: LocalBroker) -> None:
    gateway = gateway_for(
        broker, output={"forms": ["device"], "qos": 1}, adka={"density_steps": [], "k_values": [2]}
    )
    async with client(broker.url, "publisher") as publisher, witness(broker.url) as watching:
        async with running(gateway):
            await send(publisher, [say(f"tram-{i}", 5) for i in range(30)])
            await settled(gateway, 30)
        messages = [m for m in watching.seen if m.topic == "cloaked/positions"]
        assert len(messages) == gateway.ledger.n(Outcome.PUBLISHED) > 20
        assert all(json.loads(m.payload)["region"] == [5] for m in messages)


async def test_under_overload_the_oldest_yield_and_are_counted(broker: LocalBroker) -> None:
    # So long that all come within a tick, on a busy machine within two.
    gateway = gateway_for(broker, tick={"interval_s": 60.0}, presence={"max_devices": 1000})
    async with running(gateway), client(broker.url, "publisher") as publisher:
        await send(publisher, [say(f"tram-{i}", 5) for i in range(1_000)])

        async def look() -> int:
            return gateway.ledger.n_received

        await eventually(look, lambda n_received: n_received == 1_000)
    assert gateway.ledger.n(Outcome.SUPPRESSED__OVERLOAD) >= 800
    assert gateway.ledger.n(Outcome.PUBLISHED) >= 75
    assert gateway.ledger.n_settled == 1_000


async def test_it_is_not_ready_while_positions_come_in_and_nothing_goes_out(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(broker)
    assert gateway.http is not None
    async with (
        running(gateway),
        client(broker.url, "publisher") as publisher,
        http_client(gateway.http.url) as http,
    ):

        async def look(n_devices: int) -> list[str]:
            await send(publisher, [say(f"tram-{i}", 5) for i in range(n_devices)])
            problems: list[str] = (await http.get("/readyz")).json()["problems"]
            return problems

        said = "nothing is published: fewer devices are present"
        await eventually(lambda: look(1), lambda problems: said in "".join(problems))
        await eventually(lambda: look(30), lambda problems: not problems)


async def test_it_is_not_ready_while_a_cap_keeps_devices_from_being_published(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(
        broker,
        region={"mode": "session", "max_nodes": 6},
        session={"epoch_s": 1.0, "beat_s": 0.1},
    )
    assert gateway.http is not None
    async with (
        running(gateway),
        client(broker.url, "publisher") as publisher,
        http_client(gateway.http.url) as http,
    ):

        async def look() -> list[str]:
            # All over the network: a place of each would be more than six nodes together.
            await send(publisher, [say(f"tram-{i}", i) for i in range(0, 400, 10)])
            problems: list[str] = (await http.get("/readyz")).json()["problems"]
            return problems

        problems = await eventually(look, lambda problems: TOO_LARGE in problems)
        assert "region.max_nodes" in TOO_LARGE
        assert problems
    assert gateway.ledger.n(Outcome.SUPPRESSED__REGION_TOO_LARGE) > 0


async def test_it_is_not_ready_while_vehicles_change_ids_that_are_said_to_stay(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(broker)
    assert gateway.http is not None
    async with (
        running(gateway),
        http_client(gateway.http.url) as http,
    ):
        assert (await http.get("/readyz")).is_success
        # Fifty vehicles: each second one of them is heard under another id, at its own place.
        succession = gateway.flow.mobile.intake.succession
        for now in range(700):
            place = np.array([now % 50 / 10])
            for slot, ts in ((max(now - 50, 0), now - 0.5), (now, float(now))):
                who, at = np.array([slot], np.int32), np.array([ts])
                succession.tick(who, at, place, place, now=now, known_after_s=30, ttl_s=20)
            succession.free(np.array([max(now - 70, 0)], np.int32), silent_since=now - 20)
        problems = (await http.get("/readyz")).json()["problems"]
        assert [each for each in problems if "ids_change_s" in each]


async def test_nothing_that_came_before_the_stop_is_left_behind(broker: LocalBroker) -> None:
    gateway = gateway_for(broker, tick={"interval_s": 60.0})
    async with witness(broker.url) as watching:
        async with client(broker.url, "publisher") as publisher, running(gateway):
            await send(publisher, [say(f"tram-{i}", 5) for i in range(200)])

            async def look() -> int:
                return gateway.inbox.n_waiting

            await eventually(look, lambda n_waiting: n_waiting == 200)
        await watching.until(lambda: watching.n_pseudonyms == 200)
    assert gateway.ledger.n(Outcome.PUBLISHED) == gateway.ledger.n_received == 200


async def test_a_failing_part_ends_the_whole_and_the_last_will_says_so(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(broker)
    async with witness(broker.url) as watching:
        with pytest.raises(ExceptionGroup) as raised:
            await fail(gateway)
        assert raised.group_contains(TypeError)
        await watching.until(lambda: b"lost" in [message.payload for message in watching.seen])


async def fail(gateway: Gateway) -> None:
    """Let a gateway meet what no link delivers: it stands for a mistake of ours."""
    broken: Any = None
    async with running(gateway):
        gateway.inbox.put([Delivery("positions/tram", broken, 0)], at_s=0.0)
        await asyncio.Event().wait()


async def test_a_gateway_without_http_serves_all_the_same(broker: LocalBroker) -> None:
    gateway = gateway_for(broker, http={"host": ""})
    async with running(gateway), client(broker.url, "publisher") as publisher:
        await send(publisher, [say("tram", 5)])
        await settled(gateway, 1)
    assert gateway.http is None


async def test_it_is_not_alive_before_its_first_tick_and_not_ready_without_a_broker(
    broker: LocalBroker,
) -> None:
    await broker.kill()
    gateway = gateway_for(broker)
    assert gateway.http is not None
    stop = asyncio.Event()
    async with (
        asyncio.timeout(DEADLINE_S),
        http_client(gateway.http.url) as http,
        gateway.http.serving(),
    ):
        assert "no tick" in (await http.get("/healthz")).json()["problems"][0]
    gateway = gateway_for(broker)
    assert gateway.http is not None
    gateway.warm_up()
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(gateway.run(stop), name="gateway")
        async with http_client(gateway.http.url) as http:
            assert (await http.get("/healthz")).status_code == 200
            [problem] = (await http.get("/readyz")).json()["problems"]
            assert problem.startswith("broker: not connected")
        stop.set()


async def test_what_is_refused_while_the_broker_is_away_is_told_when_it_is_back(
    broker: LocalBroker,
) -> None:
    # The broker is away from the gateway alone: whoever listens has subscribed before it is back.
    relay = FaultyBroker(broker.url, [])
    async with witness(broker.url) as watching, relay.serving():
        tables = quick(relay.url)
        gateway = Gateway(Settings.model_validate(tables), NETWORK)
        async with running(gateway):
            async with relay.away():
                await eventually(lambda: connected(gateway), lambda up: not up)
                refused = [Delivery(f"positions/{i}", b"?", 0) for i in range(23)]
                gateway.inbox.put(refused, at_s=0.0)
                await settled(gateway, 23)
                assert not watching.on("anonymizer/rejected")
            await watching.until(lambda: bool(watching.on("anonymizer/rejected")))
    told = [message["rejected"] for message in watching.on("anonymizer/rejected")]
    assert told == [{"invalid/malformed": 20}]  # in steps of the largest k


async def connected(gateway: Gateway) -> bool:
    return not any("not connected" in problem for problem in gateway._readiness.why_not_ready())
