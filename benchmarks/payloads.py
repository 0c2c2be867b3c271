"""Typical messages of every codec, of realistic length, that differ only in their positions."""

import json
from collections.abc import Iterator

import msgspec

from anonymizer.networks.grids import ORIGIN_LAT, ORIGIN_LON
from tests.codecs.samples import TYPICAL


def messages(codec: str, n: int) -> list[bytes]:
    """Return `n` distinct messages of a codec, with one position each."""
    return [TYPICAL[codec](lat, lon) for lat, lon in _places(n)]


def batches(codec: str, n: int, *, of: int) -> list[bytes]:
    """Return `n` positions in a native format, `of` in a message, each of another device."""
    each = [
        {"device": f"device-{i}", **json.loads(payload)}
        for i, payload in enumerate(messages("native", n))
    ]
    encode = msgspec.msgpack.encode if codec == "msgpack" else msgspec.json.encode
    return [encode(each[i : i + of]) for i in range(0, n, of)]


def _places(n: int) -> Iterator[tuple[float, float]]:
    return ((ORIGIN_LAT + i * 1e-6, ORIGIN_LON - i * 1e-6) for i in range(n))
