"""`anonymizer serve` whose disk fails while it runs: positions go on, and records wait."""

import asyncio
import resource
import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

from structlog.testing import capture_logs

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.recorder import Recorder
from anonymizer.settings import load_settings
from anonymizer.store import RecordStore
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import publish, serving_records, until_held
from tests.app.gateway.records import (
    compiled,
    stored_accounts,
    stored_parts,
    write_records_settings,
)
from tests.end_to_end import ANONYMIZER, DEADLINE_S, Gateway, client, send
from tests.pipeline.records.made import traffic

__all__ = ["compiled"]

POSITIONS = [{"topic": "positions/{device}", "qos": 1}]


def serving(folder: Path, url: str) -> AbstractAsyncContextManager[Gateway]:
    return serving_records(folder, url, fleet={"idle_s": 600}, inputs=POSITIONS)


@contextmanager
def full_disk(process: int) -> Iterator[None]:
    """Let no file of a process grow any more; its writes fail as on a full disk."""
    soft, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))


async def gauges(gateway: Gateway) -> Mapping[str, str]:
    lines = (await gateway.get("/metrics")).text.splitlines()
    return dict(line.split(" ", 1) for line in lines if line.startswith("anonymizer_records_store"))


async def test_while_the_disk_is_full_positions_go_on_and_records_wait_and_none_is_lost(
    persistent_broker: LocalBroker, tmp_path: Path
) -> None:
    parts = list(traffic(n_vehicles=20, n_windows=1, seed=2))
    url = persistent_broker.url
    async with serving(tmp_path, url) as gateway:
        await publish(url, parts[:20])
        await until_held(gateway, 20)
        with full_disk(gateway.program.process.pid):
            await publish(url, parts[20:])
            problem = (await gateway.program.logged("records wait"))["problem"]
            assert "records.sqlite: cannot be used: " in problem
            async with client(url, "bus") as bus:
                await send(bus, [(f"positions/{i}", b"{}") for i in range(60)], qos=1)
            await gateway.until(lambda now: now.received == 60)
            answer = await gateway.get("/readyz")
            assert (answer.status_code, "records wait" in answer.text) == (503, True)
            assert (await gauges(gateway))["anonymizer_records_store_usable"] == "0.0"
        await gateway.program.logged("records go on")
        await until_held(gateway, len(parts))
        await gateway.until_ready()
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
    store = tmp_path / "records.sqlite"
    assert stored_parts(store) == len(parts)
    accounts = stored_accounts(store)
    assert accounts["received"] - accounts.get("duplicate", 0) == len(parts)


async def test_records_wait_before_the_disk_is_full(
    persistent_broker: LocalBroker, tmp_path: Path
) -> None:
    parts = list(traffic(n_vehicles=5, n_windows=1, seed=2))
    url = persistent_broker.url
    config = write_records_settings(
        tmp_path / "recorder.toml", url, store=tmp_path / "records.sqlite", fleet={"idle_s": 600}
    )
    settings = load_settings(config)
    recorder = Recorder(settings, declared_streams(settings), min_free_bytes=2**62)
    stop = asyncio.Event()
    with capture_logs() as said:
        running = asyncio.create_task(recorder.run(stop))
        await recorder.until_connected()
        await publish(url, parts)
        async with asyncio.timeout(DEADLINE_S):
            while recorder.usable:  # noqa: ASYNC110  nothing else tells it
                await asyncio.sleep(0.01)
        stop.set()
        await running
    [problem] = [line["problem"] for line in said if line["event"] == "records wait"]
    assert f"less than {2**62} bytes are free" in problem
    assert stored_accounts(tmp_path / "records.sqlite") == {}
    async with serving(tmp_path, url) as gateway:
        await until_held(gateway, len(parts))


async def test_a_disk_that_is_full_at_the_start_ends_the_gateway_with_1(
    broker: LocalBroker, tmp_path: Path
) -> None:
    config = write_records_settings(
        tmp_path / "gateway.toml", broker.url, store=tmp_path / "records.sqlite"
    )
    RecordStore(tmp_path / "records.sqlite", keep_published_s=1).close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    process = await asyncio.create_subprocess_exec(
        *("prlimit", "--fsize=0", ANONYMIZER, "serve", "-c", config),
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    _, said = await process.communicate()
    assert (soft, hard) == resource.getrlimit(resource.RLIMIT_FSIZE)
    last = said.decode().splitlines()[-1]
    assert last.startswith(f"anonymizer: store.path: {tmp_path / 'records.sqlite'}: cannot be used")
    assert process.returncode == 1
