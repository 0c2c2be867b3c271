"""Messages of the codec `senml`."""

import json

from anonymizer.codecs import CoarsePoint, senml
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import (
    EMPTY,
    LAT,
    LON,
    NO_FIX,
    NOT_A_POSITION,
    NULL_ISLAND,
    OUT_OF_RANGE,
    SCHEMA,
    TS,
    Stated,
    written,
)


def samples() -> list[Stated]:
    base = {"bn": "urn:dev:mac:0024befffe804ff1:", "bt": 1.8e9}
    lat = {"n": "lat", "u": "lat", "v": 60.5}
    lon = {"n": "lon", "u": "lon", "v": 24.5}
    fix = Fix(60.5, 24.5, 1.8e9, "urn:dev:mac:0024befffe804ff1")
    named = {"n": "latitude", "v": 60.5}, {"n": "Longitude", "u": "deg", "v": 24.5}
    later = {"n": "lat", "t": 5, "v": 61.5}, {"n": "lon", "t": 5, "v": 25.5}
    return [
        ("pair", [base | lat, lon], [fix]),
        ("base record alone", [base, lat, lon], [fix]),
        ("names without units", [base | named[0], named[1]], [fix]),
        ("base value", [base | {"bv": 60} | lat | {"v": 0.5}, lon | {"bv": 24, "v": 0.5}], [fix]),
        ("track", [base | lat, lon, *later], [fix, Fix(61.5, 25.5, 1.8e9 + 5, fix.device)]),
        ("half of a track", [base | lat, lon, later[0]], [fix, SCHEMA]),
        ("whole names", [lat | {"n": "urn:a:lat"}, lon | {"n": "urn:a:lon"}], [
            Fix(60.5, 24.5, None, "urn:a"),
        ]),
        ("devices of a gateway", [
            {"bn": "gw/"}, lat | {"n": "a/lat"}, lon | {"n": "b/lon"}, lon | {"n": "a/lon"},
        ], [Fix(60.5, 24.5, None, "gw/a"), SCHEMA]),
        ("readings", [
            base | lat, lon, {"n": "Temp", "u": "Cel", "v": -3}, {"n": "s", "u": "m/s", "v": 9},
            {"n": "b", "u": "%EL", "v": 50}, {"n": "accuracy", "u": "m", "v": 4},
            {"n": "open", "vb": True}, {"n": "word", "vs": "x"}, {"n": "lost", "v": None},
        ], [Fix(60.5, 24.5, 1.8e9, fix.device, {
            "Temp": -3.0, "speed_mps": 9.0, "battery_percent": 50.0, "accuracy_m": 4.0,
        })]),
        ("labels of CBOR", [
            {"-2": "a:", "-3": 1.8e9, "0": "lat", "1": "lat", "2": 60.5},
            {"0": "lon", "1": "lon", "2": 24.5},
        ], [Fix(60.5, 24.5, 1.8e9, "a")]),
        ("no time", [{"bn": "a"} | lat, lon], [Fix(60.5, 24.5, None, "a")]),
        ("seconds ago", [{"bn": "a", "bt": -5} | lat, lon | {"t": 0}], [
            Fix(60.5, 24.5, -5.0, "a"),
        ]),
        ("an hour ago", [{"bn": "a"} | lat | {"t": -3600}, lon | {"t": -3600}], [
            Fix(60.5, 24.5, -3600.0, "a"),
        ]),
        ("seconds ahead", [{"bn": "a", "bt": 5} | lat, lon], [Outcome.INVALID__FUTURE_TIME]),
        ("long ago", [{"bn": "a", "bt": -(2.0**30)} | lat, lon], [
            Fix(60.5, 24.5, -(2.0**30), "a"),
        ]),
        ("milliseconds", [base | {"bt": 1.8e12} | lat, lon], [Outcome.INVALID__TIME_IN_MS]),
        ("in radians", [base | lat | {"u": "rad"}, lon | {"u": "rad"}], [NOT_A_POSITION]),
        ("two latitudes", [base | lat, lat, lon], [SCHEMA]),
        ("other times", [base | lat, lon | {"t": 1}], [SCHEMA, SCHEMA]),
        ("text", [base | lat | {"v": "north"}, lon], [SCHEMA]),
        ("no value", [base | {"n": "lat", "u": "lat", "bv": 60}, lon], [SCHEMA]),
        ("null", [base | lat | {"v": None}, lon], [NO_FIX]),
        ("beyond the pole", [base | lat | {"v": 91.5}, lon], [OUT_OF_RANGE]),
        ("null island", [base | lat | {"v": 0}, lon | {"v": 0}], [NULL_ISLAND]),
        ("to be understood", [base | lat, lon | {"scale_": 2}], [SCHEMA]),
        ("a version to come", [base | {"bver": 11} | lat, lon], [SCHEMA]),
        ("no place", [base | {"n": "Temp", "v": 3}], [NOT_A_POSITION]),
        ("text as time", [base | {"bt": "now"} | lat, lon], [SCHEMA]),
        ("a record alone", base | lat, [SCHEMA]),
        ("nothing", [], [EMPTY]),
    ]  # fmt: skip


typical = written(
    [
        {"bn": "urn:dev:mac:0024befffe804ff1:", "bt": TS, "n": "lat", "u": "lat", "v": LAT},
        {"n": "lon", "u": "lon", "v": LON}, {"n": "speed", "u": "m/s", "v": 9.7},
    ]
)  # fmt: skip


def stated(point: CoarsePoint) -> bytes:
    """Write no time: one as small as those of tests is read as the time since it is read."""
    first, *others = json.loads(senml.encode(point))
    first.pop("bt")
    return json.dumps([first, *others]).encode()
