"""Benchmarks of decoding: all codecs, peers of the native one, and the whole decode stage."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decoding import Decoder
from anonymizer.pipeline.positions.inbox import Arrivals
from anonymizer.pipeline.positions.topics import TopicRouter
from anonymizer.settings import Settings
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
    """Time the codecs and the decode stage for these batch sizes."""
    return [_codecs(sizes), _peers(sizes)]


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
        "stage",
        "router, decoder",
    )
    notes = (
        "json: the standard library's, with the checks of the naive twin in tests/codecs.",
        "pydantic: a strict model with the same ranges.",
        "stage: `anonymizer.pipeline.positions.decoding`, from deliveries to columns.",
        "router, decoder: share of the stage that is not spent in the codec.",
    )
    return Table("Native format: µs a message", columns, [_peer_row(n) for n in sizes], notes)


def _peer_row(n: int) -> tuple[int, float, float, float, float, float, float, str]:
    batch = messages("native", n)
    native = CODECS["native"]
    agree([native(payload) for payload in batch[:100]], [naive_decode(p) for p in batch[:100]])
    ours = _each_us(native, batch)
    plain = _each_us(naive_decode, batch)
    strict = _each_us(_Position.model_validate_json, batch)

    given = Settings()
    decoder = Decoder(TopicRouter(given.inputs), given.limits, Ledger())
    deliveries = [Delivery(f"positions/device-{i}", payload, 0) for i, payload in enumerate(batch)]
    arrivals = [Arrivals(0.0, deliveries)]
    stage = best_us(decoder.decode, arrivals, n_records=n, runs=runs_for(n))
    share = f"{1 - ours / stage:.0%}"
    return n, ours, plain, plain / ours, strict, strict / ours, stage, share


def _each_us(decode_one: Callable[[bytes], Any], batch: list[bytes]) -> float:
    def decode_all(batch: list[bytes]) -> None:
        for payload in batch:
            decode_one(payload)

    return best_us(decode_all, batch, n_records=len(batch), runs=runs_for(len(batch)))
