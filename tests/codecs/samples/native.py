"""Messages of the codec `native`."""

from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import (
    EMPTY,
    LAT,
    LON,
    NO_FIX,
    NULL_ISLAND,
    OUT_OF_RANGE,
    SCHEMA,
    TIME_FORM,
    TS,
    Stated,
    written,
)


def samples() -> list[Stated]:
    at = {"lat": 1.5, "lon": -2}
    return [
        ("bare", at, [Fix(1.5, -2.0)]),
        ("full", {**at, "ts": 9.5, "device": "a"}, [Fix(1.5, -2.0, 9.5, "a")]),
        ("nulls", {**at, "ts": None, "device": None}, [Fix(1.5, -2.0)]),
        ("extra", {**at, "speed": {"kmh": [1, "x"]}}, [Fix(1.5, -2.0)]),
        ("readings", {**at, "readings": {"pm2.5": 12, "Temp": -3.5}}, [
            Fix(1.5, -2.0, readings={"pm2.5": 12.0, "Temp": -3.5}),
        ]),
        ("bad readings", {**at, "readings": {
            "a": True, "b": "1", "c": None, "d": 10**400, "e": [1], "f": 4,
        }}, [Fix(1.5, -2.0, readings={"f": 4.0})]),
        ("no readings", {**at, "readings": {}}, [Fix(1.5, -2.0)]),
        ("null readings", {**at, "readings": None}, [Fix(1.5, -2.0)]),
        ("list of readings", {**at, "readings": [1, 2]}, [Fix(1.5, -2.0)]),
        ("bad readings alone", {**at, "readings": {"a": "x"}}, [Fix(1.5, -2.0)]),
        ("array with readings", [{**at, "readings": {"a": 1}}, {**at, "readings": 1}], [
            Fix(1.5, -2.0, readings={"a": 1.0}), Fix(1.5, -2.0),
        ]),
        ("integer id", {**at, "device": 7}, [Fix(1.5, -2.0, None, "7")]),
        ("empty id", {**at, "device": ""}, [Fix(1.5, -2.0)]),
        ("flag as id", {**at, "device": True}, [Fix(1.5, -2.0)]),
        ("fraction as id", {**at, "device": 1.5}, [Fix(1.5, -2.0)]),
        ("endless id", {**at, "device": 10**30}, [Fix(1.5, -2.0)]),
        ("word as latitude", {"lat": "north", "lon": 2}, [SCHEMA]),
        ("no word", {"lat": "unknown", "lon": "None"}, [NO_FIX]),
        ("negative accuracy", {**at, "accuracy_m": -1}, [NO_FIX]),
        ("negative accuracy among readings", {**at, "readings": {"accuracy_m": -1}}, [NO_FIX]),
        ("flag as latitude", {"lat": True, "lon": 2}, [SCHEMA]),
        ("no longitude", {"lat": 1}, [SCHEMA]),
        ("null longitude", {"lat": 1, "lon": None}, [NO_FIX]),
        ("text as time", {**at, "ts": "9"}, [Fix(1.5, -2.0, 9.0)]),
        ("iso time", {**at, "ts": "2026-02-10T08:00:00Z"}, [Fix(1.5, -2.0, 1770710400.0)]),
        ("word as time", {**at, "ts": "noon"}, [TIME_FORM]),
        ("a clock that was never set", {**at, "ts": 0}, [Fix(1.5, -2.0)]),
        ("milliseconds", {**at, "ts": 1800000000000}, [Outcome.INVALID__TIME_IN_MS]),
        ("beyond the pole", {"lat": 90.1, "lon": 0}, [OUT_OF_RANGE]),
        ("beyond the date line", {"lat": 0, "lon": -180.1}, [OUT_OF_RANGE]),
        ("corner", {"lat": -90, "lon": 180}, [Fix(-90.0, 180.0)]),
        ("null island", {"lat": 0, "lon": -0.0}, [NULL_ISLAND]),
        ("array", [at, {"lat": 1}, 3, {**at, "ts": 1}], [
            Fix(1.5, -2.0), SCHEMA, SCHEMA, Fix(1.5, -2.0, 1.0),
        ]),
        ("array of nothing", [], [EMPTY]),
        ("array in an array", [[at]], [SCHEMA]),
        ("a number", 3, [SCHEMA]),
        ("null", None, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {"ts": TS + 0.25, "lat": LAT, "lon": LON}
)  # fmt: skip
