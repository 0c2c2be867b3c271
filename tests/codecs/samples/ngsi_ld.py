"""Messages of the codec `ngsi_ld`."""

from typing import Any

from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import ISO, LAT, LON, NOT_A_POSITION, OUT_OF_RANGE, SCHEMA, Stated, written


def samples() -> list[Stated]:
    vehicle = {"id": "urn:v", "type": "Vehicle"}
    point = {"type": "Point", "coordinates": [-3.25, 40.5]}
    when = "2021-03-11T15:51:02+05:30"
    when_s = 1615458062.0
    fix = Fix(40.5, -3.25, when_s, "urn:v")
    geo = {"type": "GeoProperty", "value": point}
    line = {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}
    stamped: dict[str, Any] = {"type": "Property", "value": {"@type": "DateTime", "@value": when}}
    observed = {**vehicle, "location": {**geo, "observedAt": when}}
    times: list[tuple[str, Any, list[Fix | Outcome]]] = [
        (f"time as {name}: {stated}", {**vehicle, "location": point, name: stated}, [fix])
        for name in ("dateObserved", "TimeInstant", "timestamp")
        for stated in (when, {"type": "DateTime", "value": when}, stamped)
    ]
    v2 = {
        **vehicle,
        "TimeInstant": {"type": "DateTime", "value": when},
        "location": {"type": "geo:point", "value": "40.5, -3.25"},
    }
    return [
        ("key-values", {**vehicle, "location": point, "observationDateTime": when}, [fix]),
        ("normalized", {**vehicle, "location": geo, "observationDateTime": stamped}, [fix]),
        ("plain value", {**vehicle, "location": geo, "observationDateTime": {"value": when}}, [
            fix,
        ]),
        ("own time", {**vehicle, "location": {**geo, "observedAt": "1970-01-01T00:00:09Z"},
                      "observationDateTime": stamped}, [Fix(40.5, -3.25, 9.0, "urn:v")]),
        ("concise", {**vehicle, "location": {"value": point, "observedAt": when}}, [fix]),
        ("readings", {**vehicle, "location": point, "speed": 36, "heading": 90, "battery": 0.25}, [
            Fix(40.5, -3.25, None, "urn:v", {
                "speed_mps": 10.0, "heading_deg": 90.0, "battery_percent": 25.0,
            }),
        ]),
        ("properties", {
            **vehicle, "location": point, "speed": {"type": "Property", "value": 36},
            "heading": {"value": 90, "unitCode": "DD"}, "battery": {"value": 1, "unitCode": "P1"},
        }, [Fix(40.5, -3.25, None, "urn:v", {"speed_mps": 10.0, "heading_deg": 90.0})]),
        ("bad readings", {
            **vehicle, "location": point, "speed": -1, "heading": {"value": "N"}, "battery": 1e308,
        }, [Fix(40.5, -3.25, None, "urn:v")]),
        ("empty property", {**vehicle, "location": point, "speed": {}}, [
            Fix(40.5, -3.25, None, "urn:v"),
        ]),
        ("altitude", {**vehicle, "location": {**point, "coordinates": [-3.25, 40.5, 600]},
                      "observationDateTime": when}, [fix]),
        ("several", [{**vehicle, "location": point}, {"id": "x"}], [
            Fix(40.5, -3.25, None, "urn:v"), SCHEMA,
        ]),
        ("line", {**vehicle, "location": line}, [NOT_A_POSITION]),
        ("no location", vehicle, [NOT_A_POSITION]),
        ("notification", {**vehicle, "type": "Notification", "data": []}, [NOT_A_POSITION]),
        ("property without value", {**vehicle, "location": {"type": "GeoProperty"}}, [SCHEMA]),
        ("no type", {**vehicle, "location": {"coordinates": [1, 2]}}, [SCHEMA]),
        ("one coordinate", {**vehicle, "location": {**point, "coordinates": [1]}}, [SCHEMA]),
        ("words", {**vehicle, "location": {**point, "coordinates": ["N", 2]}}, [SCHEMA]),
        *times,
        ("a period", {**vehicle, "location": point, "dateObserved": f"{when}/{when}"}, [
            Fix(40.5, -3.25, None, "urn:v"),
        ]),
        ("modified place", {**vehicle, "location": {**geo, "modifiedAt": when}}, [fix]),
        ("modified entity", {**vehicle, "location": geo, "modifiedAt": when}, [
            Fix(40.5, -3.25, None, "urn:v"),
        ]),
        ("the nearest time", {**vehicle, "dateObserved": "2026-01-01T00:00:00Z", "location": {
            **geo, "metadata": {"TimeInstant": {"type": "DateTime", "value": when}}}}, [fix]),
        ("notified", {"type": "Notification", "id": "n", "data": [observed, {"id": "x"}]}, [
            fix, SCHEMA,
        ]),
        ("notified by mqtt", {"metadata": {}, "body": {"type": "Notification", "id": "n",
                                                       "data": [observed]}}, [fix]),
        ("notified by version 2", {"subscriptionId": "s", "data": [v2]}, [fix]),
        ("version 2", v2, [fix]),
        ("version 2, geo:json", {**vehicle, "TimeInstant": when,
                                 "location": {"type": "geo:json", "value": point}}, [fix]),
        ("version 2, one number", {**v2, "location": {"type": "geo:point", "value": "1"}}, [
            SCHEMA,
        ]),
        ("swapped", {**vehicle, "location": {**point, "coordinates": [40, 100]}}, [OUT_OF_RANGE]),
        ("nameless", {**vehicle, "id": "", "location": point}, [Fix(40.5, -3.25)]),
        ("nothing", {}, [SCHEMA]),
    ]  # fmt: skip


typical = written(
    {
        "id": "urn:ngsi-ld:Vehicle:17", "type": "Vehicle", "vehicleType": "lorry",
        "speed": {"type": "Property", "value": 36.0}, "bearing": {"type": "Property", "value": 87},
        "location": {
            "type": "GeoProperty", "observedAt": ISO,
            "value": {"type": "Point", "coordinates": [LON, LAT]},
        },
    }
)  # fmt: skip
