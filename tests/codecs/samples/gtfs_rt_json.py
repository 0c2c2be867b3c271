"""Messages of the codec `gtfs_rt_json`."""

from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import (
    EMPTY,
    LAT,
    LON,
    NO_FIX,
    NOT_A_POSITION,
    SCHEMA,
    TIME_FORM,
    TS,
    Stated,
    written,
)


def samples() -> list[Stated]:
    at = {"latitude": 30.25, "longitude": -97.5}
    vehicle = {"position": at, "vehicle": {"id": "8916"}, "timestamp": "1454849104"}
    entity = {"id": "e", "vehicle": vehicle}
    fix = Fix(30.25, -97.5, 1454849104.0, "8916")
    feed = {"header": {"timestamp": 5}, "entity": [
        entity,
        {"id": "e", "vehicle": {"position": at, "timestamp": 0}},
        {"id": "e", "vehicle": {"position": {"latitude": 30.25}}},
        {**entity, "is_deleted": True},
        {"id": "e", "tripUpdate": {}},
        {"id": "e", "vehicle": {"vehicle": {"id": ""}}},
    ]}  # fmt: skip
    each: list[Fix | Outcome] = [
        fix, Fix(30.25, -97.5, None, "e"), SCHEMA, NOT_A_POSITION, NOT_A_POSITION, NO_FIX,
    ]  # fmt: skip
    return [
        ("feed", feed, each),
        ("proxied feed", {"status": "OK", "response": feed}, each),
        ("entity", entity, [fix]),
        ("readings", {"vehicle": {"position": {**at, "speed": 1.5, "bearing": 90}}}, [
            Fix(30.25, -97.5, readings={"speed_mps": 1.5, "heading_deg": 90.0}),
        ]),
        ("bad readings", {"vehicle": {"position": {**at, "speed": [], "bearing": "N"}}}, [
            Fix(30.25, -97.5),
        ]),
        ("entity, deleted", {**entity, "isDeleted": True}, [NOT_A_POSITION]),
        ("nameless entity", {"vehicle": {"position": at}}, [Fix(30.25, -97.5)]),
        ("empty names", {"id": "", "vehicle": {"position": at, "vehicle": {"id": ""}}}, [
            Fix(30.25, -97.5),
        ]),
        ("feed without time", {"header": {}, "entity": [{"vehicle": {"position": at}}]}, [
            Fix(30.25, -97.5),
        ]),
        ("feed without header", {"entity": [entity]}, [fix]),
        ("feed of nothing", {"header": {}}, [EMPTY]),
        ("proxied nothing", {"response": {"entity": []}}, [EMPTY]),
        ("time in words", {"vehicle": {**vehicle, "timestamp": "noon"}}, [TIME_FORM]),
        ("words", {"id": "e", "vehicle": {"position": {**at, "latitude": "N"}}}, [SCHEMA]),
        ("nothing", {}, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {"id": "8916", "vehicle": {
        "trip": {"tripId": "1538443", "routeId": "20"}, "vehicle": {"id": "8916"},
        "position": {"latitude": LAT, "longitude": LON, "speed": 4.9}, "timestamp": str(TS),
    }}
)  # fmt: skip
