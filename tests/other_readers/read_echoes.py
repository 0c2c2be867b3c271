"""What readers of others find in echoes: `read_echoes.py FORMAT FILE...`, in their environment.

Writes a JSON array of [name, latitude, longitude, unix seconds, repetition], one for each file. Two
messages with the same repetition are one for the reader, or for those that its format is made for.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

Seen = tuple[str, float, float, float, Any]


def _of_feed(feed: Any) -> Seen:  # noqa: ANN401  of the bindings
    [entity] = feed.entity
    vehicle = entity.vehicle
    place, time = vehicle.position, vehicle.timestamp
    return vehicle.vehicle.id, place.latitude, place.longitude, time, [entity.id, time]


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
    return said["device"], said["lat"], said["lon"], said["ts"], [said["device"], said["ts"]]


def ngsi_ld(payload: bytes) -> Seen:
    """Read an entity with a client of context brokers, which keep one value for each time."""
    entity = import_module("ngsildclient").Entity.from_dict(json.loads(payload))
    lon, lat = entity["location.value.coordinates"]
    at = entity["location.observedAt"]
    time = datetime.fromisoformat(at).timestamp()
    return entity.id.rpartition(":")[2], lat, lon, time, [entity.id, at]


def geojson(payload: bytes) -> Seen:
    """Read a feature, declared as the page of formats does, with its id."""
    feature = import_module("geojson").loads(payload)
    if not feature.is_valid:
        raise ValueError(feature.errors())
    lon, lat = feature.geometry.coordinates
    time = feature.properties["time"]
    return feature.id, lat, lon, time, [feature.id, time]


def senml(payload: bytes) -> Seen:
    """Resolve a pack; records of one name and time are one."""
    pack = import_module("senml.senml").SenMLDocument.from_json(json.loads(payload))
    records = [each.to_absolute(pack.base) for each in pack.measurements]
    value_of = {each.unit: each.value for each in records}
    [time] = {each.time for each in records}
    name = records[0].name.split(":")[1]
    return name, value_of["lat"], value_of["lon"], time, [records[0].name, time]


def cloudevents(payload: bytes) -> Seen:
    """Read an event; consumers drop what has the source and the id of another one."""
    event = import_module("cloudevents.core.formats.json").JSONFormat().read(None, payload)
    said: Any = event.get_data()
    once = [event.get_source(), event.get_id()]
    return said["device"], said["lat"], said["lon"], said["ts"], once


def etsi_cam(payload: bytes) -> Seen:
    """Receive a CAM over the air: its parts under the standard's names, packed and unpacked.

    The receiver's clock tells the minute of `generation_delta_time`.
    """
    basic_service = "flexstack.facilities.ca_basic_service."
    coder = import_module(basic_service + "cam_coder").CAMCoder()
    sending = import_module(basic_service + "cam_transmission_management")
    said = json.loads(payload)
    message = said["message"]
    sent = sending.CooperativeAwarenessMessage().cam
    sent["header"]["stationId"] = message["station_id"]
    sent["cam"]["generationDeltaTime"] = message["generation_delta_time"]
    stated = message["basic_container"]["reference_position"]
    ellipse = stated["position_confidence_ellipse"]
    place = sent["cam"]["camParameters"]["basicContainer"]["referencePosition"]
    place["latitude"], place["longitude"] = stated["latitude"], stated["longitude"]
    place["positionConfidenceEllipse"] = {
        "semiMajorAxisLength": ellipse["semi_major"],
        "semiMinorAxisLength": ellipse["semi_minor"],
        "semiMajorAxisOrientation": ellipse["semi_major_orientation"],
    }
    cam = coder.decode(coder.encode(sent))
    delta = sending.GenerationDeltaTime(msec=cam["cam"]["generationDeltaTime"])
    place = cam["cam"]["camParameters"]["basicContainer"]["referencePosition"]
    station = cam["header"]["stationId"]
    return (
        str(station),
        place["latitude"] / 1e7,
        place["longitude"] / 1e7,
        delta.as_timestamp_in_certain_point(said["timestamp"] + 500) / 1e3,
        [station, delta.msec],
    )


def traccar(payload: bytes) -> Seen:
    """Ask a server that has the position and its device, with a client of Traccar's API."""
    return asyncio.run(_from_a_server(json.loads(payload)))


async def _from_a_server(said: dict[str, Any]) -> Seen:
    aiohttp = import_module("aiohttp")
    web = import_module("aiohttp.web")

    async def answer(request: Any) -> Any:  # noqa: ANN401  of aiohttp
        kind = request.path.rpartition("/")[2].removesuffix("s")
        return web.json_response([said[kind]])

    app = web.Application()
    app.router.add_get("/api/{kind}", answer)
    async with contextlib.AsyncExitStack() as stack:
        runner = web.AppRunner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        session = await stack.enter_async_context(aiohttp.ClientSession())
        port = runner.addresses[0][1]
        client = import_module("pytraccar").ApiClient("127.0.0.1", "", "", session, port=port)
        [device], [position] = await client.get_devices(), await client.get_positions()
    if device["id"] != position["deviceId"]:
        raise ValueError(device["id"])
    time = datetime.fromisoformat(position["fixTime"]).timestamp()
    place = position["latitude"], position["longitude"]
    return device["uniqueId"], *place, time, position["id"]


def owntracks(payload: bytes) -> Seen:
    """Read as Home Assistant's integration of OwnTracks does: the topic names who it is."""
    said = json.loads(payload)
    device, found = _inside("owntracks.messages", "_parse_see_args")(said, "cloaked/#")
    lat, lon = found["gps"]
    return said["topic"].rpartition("/")[2], lat, lon, said["tst"], [device, said["tst"]]


def home_assistant(payload: bytes) -> Seen:
    """Read as Home Assistant's tracker of JSON does; there is neither a time nor a name."""
    module = "mqtt_json.device_tracker"
    said = _inside(module, "GPS_JSON_PAYLOAD_SCHEMA")(json.loads(payload))
    lat, lon = _inside(module, "_parse_see_args")("phone", said)["gps"]
    return "", lat, lon, 0.0, [lat, lon]


def _inside(module: str, name: str) -> Any:  # noqa: ANN401  of Home Assistant
    return getattr(import_module(f"homeassistant.components.{module}"), name)


OF_HOME_ASSISTANT = (home_assistant, owntracks)
READERS: dict[str, Callable[[bytes], Seen]] = {
    each.__name__: each
    for each in (
        cloudevents, etsi_cam, geojson, gtfs_rt, gtfs_rt_json, msgpack, ngsi_ld, senml, traccar,
        *OF_HOME_ASSISTANT,
    )
}  # fmt: skip

if __name__ == "__main__":
    read = READERS[sys.argv[1]]
    sys.stdout.write(json.dumps([read(Path(file).read_bytes()) for file in sys.argv[2:]]))
