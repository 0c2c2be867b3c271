"""What samples of a format are made of: a message, what is read of it, and one of usual length."""

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec import structs

from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

EMPTY = Outcome.INVALID__EMPTY
MALFORMED = Outcome.INVALID__MALFORMED
NO_FIX = Outcome.INVALID__NO_FIX
NOT_A_POSITION = Outcome.INVALID__NOT_A_POSITION
NULL_ISLAND = Outcome.INVALID__NULL_ISLAND
ENCRYPTED = Outcome.INVALID__ENCRYPTED
OUT_OF_RANGE = Outcome.INVALID__OUT_OF_RANGE
SCHEMA = Outcome.INVALID__SCHEMA
TIME_FORM = Outcome.INVALID__TIME_FORM
NOT_DEGREES = Outcome.INVALID__NOT_DEGREES


def plain(found: Iterable[Fix | Outcome]) -> list[Fix | Outcome]:
    """Return what was decoded without what is noted beside it: bad readings, a missing zone."""
    return [
        structs.replace(each, unusable=(), zoneless=False) if isinstance(each, Fix) else each
        for each in found
    ]


Stated: TypeAlias = tuple[str, Any, list[Fix | Outcome]]
"""What it is about, its message (any JSON, or the bytes of another format), and what it yields."""


class Sample(NamedTuple):
    codec: str
    about: str
    message: Any
    expected: list[Fix | Outcome]

    @property
    def payload(self) -> bytes:
        stated = self.message
        return stated if isinstance(stated, bytes) else json.dumps(stated).encode()


LOST: list[dict[str, Any]] = [
    {"fix": False}, {"gpsFix": 0}, {"GPS_valid": "false"}, {"fixFailed": True}, {"sats": 0},
    {"satellites": "0"}, {"hdop": -1}, {"hdop": "99.99"}, {"fix": "no fix"}, {"fixMode": 1},
]  # fmt: skip
"""What devices say beside a place when their receivers have none."""
FOUND: list[tuple[dict[str, Any], dict[str, float] | None]] = [
    ({"fix": True}, None),
    ({"valid": 1}, {"valid": 1.0}),
    ({"sats": 7}, {"sats": 7.0}),
    ({"hdop": 0.8}, {"hdop": 0.8}),
    ({"fixmode": 3}, {"fixmode": 3.0}),
    ({"nofix": False}, None),
    ({"fix": None}, None),
    ({"status": 0}, {"status": 0.0}),
    ({"f" + "-" * 63 + "ix": False}, None),
]
"""What says nothing of a fix, or that there is one; names of more than 64 characters are none."""
TIMES_OF_FIX: list[tuple[dict[str, Any], dict[str, float] | None]] = [
    ({"time": "2026-02-10T08:00:00Z"}, None),
    ({"time": "2026-02-10 08:00:00"}, None),
    ({"gpsTime": "1770710400"}, None),
    ({"ts": 1770710400000}, {"ts": 1770710400000.0}),
    ({"time": "2026-02-10T09:00:00Z", "fixTime": "2026-02-10T08:00:00Z"}, None),
]

Writer: TypeAlias = Callable[[float, float], bytes]
"""Writes a message of usual length with one position, of degrees."""
TS = 1_800_000_000
ISO = "2027-01-15T08:00:00.250Z"
LAT, LON, LAT7, LON7 = "@lat@", "@lon@", "@lat7@", "@lon7@"
"""Where coordinates belong in a message, in degrees or in 1e-7 degrees."""


def written(message: Any) -> Writer:  # noqa: ANN401  JSON
    template = json.dumps(message)

    def write(lat: float, lon: float) -> bytes:
        text = template.replace(f'"{LAT}"', f"{lat:.7f}").replace(f'"{LON}"', f"{lon:.7f}")
        text = text.replace(f'"{LAT7}"', f"{lat * 1e7:.0f}")
        return text.replace(f'"{LON7}"', f"{lon * 1e7:.0f}").encode()

    return write


def fix_with(fix: Fix, readings: dict[str, float]) -> Fix:
    return Fix(fix.lat, fix.lon, fix.ts, fix.device, readings)
