"""Messages of records, divided among the joiners."""

from hashlib import blake2b
from zlib import crc32

from anonymizer.cluster.records.vehicle_routing import VehicleRouting
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import Settings, StreamSettings

STREAMS = Settings.model_validate(
    {
        "inputs": [],
        "streams": [
            {
                "name": name,
                "sources": [
                    {"name": source, "topic": f"{name}/{{source}}/{{vehicle}}", "tells": [source]}
                    for source in ("speed", "load")
                ],
                "attributes": [
                    {"name": source, "lo": 0, "hi": 9, "step": 1} for source in ("speed", "load")
                ],
            }
            for name in ("trucks", "buses")
        ],
    }
).streams
N = 5


def parts_of(*topics: str) -> list[int]:
    routing = VehicleRouting(STREAMS, max_id_chars=8)
    messages = PackedDeliveries.of([Delivery(topic, b"{}", 0) for topic in topics])
    found: list[int] = routing.parts_of(messages, N).tolist()
    return found


def test_all_parts_of_a_vehicle_go_to_one_joiner_and_vehicles_to_all() -> None:
    speed = parts_of(*(f"trucks/speed/v{i}" for i in range(100)))
    assert speed == parts_of(*(f"trucks/load/v{i}" for i in range(100)))
    assert set(speed) == set(range(N))
    # A restart and another bridge change nothing: the digests have no secret.
    digest = blake2b(b"trucks\0v0", digest_size=16).digest()
    assert speed[0] == int.from_bytes(digest[:8], "big") % N


def test_a_vehicle_of_another_stream_is_another_one() -> None:
    topics = [f"v{i}" for i in range(20)]
    assert parts_of(*(f"trucks/load/{t}" for t in topics)) != parts_of(
        *(f"buses/load/{t}" for t in topics)
    )


def test_streams_that_read_one_topic_have_the_joiner_of_a_vehicle_in_common() -> None:
    load = {"name": "load", "topic": "trucks/load/{vehicle}", "tells": ["oil"]}
    oil = {"name": "oil", "topic": "oil/{vehicle}", "tells": ["level"]}
    attributes = [{"name": name, "lo": 0, "hi": 9, "step": 1} for name in ("oil", "level")]
    third = {"name": "oil", "sources": [load, oil], "attributes": attributes}
    streams = (*STREAMS, StreamSettings.model_validate(third))
    routing = VehicleRouting(streams, max_id_chars=8)

    def parts(prefix: str) -> list[int]:
        messages = [Delivery(f"{prefix}/v{i}", b"{}", 0) for i in range(50)]
        found: list[int] = routing.parts_of(PackedDeliveries.of(messages), N).tolist()
        return found

    assert parts("oil") == parts("trucks/load") == parts("trucks/speed")
    assert parts("trucks/speed") == parts_of(*(f"trucks/speed/v{i}" for i in range(50)))
    assert parts("buses/load") != parts("oil")


def test_a_vehicle_that_payloads_name_goes_where_its_topics_would_go() -> None:
    source = {"name": "speed", "topic": "gate/+", "vehicle": "of.id", "tells": ["speed"]}
    attribute = {"name": "speed", "lo": 0, "hi": 9, "step": 1}
    stream = {"name": "trucks", "sources": [source], "attributes": [attribute]}
    streams = Settings.model_validate({"inputs": [], "streams": [stream]}).streams
    routing = VehicleRouting(streams, max_id_chars=8)

    def parts(*payloads: bytes) -> list[int]:
        messages = [Delivery(f"gate/{i}", payload, 0) for i, payload in enumerate(payloads)]
        found: list[int] = routing.parts_of(PackedDeliveries.of(messages), N).tolist()
        return found

    named = [b'{"of": {"id": "v%d"}, "speed": "?"}' % i for i in range(30)]
    assert parts(*named) == parts_of(*(f"trucks/speed/v{i}" for i in range(30)))
    assert parts(b'{"of": {"id": 7}}') == parts_of("trucks/speed/7")
    # What names no usable vehicle is counted by the joiner of its topic.
    unusable = [b"{", b"{}", b'{"of": {"id": null}}', b'{"of": {"id": "much-too-long"}}', b"\xff"]
    assert parts(*unusable) == [crc32(b"gate/%d" % i) % N for i in range(len(unusable))]


def test_what_no_joiner_keeps_goes_to_one_that_counts_it() -> None:
    topics = ["nowhere", "trucks/load/", "trucks/load/much-too-long", "ä/\udcff"]
    expected = [crc32(topic.encode("utf-8", "surrogatepass")) % N for topic in topics]
    assert parts_of(*topics) == expected
