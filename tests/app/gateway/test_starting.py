"""A gateway that starts answers its probes at once, and says what it does."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.end_to_end import ANONYMIZER, DEADLINE_S, eventually, quick, running, write_settings


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    started = mosquitto(tmp_path)
    await started.start()
    yield started
    await started.stop()


async def test_probes_are_answered_before_the_network_is_read(
    tmp_path: Path, broker: LocalBroker
) -> None:
    tables = quick(broker.url, log={"level": "info"}, network={"source": "city:20000"})
    config = write_settings(tmp_path / "gateway.toml", tables)
    async with running(ANONYMIZER, "serve", "-c", config) as program:
        url = (await program.logged("starting"))["url"]
        async with httpx.AsyncClient(base_url=url, timeout=DEADLINE_S) as http:
            healthy, ready = await http.get("/healthz"), await http.get("/readyz")
            page, metrics = await http.get("/"), await http.get("/metrics")
            assert "network loaded" not in [line["event"] for line in program.log]
            after = await eventually(
                lambda: http.get("/readyz"), lambda answer: answer.status_code == 200
            )
            page_after = await http.get("/")
    assert (healthy.status_code, metrics.status_code, ready.status_code) == (200, 200, 503)
    assert ready.json()["problems"] == ["starting: reads the network"]
    assert (page.status_code, page.headers["retry-after"]) == (503, "2")
    assert after.json()["problems"] == []
    assert page_after.status_code == 200


@pytest.mark.soak  # compiles every kernel anew
async def test_it_says_that_it_compiles(tmp_path: Path, broker: LocalBroker) -> None:
    config = write_settings(tmp_path / "gateway.toml", quick(broker.url, log={"level": "info"}))
    cold = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}  # as after the installation
    async with running(ANONYMIZER, "serve", "-c", config, environment=cold) as program:
        url = (await program.logged("starting"))["url"]
        async with httpx.AsyncClient(base_url=url, timeout=DEADLINE_S) as http:
            await program.logged("compiling kernels")
            compiling = await http.get("/readyz")
    assert compiling.json()["problems"][0].startswith("starting: compiles kernels, ")


async def test_a_mistake_in_the_settings_ends_the_start_in_one_line(tmp_path: Path) -> None:
    tables = quick("mqtt://127.0.0.1:1", network={"source": "nowhere.graphml"})
    config = write_settings(tmp_path / "gateway.toml", tables)
    async with running(ANONYMIZER, "serve", "-c", config) as program:
        assert await program.ended() == 2
    assert program.lines[-1].startswith(f"anonymizer: {config}: network.source: nowhere.graphml")
