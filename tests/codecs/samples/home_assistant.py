"""Messages of the codec `home_assistant`."""

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import LAT, LON, NO_FIX, OUT_OF_RANGE, SCHEMA, Stated, written


def samples() -> list[Stated]:
    return [
        ("tracker", {"latitude": 2.0, "longitude": 1, "gps_accuracy": 60}, [
            Fix(2.0, 1.0, readings={"accuracy_m": 60.0}),
        ]),
        ("battery", {"latitude": 2, "longitude": 1, "battery_level": 37}, [
            Fix(2.0, 1.0, readings={"battery_percent": 37.0}),
        ]),
        ("bad battery", {"latitude": 2, "longitude": 1, "battery_level": "low"}, [Fix(2.0, 1.0)]),
        ("half", {"longitude": 1.0}, [SCHEMA]),
        ("words", {"latitude": "north", "longitude": 1}, [SCHEMA]),
        ("unknown", {"latitude": "unknown", "longitude": "unavailable"}, [NO_FIX]),
        ("negative accuracy", {"latitude": 2, "longitude": 1, "gps_accuracy": "-1"}, [NO_FIX]),
        ("service call", {"dev_id": "x", "gps": [10.0, 10.0]}, [SCHEMA]),
        ("out of range", {"latitude": 1e300, "longitude": 1}, [OUT_OF_RANGE]),
    ]  # fmt: skip


typical = written(
    {
        "latitude": LAT, "longitude": LON, "gps_accuracy": 12, "battery_level": 78,
    }
)  # fmt: skip
