"""What readers of others find in echoes: `read_echoes.py FORMAT FILE...`, in their environment.

Writes a JSON array of [name, latitude, longitude, unix seconds], one for each file.
"""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

Seen = tuple[str, float, float, float]


def _of_feed(feed: Any) -> Seen:  # noqa: ANN401  of the bindings
    [entity] = feed.entity
    vehicle = entity.vehicle
    place = vehicle.position
    return vehicle.vehicle.id, place.latitude, place.longitude, vehicle.timestamp


def gtfs_rt(payload: bytes) -> Seen:
    """Read with the bindings of GTFS-realtime."""
    bindings = import_module("google.transit.gtfs_realtime_pb2")
    return _of_feed(bindings.FeedMessage.FromString(payload))


def gtfs_rt_json(payload: bytes) -> Seen:
    """Read the JSON of protocol buffers."""
    bindings = import_module("google.transit.gtfs_realtime_pb2")
    parse = import_module("google.protobuf.json_format").Parse
    return _of_feed(parse(payload, bindings.FeedMessage()))


def msgpack(payload: bytes) -> Seen:
    """Read MessagePack."""
    said = import_module("msgpack").unpackb(payload)
    return said["device"], said["lat"], said["lon"], said["ts"]


def ngsi_ld(payload: bytes) -> Seen:
    """Read an entity with a client of context brokers."""
    entity = import_module("ngsildclient").Entity.from_dict(json.loads(payload))
    lon, lat = entity["location.value.coordinates"]
    seen = datetime.fromisoformat(entity["location.observedAt"])
    return entity.id.rpartition(":")[2], lat, lon, seen.timestamp()


READERS: dict[str, Callable[[bytes], Seen]] = {
    each.__name__: each for each in (gtfs_rt, gtfs_rt_json, msgpack, ngsi_ld)
}

if __name__ == "__main__":
    read = READERS[sys.argv[1]]
    sys.stdout.write(json.dumps([read(Path(file).read_bytes()) for file in sys.argv[2:]]))
