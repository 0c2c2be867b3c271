"""JSON lines: recordings of an MQTT topic, and lines that are rows themselves."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from anonymizer.audit.foreign.readers.reader import FileKind, check_size, frame_of, json_of
from anonymizer.errors import InputError


def read(path: Path) -> pl.DataFrame:
    """Return a row for each line; of a message, its payload and the levels of its topic.

    An object within a row, such as `{"location": {"lat", "lon"}}`, is spread out.
    """
    check_size(path)
    rows: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                rows += _rows(path, json_of(path, line))
    if not rows:
        raise InputError(f"{path}: has no rows")
    return frame_of(rows)


def _rows(path: Path, found: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401  of JSON
    if not isinstance(found, dict):
        raise InputError(f"{path}: a line is no object")
    if not ("topic" in found and "payload" in found):
        yield dict(_spread(found))
        return
    payload = found["payload"]
    if isinstance(payload, str):
        payload = json_of(path, payload.encode())
    levels = {f"_topic_{i}": each for i, each in enumerate(str(found["topic"]).split("/"))}
    own = {name: found[name] for name in ("time", "ts", "timestamp") if name in found}
    for each in payload if isinstance(payload, list) else [payload]:
        yield {**own, **dict(_spread(each if isinstance(each, Mapping) else {})), **levels}


def _spread(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _spread(value)
        else:
            yield name, value


def _recognizes(path: Path, head: bytes) -> bool:
    return path.suffix.lower() in {".jsonl", ".ndjson"} or (
        head.lstrip()[:1] == b"{" and b'"topic"' in head and b'"payload"' in head
    )


READER = FileKind("JSON lines", _recognizes, read)
