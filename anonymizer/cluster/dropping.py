"""The notice about a dropped input: where it is in Kafka and why, without its content."""

from typing import NamedTuple

import msgspec


class Dropped(NamedTuple):
    """An input that a stage did not take.

    It lies at `offset` until it is deleted; `at_s`: when it was written, unix seconds; `reason`:
    see `resident.Counts`.
    """

    topic: str
    partition: int
    offset: int
    at_s: float
    n_bytes: int
    reason: str


encode_dropped = msgspec.json.Encoder().encode
decode_dropped = msgspec.json.Decoder(Dropped).decode
