"""Messages of the codec `hfp`."""

import json

from anonymizer.codecs import CoarsePoint
from anonymizer.domain.fixes import Fix
from tests.codecs.sample import ISO, LAT, LON, NO_FIX, SCHEMA, TIME_FORM, TS, Stated, written


def samples() -> list[Stated]:
    at = {"lat": 60.25, "long": 24.5, "tst": "2024-02-28T07:37:59.634Z", "tsi": 1709105879}
    return [
        ("position", {"VP": {**at, "oper": 12, "veh": 1825}}, [
            Fix(60.25, 24.5, 1709105879.634, "12/1825"),
        ]),
        ("readings", {"VP": {**at, "tst": None, "spd": 12.5, "hdg": 333, "acc": -1}}, [
            Fix(60.25, 24.5, 1709105879.0, None, {"speed_mps": 12.5, "heading_deg": 333.0}),
        ]),
        ("bad readings", {"VP": {**at, "tst": None, "spd": {}, "hdg": -1}}, [
            Fix(60.25, 24.5, 1709105879.0),
        ]),
        ("departure", {"DEP": at}, [Fix(60.25, 24.5, 1709105879.634)]),
        ("whole seconds", {"VP": {**at, "tst": None}}, [Fix(60.25, 24.5, 1709105879.0)]),
        ("no operator", {"VP": {**at, "oper": None, "veh": 9}}, [Fix(60.25, 24.5, 1709105879.634)]),
        ("empty vehicle", {"VP": {**at, "oper": 12, "veh": ""}}, [
            Fix(60.25, 24.5, 1709105879.634),
        ]),
        ("no position", {"VP": {**at, "lat": None, "long": None}}, [NO_FIX]),
        ("half a position", {"VP": {"lat": 60.25}}, [NO_FIX]),
        ("not available", {"VP": {**at, "loc": "N/A"}}, [NO_FIX]),
        ("odometer", {"VP": {**at, "loc": "ODO"}}, [Fix(60.25, 24.5, 1709105879.634)]),
        ("no time at all", {"VP": {"lat": 60.25, "long": 24.5}}, [Fix(60.25, 24.5)]),
        ("not a time", {"VP": {**at, "tst": "yesterday"}}, [TIME_FORM]),
        ("words", {"VP": {**at, "lat": "north"}}, [SCHEMA]),
        ("two events", {"VP": at, "DUE": at}, [SCHEMA]),
        ("no event", {}, [SCHEMA]),
        ("another format", {"_type": "location"}, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {"VP": {
        "desi": "550", "dir": "1", "oper": 22, "veh": 1042, "tst": ISO, "tsi": TS, "spd": 9.7,
        "hdg": 87, "lat": LAT, "long": LON, "acc": 0.1, "dl": -40, "odo": 5120, "drst": 0,
        "oday": "2027-01-15", "jrn": 311, "line": 262, "start": "09:41", "loc": "GPS",
        "stop": None, "route": "2550", "occu": 0,
    }}
)  # fmt: skip


def stated(point: CoarsePoint) -> bytes:
    place = {"lat": point.lat, "long": point.lon, "tsi": point.time}
    return json.dumps({"VP": place | {"oper": 1, "veh": point.pseudonym}}).encode()
