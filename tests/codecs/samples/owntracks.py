"""Messages of the codec `owntracks`."""

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import (
    ENCRYPTED,
    LAT,
    LON,
    NO_FIX,
    NOT_A_POSITION,
    NULL_ISLAND,
    SCHEMA,
    TS,
    Stated,
    written,
)


def samples() -> list[Stated]:
    at = {"_type": "location", "lat": 51.5, "lon": -0.25}
    return [
        ("location", {**at, "tst": 1700000000, "tid": "ab"}, [Fix(51.5, -0.25, 1.7e9)]),
        ("no time", at, [Fix(51.5, -0.25)]),
        ("readings", {**at, "vel": 36, "cog": 90.5, "batt": 37}, [
            Fix(51.5, -0.25, readings={
                "speed_mps": 10.0, "heading_deg": 90.5, "battery_percent": 37.0,
            }),
        ]),
        ("bad readings", {**at, "vel": -1, "cog": "N", "batt": None}, [Fix(51.5, -0.25)]),
        ("readings in text", {**at, "cog": " 90.0"}, [
            Fix(51.5, -0.25, readings={"heading_deg": 90.0}),
        ]),
        ("by http", {**at, "topic": "owntracks/a/b"}, [Fix(51.5, -0.25, None, "owntracks/a/b")]),
        ("transition", {**at, "_type": "transition", "event": "enter"}, [NOT_A_POSITION]),
        ("waypoint", {**at, "_type": "waypoint", "rad": 5}, [NOT_A_POSITION]),
        ("will", {"_type": "lwt", "tst": 1}, [NOT_A_POSITION]),
        ("encrypted", {"_type": "encrypted", "data": "x"}, [ENCRYPTED]),
        ("other lat", {"_type": "cmd", "lat": "north"}, [NOT_A_POSITION]),
        ("half a location", {"_type": "location", "lat": 51.5}, [SCHEMA]),
        ("words", {**at, "lat": "north"}, [SCHEMA]),
        ("negative accuracy", {**at, "acc": -1}, [NO_FIX]),
        ("no type", {"lat": 51.5, "lon": -0.25}, [SCHEMA]),
        ("null island", {**at, "lat": 0, "lon": 0}, [NULL_ISLAND]),
    ]  # fmt: skip


typical = written(
    {
        "_type": "location", "acc": 12, "alt": 21, "batt": 78, "bs": 1, "cog": 270, "conn": "m",
        "lat": LAT, "lon": LON, "m": 1, "p": 100.2, "t": "p", "tid": "ab", "tst": TS,
        "vac": 4, "vel": 36,
    }
)  # fmt: skip
