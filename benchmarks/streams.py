"""Benchmark of a stream of records in small windows: from messages to classes, and their loss."""

import json
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.declaration import declare
from anonymizer.pipeline.records.flow import RecordFlow
from anonymizer.pipeline.records.inbox import Arrived
from anonymizer.settings import LimitSettings, StreamSettings
from anonymizer.store import RecordStore
from benchmarks.tables import Cell, Table

_K, _L = 5, 2
_WINDOW_S = 10.0
_START = 1_800_000_000.0
_RATE_PER_S = 20_000
_HIGHEST = 1000
_VALUES = ("none", "tyres", "brakes", "battery", "engine")
_FORMING = 0.6
"""Share of a window's time in which classes may be formed; reading and the store take the rest."""


def streams(cases: Sequence[tuple[str, int, int]]) -> list[Table]:
    """Publish windows of as many vehicles by each method: (method, vehicles, windows)."""
    columns = (
        "method",
        "vehicles",
        "records",
        "classes",
        "published, %",
        "CPU, µs/record",
        "records a CPU second",
        "NCP",
    )
    notes = (
        f"k = {_K}, l = {_L}; two numeric quasi-identifiers, a sensitive attribute of five values.",
        "uniform values, drawn anew for every record; a window has one record of each vehicle.",
        "CPU: of the process, from messages in JSON to those of the classes, stored in SQLite.",
        f"best: searches in the time that {_RATE_PER_S:,} records a second leave.",
        "NCP: mean width of the published ranges, relative to the whole.",
    )
    with tempfile.TemporaryDirectory() as folder:
        for method in {method for method, *_ in cases}:
            _published(Path(folder) / f"compile-{method}", method, 50, 2)
        rows = [_published(Path(folder) / f"{i}", *case) for i, case in enumerate(cases)]
    return [Table("Records in small windows: CPU time and loss", columns, rows, notes)]


def _published(path: Path, method: str, n_vehicles: int, n_windows: int) -> tuple[Cell, ...]:
    stream = declare(_settings(method))
    store = RecordStore(path, keep_published_s=0.0)
    flow = RecordFlow([stream], store, LimitSettings(), max_unpublished=10**6, at_s=_START)
    batches = _sent(n_vehicles, n_windows)
    whole_s = n_vehicles / _RATE_PER_S
    payloads: list[bytes] = []
    used_s = 0.0
    for window, batch in enumerate(batches):
        at_s = _START + (window + 1) * _WINDOW_S
        began_s = time.process_time()
        flow.take(Arrived([batch]), now=at_s, at_s=at_s)
        until_s = began_s + _FORMING * whole_s
        for due in flow.due(at_s=at_s):
            closing = flow.anonymize(
                due,
                flow.memories(due),
                time_left=partial(_left, until_s),
                clock=time.process_time,
            )
            flow.close(due, closing, now=at_s)
            waiting = flow.waiting(limit=10**6)
            payloads += [each.message.payload for each in waiting]
            flow.published(waiting, now=at_s)
        used_s += time.process_time() - began_s
    store.close()
    classes = [json.loads(payload) for payload in payloads]
    count = np.array([each["count"] for each in classes])
    width = [[_width(each["qis"][name]) for name in ("x", "y")] for each in classes]
    ncp = float(np.average(np.mean(width, axis=1) / _HIGHEST, weights=count))
    n = n_vehicles * n_windows
    us = used_s / n * 1e6
    return method, n_vehicles, n, len(classes), 100 * count.sum() / n, us, 1e6 / us, ncp


def _left(until_s: float) -> float:
    return until_s - time.process_time()


def _width(label: dict[str, Sequence[float]] | float) -> float:
    if not isinstance(label, dict):
        return 0.0
    low, high = label["range"]
    return high - low


def _settings(method: str) -> StreamSettings:
    return StreamSettings.model_validate(
        {
            "name": "small",
            "window_s": _WINDOW_S,
            "lateness_s": 0.0,
            "model": "kld",
            "method": method,
            "promise": {"k": _K, "d": 1, "l": _L},
            "sources": [{"name": "device", "tells": ["x", "y", "fault"]}],
            "attributes": [
                {"name": "x", "lo": 0, "hi": _HIGHEST},
                {"name": "y", "lo": 0, "hi": _HIGHEST},
                {"name": "fault", "role": "sensitive", "values": list(_VALUES)},
            ],
        }
    )


def _sent(n_vehicles: int, n_windows: int) -> list[list[Delivery]]:
    """Return the messages of each window; one of the next window follows, which closes the last."""
    rng = np.random.default_rng(1)
    batches = []
    for window in range(n_windows + 1):
        xy = rng.integers(0, _HIGHEST + 1, (n_vehicles, 2)).tolist()
        fault = rng.choice(_VALUES, n_vehicles).tolist()
        ts = np.sort(rng.random(n_vehicles) * _WINDOW_S * 0.99).tolist()
        batches.append(
            [
                Delivery(
                    f"records/device/veh-{v:04d}",
                    json.dumps(
                        {
                            "ts": round(_START + window * _WINDOW_S + ts[v], 3),
                            "x": xy[v][0],
                            "y": xy[v][1],
                            "fault": fault[v],
                        }
                    ).encode(),
                    0,
                    False,
                )
                for v in range(n_vehicles if window < n_windows else 1)
            ]
        )
    return batches
