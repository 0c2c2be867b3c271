"""JSON lines: recordings of an MQTT topic, and lines that are rows themselves."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from anonymizer.audit.foreign.readers.reader import FileKind, check_size, frame_of, json_of
from anonymizer.errors import InputError

_SUBSCRIBED = re.compile(rb"[^\s{\[,;\"]+ \{")
"""A topic, a space and an object, as `mosquitto_sub -v` writes them."""


def read(path: Path) -> pl.DataFrame:
    """Return a row for each line; of a message, its payload and the levels of its topic.

    An object within a row, such as `{"location": {"lat", "lon"}}`, is spread out. Payloads that are
    no JSON, as of a device that goes offline, are left out.

    Raises `InputError` if it has no rows, or a line is neither JSON nor a topic and its payload.
    """
    check_size(path)
    rows: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                rows += _rows(path, _object(path, line))
    if not rows:
        raise InputError(f"{path}: has no rows")
    return frame_of(rows)


def read_array(path: Path) -> pl.DataFrame:
    """Return a row for each object of a JSON array, which may be within an object.

    Raises `InputError` if there is none.
    """
    found = json_of(path)
    if isinstance(found, dict):
        found = next((each for each in found.values() if _holds_rows(each)), None)
    if not _holds_rows(found):
        raise InputError(f"{path}: holds no array of objects")
    return frame_of([row for each in found for row in _rows(path, each)])


def _holds_rows(found: Any) -> bool:  # noqa: ANN401  of JSON
    return isinstance(found, list) and bool(found) and isinstance(found[0], dict)


def _object(path: Path, line: bytes) -> Any:  # noqa: ANN401  of JSON
    """Return what a line holds; `mosquitto_sub -v` writes a topic, a space and the payload."""
    topic, _, payload = line.strip().partition(b" ")
    if line.lstrip()[:1] in b"{[" or not payload:
        return json_of(path, line)
    return {"topic": topic.decode(errors="replace"), "payload": payload.decode(errors="replace")}


def _rows(path: Path, found: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401  of JSON
    if not isinstance(found, dict):
        raise InputError(f"{path}: a line is no object")
    if not ("topic" in found and "payload" in found):
        yield dict(_spread(found))
        return
    payload = found["payload"]
    if isinstance(payload, str):
        try:
            payload = json_of(path, payload.encode())
        except InputError:
            return
    levels = {f"_topic_{i}": each for i, each in enumerate(str(found["topic"]).split("/"))}
    own = {name: found[name] for name in ("time", "ts", "timestamp") if name in found}
    for each in payload if isinstance(payload, list) else [payload]:
        if isinstance(each, Mapping):
            yield {**own, **dict(_spread(each)), **levels}


def _spread(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _spread(value)
        else:
            yield name, value


def _recognizes(path: Path, head: bytes) -> bool:
    return (
        path.suffix.lower() in {".jsonl", ".ndjson"}
        or (head.lstrip()[:1] == b"{" and b'"topic"' in head and b'"payload"' in head)
        or _SUBSCRIBED.match(head) is not None
    )


def _is_array(path: Path, head: bytes) -> bool:
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return first == b"[" or (first == b"{" and path.suffix.lower() == ".json")


READER = FileKind("JSON lines", _recognizes, read)
ARRAY = FileKind("a JSON array", _is_array, read_array)
