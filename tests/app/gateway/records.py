"""A gateway with streams on a real broker, and what can be known of it from outside."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anonymizer.pipeline.records.anonymize_window import warm_up
from anonymizer.pipeline.records.window_models import WINDOW_MODELS
from anonymizer.store import parts_log
from tests.pipeline.records.made import FLEET, Sent, stream

LASTING = {each["name"] for each in FLEET["attributes"] if each.get("lasting")}


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Have the kernels on disk: a gateway that compiles them all takes its time to start."""
    fleet = stream()
    warm_up(fleet, WINDOW_MODELS["kd"](fleet))


def write_records_settings(
    path: Path,
    url: str,
    *,
    store: Path,
    fleet: Mapping[str, Any] | None = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    broker: Mapping[str, Any] | None = None,
    **more: Mapping[str, Any],
) -> Path:
    """Write the settings of a gateway with one stream; `more` are further tables."""
    everything: dict[str, Any] = {
        "inputs": inputs,
        "network": {"source": "grid:5x5"},
        "broker": {
            "url": url,
            "client_id": "gateway",
            **(broker or {}),
        },
        "http": {"port": 0},
        "store": {"path": str(store)},
        "streams": [{**FLEET, **(fleet or {})}],
        **more,
    }
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in everything.items()) + "\n")
    return path


def toml(value: object) -> str:
    """Write a value as inline TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def stored_accounts(store: Path) -> dict[str, int]:
    """Read the accounts of the fleet as an auditor would."""
    with sqlite3.connect(store) as db:
        rows = db.execute(
            "SELECT outcome, n FROM accounts JOIN streams ON streams.id = stream"
            " WHERE name = 'fleet' AND n > 0"
        ).fetchall()
    db.close()
    return dict(rows)


def stored_parts(store: Path) -> int:
    """Count the raw parts."""
    with closing(sqlite3.connect(store)) as db:
        tables = parts_log.tables_of_parts(db)
        return sum(len(parts_log.stored_parts(db, table)) for table in tables)


def waiting_parts(store: Path) -> int:
    """Count the parts in classes that wait to be published."""
    with closing(sqlite3.connect(store)) as db:
        query = "SELECT coalesce(sum(n_parts), 0) FROM classes WHERE published_at IS NULL"
        return int(db.execute(query).fetchone()[0])


def assert_each_window_has_one_partition(messages: Iterable[bytes]) -> dict[float, list[Any]]:
    """Return the classes of each window; a repeat is the same to the byte."""
    said: dict[tuple[float, int], bytes] = {}
    classes: dict[float, list[Any]] = {}
    for payload in messages:
        message = json.loads(payload)
        key = (message["window"][0], message["class"])
        if key in said:
            assert said[key] == payload
        else:
            said[key] = payload
            classes.setdefault(key[0], []).append(message)
    for of_window in classes.values():
        assert {m["of"] for m in of_window} == {len(of_window)}
        assert sorted(m["class"] for m in of_window) == list(range(len(of_window)))
    numbers = [m["message"] for of_window in classes.values() for m in of_window]
    assert len(set(numbers)) == len(numbers)
    return classes


def assert_classes_keep(
    classes: Sequence[Any],
    sent: Iterable[Sent],
    *,
    k: int,
    d: int,
    l: int,  # noqa: E741
) -> None:
    """Check the classes of one window against what its vehicles sent, and nothing else."""
    record_of: dict[str, dict[str, Any]] = {}
    newest: dict[tuple[str, str], float] = {}
    for part in sent:
        key = (part.vehicle, part.source)
        if part.ts > newest.get(key, -1.0):
            newest[key] = part.ts
            record_of.setdefault(part.vehicle, {}).update(part.values)
    records = list(record_of.values())
    assert sum(m["count"] for m in classes) <= len(records)
    for message in classes:
        assert message["count"] == message["k"] >= k
        covered = [r for r in records if all(tells(v, r, q) for q, v in message["qis"].items())]
        assert len(covered) >= message["count"]
        for name, label in message["qis"].items():
            if "value" in label:
                told = [r[name] for r in records if r.get(name) is not None]
                is_number = isinstance(label["value"], int | float)
                assert label["value"] in told or (
                    is_number and min(told) < label["value"] < max(told)
                )
            elif "values" in label:
                assert len(set(label["values"]) - {"?"}) >= d
            else:
                assert len({r.get(name) for r in covered} - {None}) >= d
        for values in message["sensitive"].values():
            assert len(values) == message["count"]
            assert len(set(values) - {None}) >= l


def tells(label: Mapping[str, Any], record: Mapping[str, Any], name: str) -> bool:
    """Whether a published label may be that of a record.

    A cohort withholds a lasting value that its cover lacks: it is published as missing.
    """
    return covers(label, record.get(name)) or (name in LASTING and covers(label, None))


def covers(label: Mapping[str, Any], value: Any) -> bool:  # noqa: ANN401  of JSON
    """Whether a published label speaks truly of a value (numbers are rounded to halves).

    A representative says nothing of any one of those that it stands for.
    """
    if "value" in label:
        return True
    if "values" in label:
        return ("?" if value is None else value) in label["values"]
    if value is None:
        return bool(label.get("missing"))
    lo, hi = label["range"]
    return bool(lo - 0.25 <= value <= hi + 0.25)
