"""Messages of the codec `etsi_cam`."""

import json
from typing import Any

from anonymizer.codecs import CoarsePoint, etsi_cam
from anonymizer.domain.fixes import Fix
from tests.codecs.sample import (
    LAT7,
    LON7,
    NO_FIX,
    NOT_A_POSITION,
    OUT_OF_RANGE,
    SCHEMA,
    TS,
    Stated,
    fix_with,
    written,
)


def samples() -> list[Stated]:
    place = {"latitude": 485000000, "longitude": 22500000}

    def orange(at: Any = place, **more: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        message = {"station_id": 7, "basic_container": {"reference_position": at}}
        return {"type": "cam", "timestamp": 1800000000250, "message": message | more}

    def vanetza(at: Any, station_type: int = 5, **fast: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
        parameters = {
            "basicContainer": {"stationType": station_type, "referencePosition": at},
            "highFrequencyContainer": {"basicVehicleContainerHighFrequency": fast},
        }
        cam = {"generationDeltaTime": 3, "camParameters": parameters}
        return {"timestamp": 1800000000.25, "fields": {"header": {"stationId": 7}, "cam": cam}}

    degrees = {"latitude": 48.5, "longitude": 2.25}
    fix = Fix(48.5, 2.25, 1800000000.25, "7")
    moving = {"speed_mps": 8.5, "heading_deg": 90.5}
    first = {"high_frequency_container": {"speed": 850, "heading": 905}}
    second = {"high_frequency_container": {"basic_vehicle_container_high_frequency": {
        "speed": {"value": 850, "confidence": 1}, "heading": {"value": 905},
    }}}  # fmt: skip
    third: dict[str, Any] = {"speed": {"speedValue": 8.5}, "heading": {"headingValue": 90.5}}
    bare = vanetza(degrees)["fields"]["cam"]
    return [
        ("its-client", orange(), [fix]),
        ("its-client, version 1", orange(**first), [fix_with(fix, moving)]),
        ("its-client, version 2", orange(**second), [fix_with(fix, moving)]),
        ("its-client, later name", {**orange(), "type": "cam", "message_type": "cam"}, [fix]),
        ("vanetza", vanetza(degrees, **third), [fix_with(fix, moving)]),
        ("vanetza in integers", vanetza(place), [fix]),
        ("standard", {"header": {"stationID": 7}, "cam": bare}, [Fix(48.5, 2.25, None, "7")]),
        ("inside", {**bare, "stationId": 7}, [Fix(48.5, 2.25, None, "7")]),
        ("nameless", bare, [Fix(48.5, 2.25)]),
        ("motion unavailable", orange(high_frequency_container={"speed": 16383, "heading": 3601}), [
            fix,
        ]),
        ("motion in words", orange(high_frequency_container={"speed": "fast"}), [fix]),
        ("unavailable", orange({"latitude": 900000001, "longitude": 1800000001}), [NO_FIX]),
        ("unavailable degrees", vanetza({"latitude": 90.0000001, "longitude": 2.25}), [NO_FIX]),
        ("null", orange({"latitude": None, "longitude": 1}), [NO_FIX]),
        ("roadside unit", vanetza(degrees, 15), [NOT_A_POSITION]),
        ("denm", {"type": "denm", "message": {}}, [NOT_A_POSITION]),
        ("denm of vanetza", {"fields": {"denm": {}}}, [NOT_A_POSITION]),
        ("half", orange({"latitude": 1}), [SCHEMA]),
        ("nothing", {}, [SCHEMA]),
        ("words", orange({"latitude": "north", "longitude": 1}), [SCHEMA]),
        ("not an integer of its", orange({"latitude": 10**400, "longitude": 1}), [SCHEMA]),
        ("beyond the pole", orange({"latitude": 900000009, "longitude": 1}), [OUT_OF_RANGE]),
    ]  # fmt: skip


typical = written(
    {
        "type": "cam", "origin": "self", "version": "1.1.3", "source_uuid": "uuid14",
        "timestamp": TS * 1000 + 250,
        "message": {
            "protocol_version": 1, "station_id": 42, "generation_delta_time": 3,
            "basic_container": {
                "station_type": 5,
                "reference_position": {"latitude": LAT7, "longitude": LON7, "altitude": 780},
                "confidence": {"position_confidence_ellipse": {
                    "semi_major_confidence": 100, "semi_minor_confidence": 50,
                    "semi_major_orientation": 180,
                }, "altitude": 3},
            },
            "high_frequency_container": {
                "heading": 870, "speed": 970, "drive_direction": 0, "vehicle_length": 40,
                "curvature": 11, "acceleration_control": "0000010", "yaw_rate": 562,
            },
        },
    }
)  # fmt: skip


def stated(point: CoarsePoint) -> bytes:
    """Write seconds, as which times as small as those of tests are read."""
    return json.dumps(json.loads(etsi_cam.encode(point)) | {"timestamp": point.time}).encode()
