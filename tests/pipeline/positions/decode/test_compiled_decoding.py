"""The compiled reader beside the naive decoder, which gives every message to its codec."""

import math
import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.codecs import FORMATS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import Packed, PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.decode.decoded import DecodedTick
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import InputSettings, LimitSettings
from anonymizer.transport.packets import (
    MalformedPacketError,
    PacketReader,
    Publish,
    Publishes,
    encode_publish,
)
from benchmarks.payloads import messages
from tests.examples import many
from tests.naive_decoding import NaiveDecoder, Position

WITH_LAYOUTS = [name for name, each in FORMATS.items() if each.layout is not None]
INPUTS = (
    InputSettings(topic="native/{device}"),
    InputSettings(topic="phones/{device}", codec="owntracks"),
    InputSettings(topic="trackers/{device}", codec="home_assistant"),
    InputSettings(topic="buses/{device}", codec="traccar"),
    InputSettings(topic="sensors/{device}", kind="fixed"),
    InputSettings(topic="public/{device}", kind="public"),
    InputSettings(topic="feed/+", device_from="payload"),
    InputSettings(topic="users/+", codec="owntracks", device_from="payload"),
    InputSettings(topic="packed/{device}", codec="msgpack"),
    InputSettings(topic="batch", codec="msgpack", device_from="payload"),
)
TOPICS = [
    *(f"{kind}/{device}" for kind in ("native", "phones", "trackers") for device in "ab"),
    "packed/a", "packed/b", "batch",
    "buses/a", "sensors/a", "public/a", "feed/x", "feed/y", "users/x",
    "native/", "native/abcdefg", "other", "native/ä", "",
]  # fmt: skip
LIMITS = LimitSettings(max_payload_bytes=300, max_ids_per_topic=3).model_copy(
    update={"max_positions": 3, "max_device_id_chars": 5}
)
ATTRIBUTE_OF = {"speed_mps": 0, "no2": 1, "no": 2, "": 3, "battery_percent": 4}
NO2 = ATTRIBUTE_OF["no2"]


class Rig:
    """A decoder and its twin, which see the same arrivals."""

    def __init__(self, *, ids_kept_s: float = 60.0) -> None:
        self.ledgers = Ledger(), Ledger()
        router = TopicRouter(INPUTS)
        more: Any = {"attribute_of": ATTRIBUTE_OF, "ids_kept_s": ids_kept_s}
        self.decoder = Decoder(router, LIMITS, self.ledgers[0], **more)
        self.naive = NaiveDecoder(router, LIMITS, self.ledgers[1], **more)

    def agree(self, batches: Sequence[Arrivals]) -> None:
        """Decode in both ways; fail unless every position and every count is the same."""
        for ledger in self.ledgers:
            ledger.receive(sum(len(batch.deliveries) for batch in batches))
        decoded, expected = self.decoder.decode(batches), self.naive.decode(batches)
        found = positions(decoded)
        for treatment in Treatment:
            mine = [exactly(each) for each in found if each.treatment == treatment]
            assert mine == [exactly(each) for each in expected if each.treatment == treatment]
        ours, naive = (ledger.counts() for ledger in self.ledgers)
        assert ours == naive
        assert self.ledgers[0].n_received == self.ledgers[1].n_received
        assert self.decoder.n_unusable.tolist() == self.naive.n_unusable


def positions(tick: DecodedTick) -> list[Position]:
    """Return what was decoded, one by one."""
    found = []
    for treatment, part in zip(Treatment, tick.of, strict=True):
        readings: list[dict[int, float]] = [{} for _ in part.sender]
        columns = (part.reading_row, part.reading_attribute, part.reading_value)
        for row, attribute, value in zip(*(c.tolist() for c in columns), strict=True):
            assert attribute not in readings[row]
            readings[row][attribute] = value
        numbers = np.stack([part.ts, part.lat, part.lon, part.at_s], axis=1).tolist()
        for row, (ts, lat, lon, at_s) in enumerate(numbers):
            found.append(Position(treatment, part.device(row), ts, lat, lon, at_s, readings[row]))
    return found


def exactly(position: Position) -> tuple[object, ...]:
    """Return a position with the bits of its numbers: NaN equals NaN, and -0 is not 0."""
    numbers = (position.ts, position.lat, position.lon, position.at_s)
    readings = {name: struct.pack("d", value) for name, value in position.readings.items()}
    return position.treatment, position.device, struct.pack("4d", *numbers), readings


# Texts that a device may write, sound or not.

NUMBER = st.one_of(
    st.floats(-181, 181).map(repr),
    st.floats(-181, 181).map(lambda x: f"{x:.7f}"),
    st.integers(-200, 2_000_000_000).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?", fullmatch=True),
    st.sampled_from(
        [
            *("0", "-0", "-0.0", "0.0", "00", "01", "1.", ".5", "-", "+", "1e3", "1E-2", "1e999"),
            *("-1e999", "NaN", "Infinity", "null", "true", "false", "90.0", "90.1", "0.1e"),
            *("9007199254740993", "1.5e+", "123456789012345678", "1234567890123456789", "0x10"),
        ]
    ),
)
TEXT = st.sampled_from(
    [
        *('""', '"a"', '"ab"', '"abcdef"', '"ä"', '"\\u0061"', '"a\\"b"', '"\x01"', '"', "7"),
        *("-7", "0", "007", "12345", "9223372036854775808", "null", "1.0"),
        *('"location"', '"lwt"', '"locatio"'),
    ]
)
KEY = st.sampled_from(
    [
        *("lat", "lon", "ts", "device", "readings", "latitude", "longitude", "_type", "tst"),
        *("topic", "vel", "cog", "batt", "battery_level", "la", "latt", "LAT", "l\\u0061t", "ä"),
        *("", "battery_levels", "x" * 20, "longitude_of_it"),
    ]
)
SPACE = st.sampled_from(["", "", "", "", " ", "\n\t ", "\r", "\x0b", "\xa0"])
VALUE = NUMBER | TEXT | st.sampled_from(["[]", "{}", "[1]", '{"a":1}', "nul", "truee"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return an object that is like a position, or nearly."""

    def put(*parts: str) -> str:
        return "".join(f"{draw(SPACE)}{part}" for part in parts)

    def member(key: str, value: st.SearchStrategy[str]) -> str:
        return put(f'"{key}"', ":", draw(value))

    kinds = ["lat", "lon", "ts"], ["_type", "lat", "lon", "tst"], ["latitude", "longitude"]
    names = draw(st.sampled_from(kinds))
    kind = st.sampled_from(['"location"', '"location"', '"lwt"'])
    members = [member(name, kind if name == "_type" else NUMBER) for name in names]
    numbers = st.dictionaries(st.sampled_from(["no2", "no", "", "x", "ä"]), NUMBER, max_size=3)
    if draw(st.booleans()):
        each = [member(name, st.just(value)) for name, value in draw(numbers).items()]
        members.append(member("readings", st.just("{" + ",".join(each) + "}")))
    if draw(st.booleans()):
        members.append(member("device" if "ts" in names else "topic", TEXT))
    members += [member(draw(KEY), VALUE) for _ in range(draw(st.integers(0, 2)))]
    return put("{", ",".join(draw(st.permutations(members))), "}")


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Return a message, an array of them, or something broken."""
    text = draw(texts())
    if draw(st.booleans()):
        text = "[" + ",".join([text, *draw(st.lists(texts(), max_size=3))]) + "]"
    payload = text.encode()
    broken = draw(st.sampled_from(["", "", "", "cut", "changed", "longer", "noise"]))
    at = draw(st.integers(0, len(payload)))
    if broken == "cut":
        return payload[:at]
    if broken == "changed":
        return payload[:at] + draw(st.binary(max_size=2)) + payload[at + 1 :]
    if broken == "longer":
        return payload + draw(st.sampled_from([b" ", b",", b"}", b"]", b"\x00", b"x", b"\xff"]))
    return draw(st.binary(max_size=9)) if broken == "noise" else payload


NUMBERS = st.one_of(
    st.floats(),
    st.floats(width=32),
    st.floats(-180, 180),
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-200, 200),
)
SCALARS = NUMBERS | st.sampled_from([None, True, False, "", "a", "ab", "ä", "x" * 40, b"a"])
ANYTHING = SCALARS | st.sampled_from([[], {}, [1], {"a": 1}, msgspec.msgpack.Ext(5, b"x")])
MAPS = st.fixed_dictionaries(
    {"lat": st.floats(-91, 91) | NUMBERS, "lon": st.floats(-181, 181) | NUMBERS},
    optional={
        "ts": NUMBERS | st.none(),
        "device": st.sampled_from(["", "a", "ab", "abcdef", "ä", 7, None, 1.0]),
        "readings": st.dictionaries(st.sampled_from(["no2", "no", "", "x", "ä"]), SCALARS)
        | st.dictionaries(st.sampled_from(["no2", "no", "", "x", "speed_mps"]), NUMBERS)
        | ANYTHING,
        "la": ANYTHING,
        "x" * 20: SCALARS,
    },
)
PACK = msgspec.msgpack.encode


@st.composite
def packed_payloads(draw: st.DrawFn) -> bytes:
    """Return a message in MessagePack, an array of them, or something broken."""
    message = draw(MAPS | st.lists(MAPS, max_size=4) | ANYTHING)
    payload = PACK(message)
    if draw(st.booleans()):  # numbers of 32 bits, and of more bytes than they need
        number = draw(st.floats(-90, 90, width=32))
        short = b"\xca" + struct.pack(">f", number)
        payload = payload.replace(b"\xa3lat", b"\xd9\x03lat").replace(PACK(number), short)
    at = draw(st.integers(0, len(payload)))
    broken = draw(st.sampled_from(["", "", "", "cut", "changed", "longer"]))
    if broken == "cut":
        return payload[:at]
    if broken == "changed":
        return payload[:at] + draw(st.binary(max_size=2)) + payload[at + 1 :]
    return payload + draw(st.binary(max_size=2)) if broken == "longer" else payload


DELIVERY = st.one_of(
    st.builds(Delivery, st.sampled_from(TOPICS), payloads(), st.just(0), st.booleans()),
    st.builds(
        Delivery,
        st.sampled_from(["packed/a", "packed/b", "batch"]),
        packed_payloads(),
        st.just(0),
        st.booleans(),
    ),
)


@given(st.lists(st.lists(st.lists(DELIVERY, max_size=5), max_size=3), max_size=3))
def test_the_same_positions_and_counts_as_if_each_message_went_to_its_codec(
    ticks: list[list[list[Delivery]]],
) -> None:
    rig, at_s = Rig(), 0.0
    for tick in ticks:
        batches = []
        for batch in tick:
            at_s += 25.0
            batches.append(Arrivals(at_s, batch))
        rig.decoder.forget(at_s=at_s, kept_s=60.0)
        rig.agree(batches)


@settings(deadline=None)
@given(payloads() | packed_payloads())
def test_a_message_is_read_alike_whatever_its_input(payload: bytes) -> None:
    rig = Rig()
    rig.agree([Arrivals(1.0, [Delivery(topic, payload, 0) for topic in TOPICS])])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(TOPICS[:-1]), payloads(), st.integers(0, 2)), max_size=9),
    st.booleans(),
    st.sampled_from([b"", b"\x30\x03\x00\x00\x00", b"\x40\x02\x00\x07", b"\x36\x00"]),
    st.data(),
)
def test_a_stream_leads_to_the_same_positions_wherever_it_is_cut(
    sent: list[tuple[str, bytes, int]],
    version5: bool,  # noqa: FBT001  drawn by hypothesis
    last: bytes,
    data: st.DataObject,
) -> None:
    messages = [(Outgoing(topic, body), mid) for topic, body, mid in sent for _ in range(9)]
    stream = b"".join(encode_publish(m, mid=mid, version5=version5) for m, mid in messages) + last
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=3).map(sorted))
    reader = PacketReader(version5=version5, limit_bytes=1 << 20)
    received: list[Sequence[Delivery]] = []
    with suppress(MalformedPacketError):
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            for packet in reader.feed(stream[start:end]):
                received.append(delivered(packet))  # noqa: PERF401  it may raise half-way
    rig = Rig()
    rig.agree([Arrivals(1.0, batch) for batch in received])
    assert sum(map(len, received)) == len(messages)


def delivered(packet: object) -> Sequence[Delivery]:
    """Return a packet as the session delivers it."""
    if isinstance(packet, Publishes):
        columns = Packed(packet.bounds, packet.mid, packet.retained)
        return PackedDeliveries(packet.stream, columns)
    if isinstance(packet, Publish):
        return [Delivery(packet.topic, packet.payload, packet.mid, packet.retained)]
    return []


@many(2)
@given(st.from_regex(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,18})?", fullmatch=True))
def test_a_number_is_the_one_that_python_reads(text: str) -> None:
    rig = Rig()
    payload = b'{"lat":1,"lon":2,"readings":{"no2":%s}}' % text.encode()
    rig.agree([Arrivals(1.0, [Delivery("native/a", payload, 0)])])
    [position] = positions(rig.decoder.decode([Arrivals(1.0, [Delivery("native/a", payload, 0)])]))
    number = 0.0 if text == "-0" else float(text)  # an integer has no sign at 0
    assert struct.pack("d", position.readings[NO2]) == struct.pack("d", number)


def halfway(rng: random.Random) -> str:
    """Return a number of 17 or 18 digits that lies half way between two floats, or beside it."""
    n_decimals = rng.randrange(1, 4)
    low = float(rng.randrange(2**53, 10**18) // 10**n_decimals)
    middle = int((low + math.nextafter(low, math.inf)) / 2 * 10**n_decimals)
    digits = str(min(max(middle + rng.choice([-1, 0, 0, 1]), 2**53), 10**18 - 1))
    return f"{digits[:-n_decimals]}.{digits[-n_decimals:]}"


@many(2)
@given(
    number=st.floats() | st.floats(width=32) | st.integers(-(2**63), 2**64 - 1), short=st.booleans()
)
def test_a_packed_number_is_the_one_that_was_packed(*, number: float, short: bool) -> None:
    packed = PACK(number)
    if short and isinstance(number, float) and not abs(number) > 3e38:
        packed = b"\xca" + struct.pack(">f", number)
        (number,) = struct.unpack(">f", packed[1:])
    payload = b"\x83\xa3lat\x01\xa3lon\x02\xa8readings\x81\xa3no2" + packed
    rig = Rig()
    arrivals = [Arrivals(1.0, [Delivery("packed/a", payload, 0)])]
    rig.agree(arrivals)
    found = positions(rig.decoder.decode(arrivals))
    expected = {NO2: float(number)} if math.isfinite(number) else {}
    assert [each.readings for each in found] == [expected]


@pytest.mark.parametrize("seed", range(20))
def test_numbers_half_way_between_two_floats_are_rounded_to_even(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  equal seeds give equal numbers
    numbers = [halfway(rng) for _ in range(200)]
    rig = Rig()
    batch = [
        Delivery("native/a", b'{"lat":1,"lon":2,"readings":{"no2":%s}}' % number.encode(), 0)
        for number in numbers
    ]
    found = positions(rig.decoder.decode([Arrivals(1.0, batch)]))
    assert [each.readings for each in found] == [{NO2: float(number)} for number in numbers]


@pytest.mark.parametrize("name", ["\0lon", "\0\0lon", "lon\0", "device\0", "reading\0s", "\0"])
def test_a_name_with_a_byte_of_zero_is_another_name(name: str) -> None:
    rig = Rig()
    for sound in ({"lat": 1.5, "lon": 2.5}, {"lat": 1.5}):
        payload = PACK({**sound, name: 7.5})
        rig.agree([Arrivals(1.0, [Delivery("packed/a", payload, 0)])])


@pytest.mark.parametrize("codec", WITH_LAYOUTS)
def test_usual_messages_need_no_codec(codec: str) -> None:
    router = TopicRouter([InputSettings(topic="{device}", codec=codec)])
    router.routes = [router.routes[0]._replace(codec=_refuses)]
    decoder = Decoder(router, LimitSettings(), Ledger())
    deliveries = [Delivery(str(i), payload, 0) for i, payload in enumerate(messages(codec, 50))]
    assert len(decoder.decode([Arrivals(1.0, deliveries)]).of[0].sender) == 50


def _refuses(_payload: bytes) -> Sequence[Fix | Outcome]:
    raise AssertionError("this message needed its codec")


def changed(payload: bytearray, rng: random.Random) -> bytes:
    """Return a payload with up to three of its bytes changed, left out or repeated."""
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(payload))
        change = rng.randrange(4)
        if change == 0:
            payload[at] = rng.choice(b'0123456789.-+eE{}[]":,\\ \n"latos\x00\xc3\xff')
        elif change == 1:
            del payload[at]
        elif change == 2:
            payload[at:at] = payload[at : at + rng.randrange(1, 9)]
        else:
            payload[at:at] = rng.choice(
                [b" ", b"null", b"1", b'"', b"0", b"e1", b",", b"}", b"nan", b"\0", b"000"]
            )
        if not payload:
            break
    return bytes(payload)


def fuzzed(seed: int, n: int) -> Iterator[bytes]:
    """Yield a stream of MQTT in pieces of random length: `n` messages, sound and broken."""
    rng = random.Random(seed)  # noqa: S311  equal seeds give equal streams
    sound = [payload for codec in WITH_LAYOUTS for payload in messages(codec, 20)]
    sound += [b"[%s]" % b",".join(messages("native", i)) for i in (1, 2, 3)]
    sound += [PACK([{"lat": 1.5, "lon": rng.random(), "ts": 7, "device": d}]) for d in "abcd"]
    sound += [
        b'{"lat":%r,"lon":%r,"device":"%d","readings":{"no2":%r,"x":1}}'
        % (rng.uniform(-90, 90), rng.uniform(-180, 180), rng.randrange(9), rng.random())
        for _ in range(50)
    ]
    pending = b""
    for _ in range(n):
        message = Outgoing(
            rng.choice(TOPICS[:-1]), changed(bytearray(rng.choice(sound)), rng), rng.random() < 0.1
        )
        pending += encode_publish(message, mid=rng.randrange(3), version5=True)
        if len(pending) > 10_000:
            cut = rng.randrange(len(pending))
            yield pending[:cut]
            pending = pending[cut:]
    yield pending


def agree_on(seed: int, n: int) -> int:
    """Decode fuzzed packets in both ways; return how many positions were received."""
    rig, reader = Rig(), PacketReader(version5=True, limit_bytes=1 << 20)
    for at_s, piece in enumerate(fuzzed(seed, n)):
        rig.decoder.forget(at_s=float(at_s), kept_s=60.0)
        rig.agree([Arrivals(float(at_s), delivered(packet)) for packet in reader.feed(piece)])
    return rig.ledgers[0].n_received


@pytest.mark.parametrize("seed", range(3))
def test_fuzzed_packets_lead_to_the_same_positions_and_counts(seed: int) -> None:
    assert agree_on(seed, 3_000) >= 3_000


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_ten_million_fuzzed_packets_lead_to_the_same_positions_and_counts() -> None:
    for seed in range(100):
        assert agree_on(1_000 + seed, 100_000) >= 100_000
