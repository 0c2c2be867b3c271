"""Many streams in one gateway: nothing is lost, windows close in time, and the broker is kept."""

import json
import os
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from anonymizer.pipeline.ports import Delivery
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.quota import cpu_s
from tests.app.gateway.recording import publish
from tests.app.gateway.records import compiled, write_records_settings
from tests.end_to_end import ANONYMIZER, eventually, running, witness

__all__ = ["compiled"]
N_VEHICLES = 6
WINDOW_S = 60.0
IN_TIME_S = 5.0
"""For the windows of all streams that end at one time, on a core of its own."""


def declared(n: int) -> list[dict[str, object]]:
    return [
        {
            "name": f"s{i:04}",
            "window_s": WINDOW_S,
            "lateness_s": 0,
            "idle_s": 600,
            "promise": {"k": 3},
            "sources": [{"name": "t", "topic": f"of/{i}/{{vehicle}}", "tells": ["age", "speed"]}],
            "attributes": [
                {"name": "age", "lo": 18, "hi": 90},
                {"name": "speed", "lo": 0, "hi": 120},
            ],
        }
        for i in range(n)
    ]


def records(n: int, *, ts: float, n_vehicles: int = N_VEHICLES) -> list[Delivery]:
    return [
        Delivery(
            f"of/{i}/{v}",
            json.dumps({"ts": ts, "age": 20 + v + i % 40, "speed": 10 * v}).encode(),
            1,
        )
        for i in range(n)
        for v in range(n_vehicles)
    ]


@pytest.mark.parametrize("n", [40, pytest.param(1000, marks=pytest.mark.soak)])
async def test_windows_of_many_streams_close_in_time_and_nothing_is_lost(
    n: int,
    broker: LocalBroker,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    config = write_records_settings(
        tmp_path / "gateway.toml",
        broker.url,
        store=tmp_path / "records.sqlite",
        streams=declared(n),  # type: ignore[arg-type]
    )
    async with (
        witness(broker.url) as watching,
        running(ANONYMIZER, "serve", "-c", config) as gateway,
    ):
        await gateway.logged("broker connected for records")
        pid = gateway.process.pid

        async def closed(window: int) -> tuple[float, float]:
            """Fill a window and begin another; return the time until all classes are there."""
            start = window * WINDOW_S
            await publish(broker.url, records(n, ts=start + 1.0))
            began, used_s, first = time.monotonic(), cpu_s(pid), len(watching.seen)
            await publish(broker.url, records(n, ts=start + WINDOW_S, n_vehicles=1))

            async def heard() -> set[str]:
                seen = {message.topic for message in watching.seen[first:]}
                return {topic for topic in seen if topic.startswith("anonymized/")}

            await eventually(heard, lambda topics: len(topics) == n)
            return time.monotonic() - began, cpu_s(pid) - used_s

        await closed(0)
        wall_s, used_s = await closed(2)
        record_property("seconds", round(wall_s, 2))
        record_property("cpu_seconds", round(used_s, 2))
        assert used_s < IN_TIME_S
        await gateway.logged("window closed", times=3 * n)
        told = Counter((w["records"], w["published"]) for w in gateway.events("window closed"))
        assert told == {(N_VEHICLES, N_VEHICLES): 2 * n, (1, 0): n}  # k would not let one be seen
        assert gateway.events("no broker for records") == []


@pytest.mark.soak
def test_a_thousand_streams_are_checked_within_three_seconds(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    config = write_records_settings(
        tmp_path / "gateway.toml",
        "mqtt://127.0.0.1",
        store=tmp_path / "store" / "records.sqlite",
        streams=declared(1000),  # type: ignore[arg-type]
    )
    # The byte code of all modules is made once for an installation, by pip or by the first start.
    env = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    command: list[str | Path] = [ANONYMIZER, "check", "-c", config]
    subprocess.run(command, check=True, capture_output=True, env=env)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3
