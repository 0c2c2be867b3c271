"""Hostile parts of messages, every place to put them, and what a codec must return regardless."""

import math
from collections.abc import Iterator
from typing import Any

from anonymizer.codecs import CODECS, Codec
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

HOSTILE: list[Any] = [
    None, True, 0, -1, 1.5, 2**31, 2**63, 2**64, 10**400, -(10**400), 1e308, 5e-324,
    float("nan"), float("inf"), "", "0", "-1", "9" * 19, "9" * 30, "NaN", "\ud800", "\x00", "ä",
    "9999-12-31T23:59:59.999999999-23:59", "0001-01-01T00:00:00+23:59", "2016-12-31T23:59:60Z",
    [], {}, [[]], [None], {"": None}, {"value": {"value": {}}},
]  # fmt: skip


def assert_sound(codec: str | Codec, payload: bytes) -> None:
    found = CODECS[codec](payload) if isinstance(codec, str) else codec(payload)
    assert len(found) >= 1
    for one in found:
        if isinstance(one, Fix):
            assert -90 <= one.lat <= 90
            assert -180 <= one.lon <= 180
            assert type(one.lat) is type(one.lon) is float
            assert (one.lat, one.lon) != (0, 0)
            assert one.ts is None or (type(one.ts) is float and abs(one.ts) < float("inf"))
            assert one.device is None or (type(one.device) is str and one.device)
            assert one.readings is None or one.readings
            for name, value in (one.readings or {}).items():
                assert type(name) is str
                assert type(value) is float
                assert math.isfinite(value)
        else:
            assert isinstance(one, Outcome)
            assert one.label[0] == "invalid"


def paths(node: object, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a message, the whole message last."""
    if isinstance(node, dict | list):
        for key, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield from paths(part, (*here, key))
    yield here


def with_part(node: Any, path: tuple[Any, ...], part: object) -> Any:  # noqa: ANN401  any JSON
    if not path:
        return part
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = with_part(copy[path[0]], path[1:], part)
    return copy
