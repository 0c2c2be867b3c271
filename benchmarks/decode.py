"""Benchmarks of decoding: all codecs, peers of the native one, and from socket to columns."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from benchmarks.door import door
from benchmarks.payloads import messages
from benchmarks.tables import Cell, Table
from benchmarks.timing import agree, best_us, runs_for
from tests.codecs.test_native import naive_decode


class _Position(BaseModel):
    """The native format as a pydantic model."""

    model_config = ConfigDict(strict=True)

    lat: Annotated[float, Field(ge=-90, le=90)]
    lon: Annotated[float, Field(ge=-180, le=180)]
    ts: float | None = None
    device: str | None = None


def decode(sizes: Sequence[int]) -> list[Table]:
    """Time the codecs and the way in for these batch sizes."""
    return [_codecs(sizes), _peers(sizes), door(sizes[-1])]


def _codecs(sizes: Sequence[int]) -> Table:
    columns = ("codec", "bytes", *(f"{n:,} messages" for n in sizes))
    rows: list[tuple[Cell, ...]] = []
    for name, codec in CODECS.items():
        batches = [messages(name, n) for n in sizes]
        agree([type(fix) for fix in codec(batches[0][0])], [Fix])
        times = (_each_us(codec, batch) for batch in batches)
        rows.append((name, len(batches[0][0]), *times))
    return Table("Codecs, one position a message: µs a message", columns, rows)


def _peers(sizes: Sequence[int]) -> Table:
    columns = (
        "messages",
        "native",
        "json",
        "json/native",
        "pydantic",
        "pydantic/native",
    )
    notes = (
        "json: the standard library's, with the checks of the naive twin in tests/codecs.",
        "pydantic: a strict model with the same ranges.",
    )
    return Table("Native format: µs a message", columns, [_peer_row(n) for n in sizes], notes)


def _peer_row(n: int) -> tuple[int, float, float, float, float, float]:
    batch = messages("native", n)
    native = CODECS["native"]
    agree([native(payload) for payload in batch[:100]], [naive_decode(p) for p in batch[:100]])
    ours = _each_us(native, batch)
    plain = _each_us(naive_decode, batch)
    strict = _each_us(_Position.model_validate_json, batch)
    return n, ours, plain, plain / ours, strict, strict / ours


def _each_us(decode_one: Callable[[bytes], Any], batch: list[bytes]) -> float:
    def decode_all(batch: list[bytes]) -> None:
        for payload in batch:
            decode_one(payload)

    return best_us(decode_all, batch, n_records=len(batch), runs=runs_for(len(batch)))
