"""Senders, and the slots of their devices, beside a table that knows devices by name alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.senders import OF_PAYLOAD, UNKNOWN, Senders
from anonymizer.pipeline.positions.decode.topics import NO_INPUT, TopicRouter
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import InputSettings, LimitSettings

INPUTS = (
    InputSettings(topic="buses/{device}"),
    InputSettings(topic="trams/{device}"),
    InputSettings(topic="feed", device_from="payload"),
    InputSettings(topic="other feed", device_from="payload"),
)
TOPICS = ["buses/a", "buses/b", "trams/a", "trams/c", "feed", "other feed"]
MESSAGE = st.builds(
    lambda topic, device: Delivery(topic, b'{"lat":1,"lon":2,"device":"%s"}' % device, 0),
    st.sampled_from(TOPICS),
    st.sampled_from([b"a", b"b", b"d", b"\\u0062", b"\\u00e9"]),  # escapes are left to the codec
)


def packed(*topics: str) -> PackedDeliveries:
    return PackedDeliveries.of([Delivery(topic, b"", 0) for topic in topics])


@given(
    st.lists(st.tuples(st.lists(MESSAGE, max_size=6), st.sets(st.integers(0, 4))), max_size=8),
    st.integers(1, 5),
)
def test_a_device_has_one_slot_whatever_names_it_and_never_that_of_another(
    ticks: list[tuple[list[Delivery], set[int]]], max_devices: int
) -> None:
    """Two inputs may name one device. Slots are freed, given to others, and full."""
    decoder = Decoder(TopicRouter(INPUTS), LimitSettings(), Ledger())
    devices, expected = (DeviceTable(secret=b"", max_devices=max_devices) for _ in range(2))
    for at_s, (deliveries, freed) in enumerate(ticks):
        decoder.forget(at_s=float(at_s), kept_s=4.0)
        decoded = decoder.decode([Arrivals(float(at_s), deliveries)]).of[0]
        rows = np.arange(len(decoded.sender))
        slots = decoded.slots(rows, devices).tolist()
        assert slots == [expected.slot(decoded.device(row)) for row in rows.tolist()]
        free = np.array([slot for slot in freed if slot < len(expected._rows.key)], np.int32)
        devices.free(free)
        expected.free(free)


def test_an_id_has_one_number_whether_the_compiled_reader_or_the_codec_has_read_it() -> None:
    decoder = Decoder(TopicRouter(INPUTS), LimitSettings(), Ledger())
    ids = (b"b", b"\\u0062", b"\\u00e9", b"\\u0062")
    sent = [Delivery("feed", b'{"lat":1,"lon":2,"device":"%s"}' % each, 0) for each in ids]
    decoded = decoder.decode([Arrivals(0.0, sent)]).of[0]
    assert [decoded.device(row) for row in range(4)] == ["b", "b", "\u00e9", "b"]
    first, second, other, last = decoded.sender.tolist()
    assert first == second == last >= 0 <= other != first
    assert not decoded.names


def test_a_sender_is_known_by_its_input_and_the_length_of_its_id() -> None:
    senders = Senders(TopicRouter(INPUTS))
    found = senders.topics(packed("buses/abc", "feed", "nowhere", "buses/abc", "trams/"))
    assert found.tolist() == [0, 1, 2, 0, 3]
    assert senders.input_of(found).tolist() == [0, 2, NO_INPUT, 0, 1]
    assert senders.n_chars_of(found).tolist() == [3, OF_PAYLOAD, 0, 3, 0]
    assert [senders.device(number) for number in range(4)] == ["abc", "", "", ""]


def test_an_id_is_another_sender_than_an_equal_topic_and_in_each_input() -> None:
    senders = Senders(TopicRouter(INPUTS))
    (topic,) = senders.topics(packed("feed")).tolist()
    span = np.array([[0, 4], [0, 4]], np.int32)
    ids = senders.ids(b"feed", span, np.array([2, 3], np.int32)).tolist()
    assert len({topic, *ids}) == 3
    assert [senders.device(number) for number in ids] == ["feed", "feed"]


def test_positions_are_read_though_there_is_no_room_for_their_senders() -> None:
    decoder = Decoder(TopicRouter(INPUTS), LimitSettings(), Ledger())
    decoder.senders = Senders(TopicRouter(INPUTS), max_bytes=0)
    assert decoder.senders.topics(packed("buses/a")).tolist() == [UNKNOWN]
    deliveries = [
        Delivery("buses/a", b'{"lat":1,"lon":2}', 0),
        Delivery("feed", b'{"lat":1,"lon":2,"device":"b"}', 0),
        Delivery("nowhere", b'{"lat":1,"lon":2}', 0),
    ]
    decoded = decoder.decode([Arrivals(1.0, deliveries)]).of[0]
    assert [decoded.device(row) for row in range(len(decoded.sender))] == ["a", "b"]
    devices = DeviceTable(secret=b"", max_devices=9)
    assert decoded.slots(np.arange(2), devices).tolist() == [0, 1]
