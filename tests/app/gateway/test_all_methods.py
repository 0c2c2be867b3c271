"""All four methods in one gateway, under one scenario: what `init --all` writes takes what
`simulator run --all` sends, nothing is unaccounted for, and every class keeps its promise."""

import json
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonymizer
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import counted, printed
from tests.app.gateway.records import assert_each_window_has_one_partition
from tests.end_to_end import (
    ANONYMIZER,
    AS_OPERATOR,
    SIMULATOR,
    START_S,
    TOKEN,
    Gateway,
    Witness,
    eventually,
    http_client,
    running,
    witness,
)

K = {"fleet": 10, "drivers": 10, "health": 10, "toll": 5}
PATH = "/api/analytics/truck/exit-hourly-flow-k-anonymized"
SIZE = ("--network", "city:400", "--devices", "800", "--rate", "1")
WINDOW_S = 8.0
LASTING = ("fleet", "drivers")
"""Streams whose windows can be intersected, because values of them last."""
LONG = ("--network", "city:400", "--devices", "400", "--rate", "1", "--duration", "600")
OUTPUTS = {"cloaked/positions", "public/fixed", *(f"anonymized/{name}" for name in K)}


async def settings_file(folder: Path, url: str, *, window_s: float) -> Path:
    """Let `init --all` write the settings; the windows alone are shorter."""
    config = folder / "gateway.toml"
    flags = ("--network", "city:400", "--broker", url, "--http-port", "0", "--out", config)
    await printed(ANONYMIZER, "init", "--yes", "--all", *map(str, flags))
    text = config.read_text().replace("window_s = 300.0", f"window_s = {window_s}")
    text, n = re.subn("lateness_s = 10.0", "lateness_s = 1.0", text)
    assert n == len(K)
    config.write_text(text)
    return config


def environment(folder: Path) -> dict[str, str]:
    return {
        "ANONYMIZER__STORE__PATH": str(folder / "records.sqlite"),
        "ANONYMIZER__HTTP__TOKEN": TOKEN,
    }


async def test_four_methods_publish_of_the_same_vehicles_and_all_accounts_are_exact(
    broker: LocalBroker, tmp_path: Path
) -> None:
    config = await settings_file(tmp_path, broker.url, window_s=WINDOW_S)
    async with (
        witness(broker.url) as watching,
        running(ANONYMIZER, "serve", "-c", config, environment=environment(tmp_path)) as program,
    ):
        url = (await program.logged("listening"))["url"]
        await program.logged("broker connected for records")
        async with (
            http_client(url, headers=AS_OPERATOR) as http,
            running(SIMULATOR, "run", "--all", *SIZE, "--broker", broker.url, "--quiet") as traffic,
        ):
            gateway = Gateway(program, http)
            # Kernels may be compiled meanwhile: those of all methods.
            await watching.until(published_on(watching, OUTPUTS), within_s=START_S)
            traffic.process.send_signal(signal.SIGTERM)
            assert await traffic.ended() == 0
            now = await eventually(gateway.accounts, lambda now: not now.imbalance)
            assert now.received > 0

            async def rows() -> list[dict[str, Any]]:
                return list((await gateway.get(PATH)).json()["data"])

            # A window can be read once all of its classes have been acknowledged.
            assert all(row["truck_count"] >= K["toll"] for row in await eventually(rows, bool))
            await nothing_is_lost(gateway)
            gateway.signal(signal.SIGTERM)
            assert await program.ended() == 0
    for name, k in K.items():
        payloads = [m.payload for m in watching.seen if m.topic == f"anonymized/{name}"]
        for classes in assert_each_window_has_one_partition(payloads).values():
            assert all(each["k"] >= k for each in classes)
    told = defaultdict[str, set[str]](set)
    for each in watching.seen:
        told[each.topic.partition("/")[0]].add(each.topic.rpartition("/")[2])
    assert told["records"] <= told["positions"]  # the same vehicles
    published = [m for m in watching.seen if m.topic.startswith(("cloaked", "anonymized"))]
    assert not any(b"veh-" in m.payload for m in published)


def published_on(watching: Witness, topics: set[str]) -> Callable[[], bool]:
    """Return a function that tells whether each topic had a message; it looks at each one once."""
    missing, looked = set(topics), 0

    def all_seen() -> bool:
        nonlocal looked
        missing.difference_update(each.topic for each in watching.seen[looked:])
        looked = len(watching.seen)
        return not missing

    return all_seen


async def nothing_is_lost(gateway: Gateway) -> dict[str, dict[str, int]]:
    """Assert that every stream has received what it reads, and has an outcome for all of it.

    Return what each has received, what it holds, and how often it had each outcome.
    """
    now: dict[tuple[str, ...], float] = await counted(gateway)
    accounts = {}
    for name in K:
        received = int(now["anonymizer_record_parts_received_total", name])
        outcomes = {
            " ".join(key[2:]).strip(): int(n)
            for key, n in now.items()
            if key[:2] == ("anonymizer_record_parts_total", name) and n
        }
        held = int(now.get(("anonymizer_record_parts_held", name), 0))
        assert received > 0
        assert received == sum(outcomes.values()) + held
        assert now["anonymizer_record_parts_imbalance", name] == 0
        # The toll stream selects trucks; others pay toll as well.
        unread = {"invalid not_selected"} if name == "toll" else set()
        assert {each for each in outcomes if each.startswith("invalid")} == unread
        accounts[name] = {"received": received, "held": held, **outcomes}
    return accounts


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_ten_minutes_of_all_methods_are_accounted_for_and_pass_every_audit(
    broker: LocalBroker, tmp_path: Path
) -> None:
    config = await settings_file(tmp_path, broker.url, window_s=60.0)
    async with (
        witness(broker.url) as watching,
        running(ANONYMIZER, "serve", "-c", config, environment=environment(tmp_path)) as program,
    ):
        url = (await program.logged("listening"))["url"]
        await program.logged("broker connected for records")
        async with (
            http_client(url, headers=AS_OPERATOR) as http,
            running(SIMULATOR, "run", "--all", *LONG, "--broker", broker.url, "--quiet") as traffic,
        ):
            gateway = Gateway(program, http)
            assert await traffic.process.wait() == 0
            now = await eventually(gateway.accounts, lambda now: not (now.imbalance or now.held))
            print(now)  # noqa: T201
            for name, figures in (await nothing_is_lost(gateway)).items():
                print(name, figures)  # noqa: T201
            sent = Counter(each.topic.partition("/")[0] for each in watching.seen)
            assert now.received == sent["positions"] + sent["sensors"]
            gateway.signal(signal.SIGTERM)
            assert await program.ended() == 0
    recording = tmp_path / "recorded.jsonl"
    with recording.open("w") as file:
        for each in watching.seen:
            if each.topic.startswith(("positions", "records", "toll", "cloaked", "anonymized")):
                line = {"topic": each.topic, "payload": json.loads(each.payload)}
                file.write(json.dumps(line) + "\n")
    audit_regions(watching)
    for name in K:
        command = ("windows", recording, recording, "--stream", name, "-c", config, "--json", "-")
        for flags in ((), ("--with-positions",)) if name in LASTING else (("--with-positions",),):
            report = json.loads(await printed(ANONYMIZER, "audit", *command, *flags))
            assert report["holds"]
            print(name, report["n_windows"], "windows", report["n_classes"], "classes")  # noqa: T201
            for found in report["findings"]:
                print(" ", found["attack"], found["attribute"], found["figures"])  # noqa: T201


def audit_regions(watching: Witness) -> None:
    """Assert that the published regions keep the promise of their mode."""
    trace = [
        {"device_id": each.topic.partition("/")[2]} | json.loads(each.payload)
        for each in watching.seen
        if each.topic.startswith("positions/")
    ]
    lines = {
        (name, told["time"]): told | {"pseudonym": name}
        for told in watching.on("cloaked/positions")
        for name in told["pseudonyms"]
    }
    columns = ("pseudonym", "time", "region", "k", "until")
    release = pl.DataFrame([{name: each[name] for name in columns} for each in lines.values()])
    positions = pl.DataFrame(trace).select("device_id", "ts", "lat", "lon")
    report = anonymizer.audit_stream(release, positions, "city:400")
    print(report.model_dump_json(indent=1))  # noqa: T201
    assert report.holds
