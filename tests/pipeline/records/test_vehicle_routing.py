"""Messages of records, divided among the joiners."""

from hashlib import blake2b
from zlib import crc32

from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.vehicle_routing import VehicleRouting
from anonymizer.settings import Settings

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


def test_what_no_joiner_keeps_goes_to_one_that_counts_it() -> None:
    topics = ["nowhere", "trucks/load/", "trucks/load/much-too-long", "ä/\udcff"]
    expected = [crc32(topic.encode("utf-8", "surrogatepass")) % N for topic in topics]
    assert parts_of(*topics) == expected
