"""Messages of records, divided among the stages of streams."""

from typing import Any

import pytest

from anonymizer.cluster.records.stream_routing import StreamRouting, together
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.settings import Settings, StreamSettings


def declared(**topics_of: list[str]) -> tuple[StreamSettings, ...]:
    """Return streams by their name that read some topics each."""

    def table(name: str, topics: list[str]) -> dict[str, Any]:
        sources = [
            {"name": f"s{j}", "topic": topic, "tells": [f"a{j}"]} for j, topic in enumerate(topics)
        ]
        attributes = [{"name": f"a{j}", "lo": 0, "hi": 9, "step": 1} for j in range(len(topics))]
        return {"name": name, "sources": sources, "attributes": attributes}

    streams = [table(name, topics) for name, topics in topics_of.items()]
    return Settings.model_validate({"inputs": [], "streams": streams}).streams


FLEETS = declared(
    trucks=["trucks/speed/{vehicle}", "trucks/load/{vehicle}"],
    buses=["buses/{line}/{vehicle}"],
    loads=["trucks/load/{vehicle}", "oil/{vehicle}"],
    oil=["oil/{vehicle}"],
    ferries=["ferries/{vehicle}"],
)


def stages_of(streams: tuple[StreamSettings, ...], *topics: str) -> list[int]:
    routing = StreamRouting(streams)
    messages = PackedDeliveries.of([Delivery(topic, b"{}", 0) for topic in topics])
    found: list[int] = routing.parts_of(messages, routing.n_stages).tolist()
    return found


def test_streams_that_may_read_one_message_are_together_also_by_way_of_others() -> None:
    assert together(FLEETS) == [[0, 2, 3], [1], [4]]
    assert together(FLEETS[:2]) == [[0], [1]]
    assert together(()) == []


def test_a_message_goes_to_the_stage_that_has_all_of_its_streams() -> None:
    topics = ["trucks/speed/v1", "buses/7/v1", "trucks/load/v2", "oil/v3", "ferries/f"]
    assert stages_of(FLEETS, *topics) == [0, 1, 0, 0, 2]
    router = RecordRouter(FLEETS, secret=b"", max_id_chars=8)
    for topic, stage in zip(topics, stages_of(FLEETS, *topics), strict=True):
        assert {route.stream for route in router.routes_of(topic)} <= {*together(FLEETS)[stage]}
    # A restart and another bridge change nothing, and a stream that is added moves no other.
    assert stages_of(FLEETS[:4], *topics[:4]) == [0, 1, 0, 0]


@pytest.mark.parametrize("streams", [FLEETS, FLEETS[:1]], ids=len)
def test_what_no_stream_reads_goes_to_the_first_stage_which_counts_it(
    streams: tuple[StreamSettings, ...],
) -> None:
    topics = ["nowhere", "buses/7", "oil/v3/more", "\u00e4/\udcff"]
    assert stages_of(streams, *topics) == [0, 0, 0, 0]


def test_topics_that_are_silent_are_forgotten() -> None:
    routing = StreamRouting(FLEETS)
    messages = PackedDeliveries.of([Delivery(f"oil/{i}", b"{}", 0) for i in range(9)])
    for at_s in (0.0, 1.0, 61.0, 122.0, 183.0):
        routing.forget(at_s=at_s)
        if at_s == 0.0:
            routing.parts_of(messages, routing.n_stages)
            assert routing._stage_of.n_topics == 9
    assert routing._stage_of.n_topics == 0
