"""Parts of records, windows and classes that tests put into a store."""

from typing import Any

from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.store_port import (
    ClosedWindow,
    PartRow,
    Recalled,
    Taken,
)
from anonymizer.store import RecordStore

CAR, VAN = b"car-key-16-bytes", b"van-key-16-bytes"


def recall(store: RecordStore, stream: str = "fleet", shape: str = "a") -> Recalled:
    return store.recall(stream, shape=shape, n_sources=2)


def part(number: int, window: int = 7, vehicle: bytes = CAR) -> PartRow:
    return PartRow(number, window, vehicle, 0, 1.5, b"raw-%04d" % number)


def taken(*parts: PartRow, **changes: Any) -> Taken:  # noqa: ANN401  fields of any kind
    fields: dict[str, Any] = {
        "stream": "fleet",
        "parts": parts,
        "replaced": [],
        "newest": [3.0, float("-inf")],
        "floor": 5,
        "news": {"received": len(parts)},
    }
    return Taken(**fields | changes)


def closed(*payloads: bytes, **changes: Any) -> ClosedWindow:  # noqa: ANN401  fields of any kind
    fields: dict[str, Any] = {
        "stream": "fleet",
        "window": 7,
        "start": 70.0,
        "end": 80.0,
        "at": 1000.0,
        "messages": [Outgoing("anonymized/fleet", payload) for payload in payloads],
        "n_parts": [2] * len(payloads),
        "memory": {},
        "forget_before": 0,
        "newest": [3.0, float("-inf")],
        "floor": 8,
        "news": {"suppressed/no_class": 1},
        "next_message": 1 + len(payloads),
        "summary": {"records": 3},
    }
    return ClosedWindow(**fields | changes)
