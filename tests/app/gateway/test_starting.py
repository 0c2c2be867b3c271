"""A gateway that starts answers its probes at once, and says what it does."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from anonymizer.transport.local_brokers import LocalBroker, free_port
from tests.end_to_end import (
    ANONYMIZER,
    DEADLINE_S,
    eventually,
    http_client,
    quick,
    running,
    write_settings,
)


@asynccontextmanager
async def probing(port: int) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that listens already, or soon will."""
    async with (
        http_client(f"http://127.0.0.1:{port}") as http,
        asyncio.timeout(DEADLINE_S),
    ):
        while True:
            with suppress(httpx.ConnectError):
                await http.get("/healthz")
                break
            await asyncio.sleep(0.02)
        yield http


async def test_probes_are_answered_before_the_network_is_read(
    tmp_path: Path, broker: LocalBroker
) -> None:
    port = free_port()
    more: dict[str, Any] = {
        "network": {"source": "city:20000"},
        "http": {"port": port},
        "log": {"level": "info"},
    }
    config = write_settings(tmp_path / "gateway.toml", quick(broker.url, **more))
    reads = "starting: reads the network"
    for _ in range(12):  # a busy machine may be too late to ask
        async with running(ANONYMIZER, "serve", "-c", config), probing(port) as http:
            # At once: the network is read meanwhile.
            page, metrics, healthy, ready = [
                await http.get(path) for path in ("/", "/metrics", "/healthz", "/readyz")
            ]
            after = await eventually(
                lambda: http.get("/readyz"),
                lambda answer: answer.status_code == 200,
            )
            page_after = await http.get("/")
        assert (healthy.status_code, metrics.status_code) == (200, 200)
        if ready.json()["problems"] == [reads]:
            break
    assert (ready.status_code, ready.json()["problems"]) == (503, [reads])
    assert (page.status_code, page.headers["retry-after"]) == (503, "2")
    assert after.json()["problems"] == []
    assert page_after.status_code == 200


async def test_it_serves_while_it_compiles(tmp_path: Path, broker: LocalBroker) -> None:
    port = free_port()
    more: dict[str, Any] = {"http": {"port": port}, "log": {"level": "info"}}
    config = write_settings(tmp_path / "gateway.toml", quick(broker.url, **more))
    cold = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}  # as after the installation
    async with (
        running(ANONYMIZER, "serve", "-c", config, environment=cold) as program,
        probing(port) as http,
    ):
        await program.logged("compiling kernels in the background")
        await eventually(
            lambda: http.get("/readyz"), lambda answer: answer.status_code == httpx.codes.OK
        )
        done = [line for line in program.log if line["event"] == "kernels are compiled"]
    assert done == []


async def test_a_mistake_in_the_settings_ends_the_start_in_one_line(tmp_path: Path) -> None:
    tables = quick("mqtt://127.0.0.1:1", network={"source": "nowhere.graphml"})
    config = write_settings(tmp_path / "gateway.toml", tables)
    async with running(ANONYMIZER, "serve", "-c", config) as program:
        assert await program.ended() == 2
    *starting, line = program.lines
    assert line.startswith(f"anonymizer: {config}: network.source: nowhere.graphml")
    assert all('"event": "starting"' in each for each in starting)


def told_while_it_loads(program: str, number: signal.Signals) -> list[str]:
    """Return a command that runs a program, which gets a signal while its modules are imported."""
    text = f"""
import os, runpy, signal, sys

# A program below nohup, or in the background of a script, ignores signals.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

class Meanwhile:
    def find_spec(self, name, *_):
        if name == "typer":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number.value})

sys.meta_path.insert(0, Meanwhile())
runpy.run_module("{program}", run_name="__main__", alter_sys=True)
"""
    return [sys.executable, "-c", text]


@pytest.mark.parametrize("program", ["anonymizer", "simulator"])
async def test_ctrl_c_while_modules_are_loaded_ends_a_program_quietly(program: str) -> None:
    async with running(*told_while_it_loads(program, signal.SIGINT), "--version") as started:
        assert await started.ended() == 130
    assert not started.lines


async def test_sighup_while_modules_are_loaded_reloads_the_settings_once_there_is_a_gateway(
    tmp_path: Path, broker: LocalBroker
) -> None:
    config = write_settings(
        tmp_path / "gateway.toml", quick(broker.url, log={"level": "info"}, http={"host": ""})
    )
    command = told_while_it_loads("anonymizer", signal.SIGHUP)
    async with running(*command, "serve", "-c", config) as started:
        assert (await started.logged("settings reloaded"))["changed"] == {}
        started.process.send_signal(signal.SIGTERM)
        assert await started.ended() == 0


async def test_sighup_ends_a_program_that_reloads_nothing() -> None:
    command = told_while_it_loads("anonymizer", signal.SIGHUP)
    async with running(*command, "check") as started:
        assert await started.ended() == -signal.SIGHUP
