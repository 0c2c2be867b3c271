"""A start says what it does, at once and again: nobody takes a gateway that loads for hanging."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from anonymizer.app.gateway.start_log import StartLog
from tests.end_to_end import ANONYMIZER, DEADLINE_S


def test_what_lasts_is_logged_again_until_it_ends() -> None:
    with capture_logs() as lines, StartLog(silent_s=0.01) as start:
        start.tell("loads")
        deadline = time.monotonic() + DEADLINE_S
        while len(lines) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        start.tell("warms up")
        start.end()
        n = len(lines)
        time.sleep(0.05)
    assert len(lines) == n
    said = [line["doing"] for line in lines]
    assert said[:3] == ["loads"] * 3
    assert "warms up" in said
    assert {line["event"] for line in lines} == {"starting"}


def test_a_start_that_fails_ends_its_log() -> None:
    start = StartLog()
    with pytest.raises(ZeroDivisionError), start:
        raise ZeroDivisionError
    assert not start._thread.is_alive()


async def test_serve_says_a_line_before_it_reads_anything(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    os.mkfifo(config)
    serve = await asyncio.create_subprocess_exec(
        *(ANONYMIZER, "serve", "-c", config),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert serve.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = await serve.stdout.readline()  # nobody has written the settings yet
    finally:
        serve.kill()
        await serve.wait()
    assert line.decode() == f"anonymizer: reads {config}; what follows is in the log\n"
