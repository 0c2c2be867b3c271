"""Messages of the codec `msgpack`; `test_msgpack.py` has more."""

import json

import msgspec

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import EMPTY, TS, Stated
from tests.codecs.samples import native


def samples() -> list[Stated]:
    return [
        ("usual", typical(60.5, 24.5), [Fix(60.5, 24.5, TS + 0.25)]),
        ("empty", b"", [EMPTY]),
    ]


def typical(lat: float, lon: float) -> bytes:
    return msgspec.msgpack.encode(json.loads(native.typical(lat, lon)))
