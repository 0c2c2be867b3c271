"""Devices that try to take over the sessions of a gateway, on a Mosquitto."""

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import LAST, counted, publish, serving_records
from tests.app.gateway.records import compiled, stored_accounts
from tests.end_to_end import client, eventually
from tests.pipeline.records.made import Sent, traffic

__all__ = ["compiled"]


def ids_of(broker: LocalBroker) -> list[str]:
    """Return the ids under which gateways have connected, in order."""
    found = [re.search(r"New client connected from \S+ as (gateway\S*)", x) for x in broker.log]
    return [match[1] for match in found if match]


async def run_once(
    folder: Path, broker: LocalBroker, parts: Sequence[Sent] = (), *, n_received: int = 0
) -> None:
    """Run a gateway until the parts have arrived, and so many in all; end it cleanly."""
    async with serving_records(folder, broker.url) as gateway:
        if parts:
            await publish(broker.url, parts)
        if n_received:
            received = ("anonymizer_record_parts_received_total", "fleet")
            await eventually(
                lambda: counted(gateway), lambda now: now.get(received, 0) >= n_received
            )
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0


async def test_who_guesses_the_ids_of_a_gateway_costs_it_no_record(
    broker: LocalBroker, tmp_path: Path
) -> None:
    parts = list(traffic(n_vehicles=40, n_windows=3, seed=1))
    async with serving_records(tmp_path, broker.url, fleet={"idle_s": 600}) as gateway:
        for i in range(0, len(parts), 30):
            async with (
                client(broker.url, "gateway", clean_start=True),
                client(broker.url, "gateway-records", clean_start=i % 60 == 0),
            ):
                await publish(broker.url, parts[i : i + 30])
        await publish(broker.url, LAST)
        await gateway.program.logged("window closed", times=3)
        metrics = (await gateway.get("/metrics")).text
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
    assert stored_accounts(tmp_path / "records.sqlite") == {"received": 372, "published": 360}
    lost = re.findall(
        r"^anonymizer_broker_connections_lost_total\{.*\} (\S+)", metrics, re.MULTILINE
    )
    assert lost
    assert set(lost) == {"0.0"}


async def test_the_id_of_a_session_outlives_the_gateway_and_is_the_store_s_own(
    broker: LocalBroker, tmp_path: Path
) -> None:
    stores = tmp_path / "first", tmp_path / "second"
    for store in stores:
        store.mkdir()
    for store in (stores[0], *stores):
        await run_once(store, broker)
    ids = [each for each in ids_of(broker) if each.startswith("gateway-records-")]
    assert len(ids) == 3
    assert ids[0] == ids[1] != ids[2]
    assert all(re.fullmatch("gateway-records-[0-9a-f]{32}", each) for each in ids)


async def test_what_is_sent_while_no_gateway_runs_waits_under_its_id(
    broker: LocalBroker, tmp_path: Path
) -> None:
    parts = list(traffic(n_vehicles=5, n_windows=1, seed=1))
    await run_once(tmp_path, broker)
    await publish(broker.url, parts)
    last = Sent("later", parts[0].source, parts[-1].ts, {})
    await run_once(tmp_path, broker, [last], n_received=len(parts) + 1)
    assert stored_accounts(tmp_path / "records.sqlite")["received"] == len(parts) + 1
