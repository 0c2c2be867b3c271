"""Messages of the codec `gtfs_rt`; `test_gtfs_rt.py` has more."""

from google.transit.gtfs_realtime_pb2 import FeedMessage

from anonymizer.domain.fixes import Fix
from tests.codecs.sample import EMPTY, TS, Stated


def samples() -> list[Stated]:
    return [
        ("usual", typical(60.5, 24.5), [Fix(60.5, 24.5, None, "8916")]),
        ("empty", b"", [EMPTY]),
    ]


def typical(lat: float, lon: float) -> bytes:
    feed = FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    feed.header.timestamp = TS
    entity = feed.entity.add()
    entity.id = "8916"
    entity.vehicle.vehicle.id = "8916"
    entity.vehicle.trip.trip_id = "1538443"
    entity.vehicle.position.latitude = lat
    entity.vehicle.position.longitude = lon
    encoded: bytes = feed.SerializeToString()
    return encoded
