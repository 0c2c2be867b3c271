"""`anonymizer serve` with a stream of records, on a Mosquitto."""

import asyncio
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.recorder import Recorder
from anonymizer.app.gateway.service import raise_known
from anonymizer.errors import SettingsError
from anonymizer.pipeline.records.anonymize_window import warm_up
from anonymizer.pipeline.records.window_models import WINDOW_MODELS
from anonymizer.settings import load_settings
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import (
    LAST,
    counted,
    in_window,
    printed,
    publish,
    seen_classes,
    serving_records,
    until_held,
)
from tests.app.gateway.records import (
    assert_classes_keep,
    assert_each_window_has_one_partition,
    compiled,
    stored_accounts,
    stored_parts,
    waiting_parts,
    write_records_settings,
)
from tests.end_to_end import (
    ANONYMIZER,
    AS_OPERATOR,
    DEADLINE_S,
    SIMULATOR,
    TOKEN,
    Gateway,
    eventually,
    http_client,
    running,
    witness,
)
from tests.observe.samples import samples
from tests.pipeline.records.made import traffic

__all__ = ["compiled"]


async def anonymously(gateway: Gateway) -> httpx.Response:
    """Return the metrics as anybody may read them."""
    url = gateway.program.events("listening")[0]["url"]
    async with http_client(url) as http:
        return await http.get("/metrics")


CELLS = {
    "model": "cells",
    "method": "auto",
    "promise": {"k": 4, "l": 2},
    "cumulative": "report",
}


@pytest.mark.parametrize(("model", "d", "l"), [({}, 2, 1), (CELLS, 1, 2)], ids=["kd", "cells"])
async def test_parts_of_three_sources_become_classes_that_keep_their_promise(
    model: Mapping[str, Any],
    d: int,
    l: int,  # noqa: E741
    broker: LocalBroker,
    tmp_path: Path,
) -> None:
    parts = list(traffic(n_vehicles=40, n_windows=3, seed=1))
    async with (
        witness(broker.url) as watching,
        serving_records(tmp_path, broker.url, fleet={"idle_s": 600, **model}) as gateway,
    ):
        await publish(broker.url, [*parts, *LAST])
        await gateway.program.logged("window closed", times=3)
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
        n_classes = sum(line["classes"] for line in gateway.program.events("window closed"))
        await watching.until(lambda: len(seen_classes(watching)) == n_classes)
    classes = assert_each_window_has_one_partition(seen_classes(watching))
    assert sorted(classes) == [0, 60, 120]
    for window in range(3):
        assert_classes_keep(classes[window * 60], in_window(parts, window), k=4, d=d, l=l)
    assert stored_accounts(tmp_path / "records.sqlite") == {"received": 372, "published": 360}
    assert stored_parts(tmp_path / "records.sqlite") == len(LAST)
    assert "veh-" not in "".join(gateway.program.lines)


async def test_a_drain_does_not_wait_for_a_window_that_takes_longer(
    persistent_broker: LocalBroker, tmp_path: Path
) -> None:
    parts, url = list(traffic(n_vehicles=20, n_windows=1, seed=2)), persistent_broker.url
    store = tmp_path / "records.sqlite"
    config = write_records_settings(
        tmp_path / "gateway.toml",
        url,
        store=store,
        fleet={"idle_s": 600},
        tick={"interval_s": 0.01},
    )
    settings = load_settings(config)
    recorder, stop = Recorder(settings, declared_streams(settings)), asyncio.Event()
    begun, released = threading.Event(), threading.Event()

    def endless(*_: object, **__: object) -> None:
        begun.set()
        released.wait()

    with mock.patch.object(recorder.flow, "anonymize", endless):
        running = asyncio.create_task(recorder.run(stop))
        await recorder.until_connected()
        await publish(url, [*parts, *LAST])
        await asyncio.to_thread(begun.wait)
        stop.set()
        try:
            await asyncio.wait_for(asyncio.shield(running), DEADLINE_S)
        finally:
            released.set()
    assert stored_parts(store) == len(parts) + len(LAST)
    async with serving_records(tmp_path, url, fleet={"idle_s": 600}) as gateway:
        assert (await gateway.program.logged("window closed"))["records"] == 20


async def test_a_window_stays_open_over_a_restart_and_what_came_meanwhile_is_in_it(
    persistent_broker: LocalBroker, tmp_path: Path
) -> None:
    parts = list(traffic(n_vehicles=20, n_windows=1, seed=2))
    url = persistent_broker.url
    async with witness(url) as watching:
        async with serving_records(tmp_path, url, fleet={"idle_s": 600}) as gateway:
            await publish(url, parts[:30])
            now = await until_held(gateway, 30)
            shown = samples((await anonymously(gateway)).text)
            assert now["anonymizer_records_open_windows", "fleet"] == 1
            # No class has been published: nothing shows that a vehicle has reported.
            told = {"parts_received_total", "parts_total", "parts_held", "s_open_windows"}
            assert not {name for name, *_ in shown} & {f"anonymizer_record{n}" for n in told}
            assert {name for name, *_ in now} >= {
                "anonymizer_record_parts_received_total", "anonymizer_record_parts_held"
            }  # fmt: skip
            gateway.signal(signal.SIGTERM)
            assert await gateway.program.ended() == 0
            assert gateway.program.events("stream stopped")[0]["held"] == 30
        await publish(url, parts[30:])
        async with serving_records(tmp_path, url, fleet={"idle_s": 600}) as gateway:
            await publish(url, LAST)
            await gateway.program.logged("window closed")
            now = await until_held(gateway, len(LAST))
            assert now["anonymizer_record_parts_total", "fleet", "published", ""] == 60
            n_classes = now["anonymizer_records_classes_total", "fleet"]
            await watching.until(lambda: len(seen_classes(watching)) == n_classes)
    [classes] = assert_each_window_has_one_partition(seen_classes(watching)).values()
    assert_classes_keep(classes, parts, k=4, d=2, l=1)
    assert sum(m["count"] for m in classes) == 20


async def test_one_store_is_for_one_gateway(broker: LocalBroker, tmp_path: Path) -> None:
    async with serving_records(tmp_path, broker.url):
        config = tmp_path / "gateway.toml"
        async with running(ANONYMIZER, "serve", "-c", config) as second:
            assert await second.ended() == 2
            store = tmp_path / "records.sqlite"
            *starting, refused = second.lines
            assert refused == (
                f"anonymizer: {config}: store.path: {store}: is in use by another gateway"
            )
            assert all('"event": "starting"' in line for line in starting)


async def test_the_settings_that_the_simulator_prints_take_what_it_sends(
    broker: LocalBroker, tmp_path: Path
) -> None:
    store, config = tmp_path / "records.sqlite", tmp_path / "fleet.toml"
    config.write_text(await printed(SIMULATOR, "records", "--print-settings"))
    environment = {
        "ANONYMIZER__BROKER__URL": broker.url,
        "ANONYMIZER__STORE__PATH": str(store),
        "ANONYMIZER__HTTP__PORT": "0",
        "ANONYMIZER__HTTP__TOKEN": TOKEN,
    }
    said = await printed(ANONYMIZER, "check", "-c", config, environment=environment)
    fine, together = said.splitlines()
    assert fine == f"{config}: fine; streams of records: fleet"
    assert together.startswith("fleet: windows together keep type, region, built")
    for declared in declared_streams(load_settings(config)):  # compile without a deadline
        warm_up(declared, WINDOW_MODELS[declared.settings.model](declared))
    async with running(ANONYMIZER, "serve", "-c", config, environment=environment) as program:
        url = (await program.logged("listening"))["url"]
        await program.logged("broker connected for records")
        sending = ("--vehicles", "40", "--rate", "20", "--duration", "2", "--quiet")
        # It ends by its own clock, and starts as slowly as the machine is busy.
        await printed(SIMULATOR, "records", "--broker", broker.url, *sending)
        async with http_client(url, headers=AS_OPERATOR) as http:
            received = ("anonymizer_record_parts_received_total", "fleet")
            await eventually(
                lambda: counted(Gateway(program, http)), lambda now: now.get(received, 0) > 0
            )
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    accounts = stored_accounts(store)
    # What the broker had not handed over yet waits there for the next start.
    assert 0 < accounts["received"] <= 1600
    assert not any(outcome.startswith("invalid") for outcome in accounts)
    settled = sum(n for outcome, n in accounts.items() if outcome != "received")
    # At the end of a minute a window closes, and its classes may not be published yet.
    assert stored_parts(store) + waiting_parts(store) == accounts["received"] - settled


def test_what_ends_the_gateway_while_it_runs_is_one_error_where_it_is_the_operators() -> None:
    full = SettingsError("store.path: records.sqlite: cannot be used: database or disk is full")
    with pytest.raises(SettingsError, match="disk is full"):
        raise_known(BaseExceptionGroup("", [ExceptionGroup("", [ValueError(), full])]))
    raise_known(ExceptionGroup("", [ValueError()]))
