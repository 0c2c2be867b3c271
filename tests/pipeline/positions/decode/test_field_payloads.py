"""Messages as people really have them: each line of `payloads.jsonl`, and others of its kinds.

The time is that of the lines: what a codec returns may still be refused as too old, and the reason
that the operator sees is the one that counts.
"""

import gzip
import json
import math
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.misfit import CAUSES
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.positions.tick.intake import timeliness
from anonymizer.settings import InputSettings, LimitSettings, PresenceSettings

NOW = 1_800_000_000.0
LIST = Path(__file__).with_name("payloads.jsonl")
LINES = {line["name"]: line for line in map(json.loads, LIST.read_text().splitlines())}
AT = (60.17, 24.94)
NO_FIX, NO_ZONE = Outcome.INVALID__NO_FIX, Outcome.INVALID__NO_ZONE
FUTURE, ANCIENT = Outcome.INVALID__FUTURE_TIME, Outcome.INVALID__ANCIENT_TIME
SCHEMA, MALFORMED = Outcome.INVALID__SCHEMA, Outcome.INVALID__MALFORMED
TIME_FORM, NOT_DEGREES = Outcome.INVALID__TIME_FORM, Outcome.INVALID__NOT_DEGREES
IN_S, IN_MS = Outcome.INVALID__TIME_IN_S, Outcome.INVALID__TIME_IN_MS
IN_US, IN_NS = Outcome.INVALID__TIME_IN_US, Outcome.INVALID__TIME_IN_NS
ISO = {"lat": "lat", "lon": "lon", "time": "t", "time_unit": "iso8601"}
NUMBER = {"lat": "lat", "lon": "lon", "time": "t"}


class Read:
    """What becomes of messages of one input: positions as (lat, lon, ts), and reasons."""

    def __init__(
        self, table: dict[str, Any], *messages: tuple[str, bytes], seconds: float = 0.0
    ) -> None:
        of_payload = table.get("device_from") == "payload"
        topic = {"topic": "x" if of_payload else "x/{device}"}
        ledger = Ledger()
        ledger.receive(len(messages))
        router = TopicRouter([InputSettings.model_validate(topic | table)])
        decoder = Decoder(router, LimitSettings(), ledger, attribute_of={"temp": 0})
        batches = [
            Arrivals(seconds * i, [Delivery(topic_, payload, 0)])
            for i, (topic_, payload) in enumerate(messages)
        ]
        found = decoder.decode(batches).of[Treatment.MOBILE]
        behind_s = PresenceSettings().max_behind_s
        outcome = timeliness(found.ts, behind_s=behind_s, now=NOW, zoneless=found.zoneless)
        rows = np.stack([found.lat, found.lon, found.ts], axis=1).tolist()
        self.positions = [tuple(row) for row, why in zip(rows, outcome, strict=True) if not why]
        self.devices = [found.device(row) for row in range(len(found.ts))]
        self.readings = found.reading_value.tolist()
        self.n_unusable = decoder.n_unusable.tolist()
        self.accuracies = [] if found.accuracy_m is None else found.accuracy_m.tolist()
        refused = {why: n for why, n in ledger.counts().items() if n}
        for why in map(Outcome, outcome[outcome != Outcome.HELD].tolist()):
            refused[why] = refused.get(why, 0) + 1
        self.refused = refused
        assert ledger.n_received == ledger.n_settled + len(found.ts)


def payload_of(line: dict[str, Any]) -> bytes:
    stated = line["payload"]
    if set(stated) == {"base64"}:
        return b64decode(stated["base64"])
    return json.dumps(stated).encode()


def line(name: str, **more: Any) -> Read:  # noqa: ANN401  settings
    table = LINES[name]["input"] | more
    topic = "x" if table.get("device_from") == "payload" else "x/a"
    return Read(table, (topic, payload_of(LINES[name])))


def fix(payload: object, table: dict[str, Any] | None = None) -> Read:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return Read(table or {}, ("x/a", body))


def dated(time: object, paths: dict[str, Any]) -> Read:
    body = {"lat": AT[0], "lon": AT[1], "t": time}
    return fix(body, {"codec": "json", "payload": paths})


OF_TRUST = {"cell-fix-owntracks", "cell-fix-home-assistant", "no-time-gtfs"}
"""Lines about which the stage behind the codecs decides."""
AS_STATED: dict[str, tuple[float, float, float] | Outcome] = {
    "trailing-nul": (*AT, NOW),
    "nan-in-unread-field": (*AT, NOW),
    "nan-reading": (*AT, NOW),
    "year-1": (*AT, math.nan),
    "local-time": NO_ZONE,
    "time-us": IN_US,
    "leap-second": ANCIENT,
    "24-oclock": FUTURE,
    "ais-time": (60.1, 24.9, NOW),
    "ais-not-available": NO_FIX,
    "gzip": Outcome.INVALID__COMPRESSED,
    "zlib": Outcome.INVALID__COMPRESSED,
}
DECLARED = {"bare-number", "keyed-by-device"}
"""Lines for which the settings of the line are not enough: tests of their own, below."""


def test_every_line_of_the_list_has_a_test() -> None:
    assert LINES.keys() == OF_TRUST | AS_STATED.keys() | DECLARED


@pytest.mark.parametrize("name", AS_STATED)
def test_each_line_is_the_fix_or_refused_for_its_own_reason(name: str) -> None:
    expected, found = AS_STATED[name], line(name)
    if isinstance(expected, Outcome):
        assert (found.positions, found.refused) == ([], {expected: 1})
    else:
        np.testing.assert_array_equal(found.positions, [expected])
        assert not found.refused


def test_a_reading_that_is_no_number_is_left_out_and_counted() -> None:
    found = line("nan-reading")
    assert (found.readings, found.n_unusable) == ([], [1])


@pytest.mark.parametrize(
    ("zone", "is_now"), [("+05:30", True), ("Asia/Kolkata", True), ("Europe/London", False)]
)
def test_a_local_time_is_in_the_zone_that_is_stated(zone: str, *, is_now: bool) -> None:
    paths = LINES["local-time"]["input"]["payload"] | {"time_zone": zone}
    found = line("local-time", payload=paths)
    assert found.positions == ([(29.531017, 75.24112, NOW)] if is_now else [])
    assert found.refused == ({} if is_now else {FUTURE: 1}), "the zone is stated, so it is not it"


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_small_units_can_be_stated(unit: str) -> None:
    per_second = {"us": 10**6, "ns": 10**9}[unit]
    for time in (int(NOW) * per_second, str(int(NOW) * per_second)):
        assert dated(time, NUMBER | {"time_unit": unit}).positions == [(*AT, NOW)]


@pytest.mark.parametrize("packing", ["gzip", "zlib"])
def test_a_packed_line_is_read_where_it_is_declared(packing: str) -> None:
    assert line(packing, unpack=packing).positions == [(*AT, NOW)]
    assert line(packing, unpack=packing, max_unpacked_bytes=16).refused == {
        Outcome.INVALID__TOO_LARGE: 1
    }


def test_objects_whose_keys_are_the_devices_are_declared_by_a_level() -> None:
    paths = {"positions": "{device}", "lat": "values.latitude", "lon": "values.longitude"}
    table = {"device_from": "payload", "payload": paths | {"time": "ts", "time_unit": "ms"}}
    found = line("keyed-by-device", **table)
    assert (found.positions, found.devices) == ([(*AT, NOW)], ["Device A"])


def test_bare_numbers_on_two_topics_are_joined_to_a_fix() -> None:
    paths = {"lat": "latitude", "lon": "longitude", "bare": True, "join_s": 0.5}
    table = {"topic": "cars/{device}/+", "codec": "json", "payload": paths}
    body = payload_of(LINES["bare-number"])
    halves = [("cars/a/latitude", body), ("cars/b/longitude", b"25"), ("cars/a/soc", b"80")]
    found = Read(table, *halves, ("cars/a/longitude", b"24.94"), seconds=0.1)
    np.testing.assert_array_equal(found.positions, [(*AT, math.nan)])
    assert found.devices == ["a"]
    waits = {Outcome.SUPPRESSED__SUPERSEDED: 2, Outcome.INVALID__NOT_SELECTED: 1}
    assert found.refused == waits
    late = Read(table, halves[0], ("cars/a/longitude", b"24.94"), seconds=0.6)
    assert (late.positions, late.refused) == ([], {Outcome.SUPPRESSED__SUPERSEDED: 2})
    for odd, why in ((b"nan", NO_FIX), (b"", Outcome.INVALID__EMPTY), (b"60 E", NOT_DEGREES),
                     (b'"60.17"', Outcome.SUPPRESSED__SUPERSEDED), (b"60,17", NOT_DEGREES),
                     (b"98", Outcome.INVALID__OUT_OF_RANGE), (b" 60.17\n\0",
                      Outcome.SUPPRESSED__SUPERSEDED)):  # fmt: skip
        assert Read(table, ("cars/a/latitude", odd)).refused == {why: 1}


def test_values_in_objects_on_two_topics_are_joined_to_a_fix() -> None:
    paths = {"lat": "latitude", "lon": "longitude", "bare": True, "join_s": 0.5}
    table = {"topic": "cars/{device}/+", "codec": "json", "payload": paths}
    halves = (
        ("cars/a/latitude", b'{"value": 60.17, "timestamp": 5}'),
        ("cars/a/longitude", b' {"unit": "deg", "value": "24.94"}'),
    )
    found = Read(table, *halves, seconds=0.1)
    np.testing.assert_array_equal(found.positions, [(*AT, math.nan)])
    for odd, why in ((b'{"value": null}', NO_FIX), (b'{"value": [1]}', MALFORMED),
                     (b'{"value": true}', MALFORMED), (b"{}", MALFORMED),
                     (b"{" * 90_000, MALFORMED),
                     (b'{"value": 98}', Outcome.INVALID__OUT_OF_RANGE)):  # fmt: skip
        assert Read(table, ("cars/a/latitude", odd)).refused == {why: 1}


C_STRUCT = "struct <8siihI id lat lon speed time"


def test_a_struct_of_c_is_read_by_the_fields_that_are_declared() -> None:
    paths = {
        "lat": "lat", "lon": "lon", "time": "time", "scale": 1e-7, "device": "id",
        "readings": {"temp": "speed"},
    }  # fmt: skip
    table = {
        "topic": "x", "codec": "json", "device_from": "payload", "payload": paths,
        "unpack": C_STRUCT,
    }  # fmt: skip
    values = (b"bus1\0old", round(AT[0] * 1e7), round(AT[1] * 1e7), -3, int(NOW))
    packed = struct.pack("<8siihI", *values)
    found = Read(table, ("x", packed))
    assert (found.positions, found.devices) == ([(*AT, NOW)], ["bus1"])
    for odd in (packed[:-1], packed + b"\0", b"{}"):
        assert Read(table, ("x", odd)).refused == {MALFORMED: 1}
    squeezed = Read(table | {"unpack": ["zlib", C_STRUCT]}, ("x", zlib.compress(packed)))
    assert squeezed.positions == [(*AT, NOW)]


def test_native_fields_may_be_packed_and_a_nan_is_no_fix() -> None:
    table = {"unpack": "struct >ddd lat lon ts"}
    assert fix(struct.pack(">ddd", *AT, NOW), table).positions == [(*AT, NOW)]
    assert fix(struct.pack(">ddd", math.nan, AT[1], NOW), table).refused == {NO_FIX: 1}


@pytest.mark.parametrize(
    ("unpack", "pack"),
    [
        ("struct <d value", lambda x: struct.pack("<d", x)),
        ("struct >xd value", lambda x: struct.pack(">xd", x)),
        ("cbor", lambda x: b"\xfb" + struct.pack(">d", x)),
        ("gzip", lambda x: gzip.compress(str(x).encode())),
        (["zlib", "struct <d value"], lambda x: zlib.compress(struct.pack("<d", x))),
    ],
)
def test_a_number_alone_may_be_packed(unpack: Any, pack: Callable[[float], bytes]) -> None:  # noqa: ANN401  of settings
    paths = {"lat": "latitude", "lon": "longitude", "bare": True, "join_s": 0.5}
    table = {"topic": "cars/{device}/+", "codec": "json", "payload": paths, "unpack": unpack}
    halves = (("cars/a/latitude", pack(AT[0])), ("cars/a/longitude", pack(AT[1])))
    found = Read(table, *halves, seconds=0.1)
    np.testing.assert_array_equal(found.positions, [(*AT, math.nan)])
    assert Read(table, ("cars/a/latitude", pack(98.0))).refused == {
        Outcome.INVALID__OUT_OF_RANGE: 1
    }


def test_a_retained_half_without_a_time_joins_nothing() -> None:
    paths = {"lat": "latitude", "lon": "longitude", "bare": True, "join_s": 5.0}
    stated = {"topic": "cars/{device}/+", "codec": "json", "payload": paths}
    ledger = Ledger()
    ledger.receive(2)
    decoder = Decoder(TopicRouter([InputSettings.model_validate(stated)]), LimitSettings(), ledger)
    old = Delivery("cars/a/latitude", b"60.17", 0, True)
    batch = [Arrivals(1.0, [old, Delivery("cars/a/longitude", b"24.94", 0)])]
    assert not len(decoder.decode(batch).of[Treatment.MOBILE].ts)
    assert ledger.n(Outcome.INVALID__RETAINED) == 1


# Others of each kind, and the rule that decides them.

TEXT = b'{"lat": 60.17, "lon": 24.94, "ts": 1800000000.0}'
NEARLY = {
    "newline": TEXT + b"\r\n",
    "a buffer of fixed size": TEXT + b"\0" * 40,
    "what the buffer held before": TEXT + b'\0"ts": 17}',
    "byte-order mark": b"\xef\xbb\xbf" + TEXT,
    "utf-16": TEXT.decode().encode("utf-16"),
    "utf-16, big": b"\xfe\xff" + TEXT.decode().encode("utf-16-be"),
    "nan": TEXT[:-1] + b', "acc": nan}',
    "-nan(ind)": TEXT[:-1] + b', "acc": -nan(ind)}',
    "Infinity": TEXT[:-1] + b', "acc": [-Infinity, Infinity]}',
    "a word of Python": TEXT[:-1] + b', "acc": None, "valid": True}',
    "a word of JavaScript": TEXT[:-1] + b', "acc": undefined}',
    "leading zeros": TEXT[:-1] + b', "speed": 007}',
    "latin-1 in a name": TEXT[:-1] + b', "name": "Z\xfcrich"}',
    "control characters": TEXT[:-1] + b', "name": "a\x01\tb"}',
    "nan within a text": TEXT[:-1] + b', "name": "a \\" nan, nan", "acc": nan}',
    "a device of another type": TEXT[:-1] + b', "device": {"id": [1]}}',
    "an endless number": TEXT[:-1] + b', "n": 1e999}',
    "NaN of another library": TEXT[:-1] + b', "acc": 1.#QNAN, "hdop": -1.#IND}',
    "a number with its unit": TEXT[:-1] + b', "speed": 12km, "course": 7f}',
    "half an emoji": TEXT[:-1] + b', "name": "bus \\ud83d"}',
    "the other half": TEXT[:-1] + b', "name": "\\ude8c bus", "a": "\\ud83d\\ude8c"}',
    "a path of Windows": TEXT[:-1] + b', "log": "C:\\gps\\temp\\x.txt", "a": "\\u12"}',
}


@pytest.mark.parametrize("payload", NEARLY.values(), ids=NEARLY)
def test_what_nobody_reads_costs_nothing(payload: bytes) -> None:
    found = fix(payload)
    assert (found.positions, found.refused) == ([(*AT, NOW)], {})
    many = fix(b"[" + payload + b"]") if payload.startswith(b"{") and b"\0" not in payload else None
    assert many is None or many.positions == [(*AT, NOW)]


@pytest.mark.parametrize("word", [b"1799990000L", b"1.8e9f", b"tomorrow", b"0x6B49D200"])
def test_a_word_that_is_no_time_is_never_taken_for_none(word: bytes) -> None:
    """Else an old position would get the time of its arrival."""
    stated = TEXT.replace(b"1800000000.0", word)
    assert fix(stated).refused == {TIME_FORM: 1}
    for none in (b"None", b"nan", b"undefined", b"nil", b"-nan(ind)", b"1.#QNAN"):
        unknown = fix(TEXT.replace(b"1800000000.0", none)).positions
        np.testing.assert_array_equal(unknown, [(*AT, math.nan)])


@pytest.mark.parametrize(
    ("word", "why"),
    [(b"60.17f", NOT_DEGREES), (b"nord", SCHEMA), (b"nan", NO_FIX), (b"nil", NO_FIX)],
)
def test_a_word_that_is_no_latitude_is_no_fix_only_if_it_says_so(word: bytes, why: Outcome) -> None:
    assert fix(TEXT.replace(b"60.17", word)).refused == {why: 1}


def test_a_dictionary_of_python_is_another_format() -> None:
    assert fix(b"{'lat': 60.17, 'lon': 24.94, 'ts': 1800000000.0}").refused == {MALFORMED: 1}


def test_flags_in_words_of_python_are_flags() -> None:
    body = b'{"latitude": 60.17, "longitude": 24.94, "valid": %b}'
    traccar = {"codec": "traccar"}
    assert fix(body % b"False", traccar).refused == {NO_FIX: 1}
    assert len(fix(body % b"True", traccar).positions) == 1


VAGUE: list[tuple[str, dict[str, object]]] = [
    ("native", {"lat": AT[0], "lon": AT[1], "accuracy_m": "19138"}),
    ("owntracks", {"_type": "location", "lat": AT[0], "lon": AT[1], "acc": "19138.0"}),
    ("home_assistant", {"latitude": AT[0], "longitude": AT[1], "gps_accuracy": "5000"}),
    ("traccar", {"latitude": AT[0], "longitude": AT[1], "accuracy": "+5e3"}),
    ("ngsi_ld", {"id": "a", "type": "Vehicle", "accuracy": {"type": "Property", "value": "5000"},
                 "location": {"type": "Point", "coordinates": AT[::-1]}}),
    ("ngsi_ld", {"id": "a", "type": "Vehicle",
                 "accuracy": {"type": "Property", "value": 5, "unitCode": "KMT"},
                 "location": {"type": "Point", "coordinates": AT[::-1]}}),
    ("ttn", {"uplink_message": {"decoded_payload": {
        "latitude": AT[0], "longitude": AT[1], "accuracy": 5000}}}),
    ("json", {"lat": AT[0], "lon": AT[1], "acc": "5000 "}),
]  # fmt: skip


@pytest.mark.parametrize(("codec", "body"), VAGUE)
def test_a_vague_place_is_told_however_its_accuracy_is_spelled(
    codec: str, body: dict[str, object]
) -> None:
    paths = {"lat": "lat", "lon": "lon", "accuracy": "acc"}
    table = {"codec": codec} | ({"payload": paths} if codec == "json" else {})
    [accuracy_m] = fix(body, table).accuracies
    assert accuracy_m >= 5000
    exact = json.loads(json.dumps(body).replace("19138", "5").replace("5000", "5"))
    if "KMT" not in json.dumps(body) and "+5e3" not in json.dumps(body):
        assert fix(exact, table).accuracies == [5.0]


@pytest.mark.parametrize("codec", ["native", "msgpack"])
@pytest.mark.parametrize(
    "payload", [TEXT[:-1], TEXT + b"}", b"60.17;24.94", b"<gpx/>", b"\xff\xfe"]
)
def test_what_is_cut_off_or_another_format_stays_malformed(payload: bytes, codec: str) -> None:
    [why] = fix(payload, {"codec": codec}).refused
    assert why in {MALFORMED, SCHEMA}


@pytest.mark.parametrize("pad", ["{} ", "  {}", "{}\0", "{}\r\n", "+{}"])
def test_numbers_in_fields_of_fixed_width_are_numbers(pad: str) -> None:
    table = {"codec": "json", "payload": NUMBER}
    body = {"lat": pad.format("60.17"), "lon": pad.format("24.94"), "t": pad.format("1800000000")}
    assert fix(body, table).positions == [(*AT, NOW)]


@pytest.mark.parametrize(
    ("lat", "lon", "why"),
    [
        (None, None, NO_FIX),
        (None, 24.94, NO_FIX),
        ("", "", NO_FIX),
        ("NaN", "NaN", NO_FIX),
        ("Infinity", 24.94, NO_FIX),
        ("N/A", "N/A", NO_FIX),
        ("unknown", "unavailable", NO_FIX),
        ("undefined", 24.94, NO_FIX),
        ("---", "-", NO_FIX),
        (-214.7483648, -214.7483648, NO_FIX),
        (91, 181, NO_FIX),
        (-999, -999, NO_FIX),
        (9999.0, 9999.0, NO_FIX),
        (214.7483647, 214.7483647, NO_FIX),
        (0, 0, Outcome.INVALID__NULL_ISLAND),
        (24.94, 190.17, Outcome.INVALID__OUT_OF_RANGE),
        ("60,17", "24,94", NOT_DEGREES),
        ("60.17 E", 24.94, NOT_DEGREES),
        ("60°10'12\"N", "24°56'24\"E", NOT_DEGREES),
        ("N 60.17", "E 24.94 W", NOT_DEGREES),
    ],
)
def test_each_way_to_have_no_position_has_one_reason(
    lat: object, lon: object, why: Outcome
) -> None:
    table = {"codec": "json", "payload": {"lat": "lat", "lon": "lon"}}
    assert fix({"lat": lat, "lon": lon}, table).refused == {why: 1}


@pytest.mark.parametrize(
    ("codec", "body"),
    [
        ("owntracks", {"_type": "location", "lat": None, "lon": None}),
        ("home_assistant", {"latitude": None, "longitude": 24.94}),
        ("traccar", {"latitude": None, "longitude": None}),
        ("native", {"lat": None, "lon": 24.94}),
        ("meshtastic", {"type": "position", "payload": {"latitude_i": None, "longitude_i": 1}}),
        ("ttn", {"uplink_message": {"decoded_payload": {"lat": None, "lon": None}}}),
        ("gtfs_rt_json", {"id": "a", "vehicle": {"position": {"latitude": None, "longitude": 1}}}),
        ("ngsi_ld", {"id": "a", "type": "Vehicle",
                     "location": {"type": "Point", "coordinates": [None, None]}}),
        ("ngsi_ld", {"id": "a", "type": "Vehicle",
                     "location": {"type": "Point", "coordinates": None}}),
    ],
)  # fmt: skip
def test_null_coordinates_are_no_fix_in_every_format(codec: str, body: object) -> None:
    assert fix(body, {"codec": codec}).refused == {NO_FIX: 1}


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-15T08:00:00Z", "2027-01-15 08:00:00+00:00", "2027-01-15T10:00:00+02",
        "2027-01-15t08:00:00z", "20270115080000", "20270115T080000Z", "2027-01-15 08:00:00 UTC",
        "2027-01-15 08:00:00 +0000 UTC", "2027-01-15T10:00:00+02:00[Europe/Helsinki]",
        "2027/01/15 08:00:00", "2027-01-15T08:00Z", "2027-01-15T07:59:60Z",
        "2027-01-15T08:00:00,000Z", "2027-01-15T08:00:00", 20270115080000,
        "202701150800", 202701150800, "20270115080000000", 20270115080000000,
        " 20270115080000 ", "2027-01-15T08:00:00Z\0",
    ],
)  # fmt: skip
def test_a_calendar_time_is_read_in_every_clear_form(text: object) -> None:
    assert dated(text, ISO).positions == [(*AT, NOW)]


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("Fri, 15 Jan 27 08:00:00 GMT", TIME_FORM),
        ("01/15/2027 08:00:00 AM", TIME_FORM),
        ("15.01.2027 08:00:00", TIME_FORM),
        ("2027-01-15T24:00:01Z", TIME_FORM),
        ("2027-01-15", TIME_FORM),  # a day is no time
        ("20270115", TIME_FORM),
        (20270115, TIME_FORM),
        ("080000.00", TIME_FORM),  # of NMEA
        ("270115080000", TIME_FORM),  # the year is not clear
        (202713150800, TIME_FORM),
        ("2027-01-15T08:00:61Z", TIME_FORM),
        (int(NOW), IN_S),
        (str(int(NOW)), IN_S),
        (int(NOW) * 1000, IN_MS),
        ("2027-01-15T10:00:00", NO_ZONE),
        ("20270115100000", NO_ZONE),
        ("2027-01-15T10:00:00Z", FUTURE),
        ("2026-01-15T08:00:00Z", ANCIENT),
    ],
)
def test_a_calendar_time_of_another_form_is_refused_with_its_reason(
    time: object, why: Outcome
) -> None:
    assert dated(time, ISO).refused == {why: 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "iso8601"])
@pytest.mark.parametrize(
    "none",
    [None, 0, -1, -5.5, "", "null", "0", "unknown", *(NEVER := (
        "0001-01-01T00:00:00Z", "0000-00-00 00:00:00", "0000-00-00T00:00:00.000Z", "0000-00-00",
    ))],
)  # fmt: skip
def test_no_time_is_no_time_in_every_unit(unit: str, none: object) -> None:
    if (unit == "iso8601") != (none in NEVER) and isinstance(none, str) and none:
        return  # text of another form
    np.testing.assert_array_equal(
        dated(none, NUMBER | {"time_unit": unit}).positions, [(*AT, math.nan)]
    )


@pytest.mark.parametrize(
    ("unit", "number", "why"),
    [
        ("s", NOW * 1e3, IN_MS),
        ("s", NOW * 1e6, IN_US),
        ("s", NOW * 1e9, IN_NS),
        ("ms", NOW, IN_S),
        ("ms", NOW * 1e6, IN_US),
        ("ns", NOW * 1e6, IN_US),
        ("s", 20833, ANCIENT),  # days since 1970
        ("s", 46402.33, ANCIENT),  # days since 1900, as of spreadsheets
        ("s", 1.48e9, ANCIENT),  # seconds since 1980, as of receivers
        ("s", 1e30, FUTURE),
        ("s", 20270115080000, TIME_FORM),  # a date and a time in digits
        ("ms", "20270115080000", TIME_FORM),
        ("s", 20270115080000123, TIME_FORM),
    ],
)
def test_a_number_of_the_size_of_another_unit_names_that_unit(
    unit: str, number: object, why: Outcome
) -> None:
    assert dated(number, NUMBER | {"time_unit": unit}).refused == {why: 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_text_like_iso_8601_is_read_whatever_the_unit_of_numbers(unit: str) -> None:
    read = dated("2027-01-15T08:00:00Z", NUMBER | {"time_unit": unit})
    np.testing.assert_array_equal(read.positions, [(*AT, NOW)])


@pytest.mark.parametrize(
    "stated", [{"accuracy_m": -1}, {"acc": -0.5}, {"acc": "-1"}, {"readings": {"accuracy_m": -1}}]
)
@pytest.mark.parametrize("codec", ["native", "owntracks"])
def test_a_negative_accuracy_is_no_fix_however_it_is_read(
    codec: str, stated: dict[str, object]
) -> None:
    body = {"_type": "location", "lat": AT[0], "lon": AT[1], **stated}
    of_native = ("acc" in stated) == (codec == "owntracks")
    refused = {Outcome.INVALID__NO_FIX: 1} if of_native else {}
    assert fix(body, {"codec": codec}).refused == refused


@pytest.mark.parametrize("codec", ["native", "owntracks"])
@pytest.mark.parametrize(("per_second", "why"), [(1e3, IN_MS), (1e6, IN_US), (1e9, IN_NS)])
def test_the_formats_name_the_unit_too(codec: str, per_second: float, why: Outcome) -> None:
    time = int(NOW * per_second)
    body = {"_type": "location", "lat": AT[0], "lon": AT[1], "ts": time, "tst": time}
    assert fix(body, {"codec": codec}).refused == {why: 1}
    position = {"latitude": AT[0], "longitude": AT[1], "fixTime": time}
    assert fix(position, {"codec": "traccar"}).refused == {why: 1}


def test_what_a_user_can_mend_is_said_with_the_setting_that_mends_it() -> None:
    for why in (NO_ZONE, IN_S, IN_MS, IN_US, IN_NS, Outcome.INVALID__COMPRESSED):
        assert "payload.time" in CAUSES[why] or "inputs.unpack" in CAUSES[why]


def deflated(content: bytes) -> bytes:
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return raw.compress(content) + raw.flush()


PACKED = {"gzip": gzip.compress(TEXT), "zlib": zlib.compress(TEXT), "deflate": deflated(TEXT)}


@pytest.mark.parametrize("codec", ["native", "owntracks", "msgpack", "gtfs_rt", "hfp"])
@pytest.mark.parametrize("packing", PACKED)
def test_undeclared_the_reason_says_compressed_whatever_the_codec(codec: str, packing: str) -> None:
    found = fix(PACKED[packing], {"codec": codec})
    # Protocol buffers and MessagePack are binary: raw deflate may look like them.
    allowed = {Outcome.INVALID__COMPRESSED}
    if packing == "deflate" and codec in {"msgpack", "gtfs_rt"}:
        allowed |= {MALFORMED, SCHEMA}
    assert set(found.refused) <= allowed


ZSTANDARD = bytes.fromhex("28b52ffd2004210000000a0b0c0d")


def test_compressions_that_cannot_be_declared_are_named_too() -> None:
    for payload in (ZSTANDARD, b"BZh91AY&SY", b"\xfd7zXZ\x00\x00", b"PK\x03\x04\x14"):
        assert fix(payload).refused == {Outcome.INVALID__COMPRESSED: 1}


@pytest.mark.parametrize("packing", PACKED)
def test_what_is_packed_is_bounded_whole_and_alone(packing: str) -> None:
    table = {"unpack": packing, "max_unpacked_bytes": 1000}
    packed = PACKED[packing]
    assert fix(packed, table).positions == [(*AT, NOW)]
    assert fix(packed + b"\r\n", table).positions == [(*AT, NOW)], "as a line"
    for damaged in (packed[:-5], TEXT, b"\x1f\x8b" * 9):
        assert fix(damaged, table).refused == {MALFORMED: 1}
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress, "zlib": zlib.compress, "deflate": deflated,
    }  # fmt: skip
    pack = packers[packing]
    assert fix(pack(b" " * 10_000_000), table).refused == {Outcome.INVALID__TOO_LARGE: 1}
    assert fix(b"", table).refused == {Outcome.INVALID__EMPTY: 1}


CBOR = bytes.fromhex(
    "a3636c6174fb404e15c28f5c28f6636c6f6efb4038f0a3d70a3d71627473fb41dad27480000000"
)


@pytest.mark.parametrize(
    "payload",
    [
        CBOR,
        b"\x81" + CBOR,
        b"\xbf" + CBOR[1:] + b"\xff",
        b"\xd9\xd9\xf7" + CBOR,
        b"\xa4" + CBOR[1:] + b"\x63acc\xf9\x7e\x00",
        b"\xa4" + CBOR[1:] + b"\x07\x43abc",
    ],
    ids=["map", "array", "indefinite", "self-described", "NaN", "numbered"],
)
def test_cbor_is_read_as_the_json_it_stands_for(payload: bytes) -> None:
    assert fix(payload, {"unpack": "cbor"}).positions == [(*AT, NOW)]
    assert fix(gzip.compress(payload), {"unpack": ["gzip", "cbor"]}).positions == [(*AT, NOW)]


@pytest.mark.parametrize(
    "payload",
    [CBOR[:-1], CBOR + b"\0", b"\x81" * 200, b"\x9b" + b"\xff" * 8, b"\xbb" + b"\xff" * 8, b"\xff",
     b"\x7f\x41a\xff", b"\xbf\x01\xff", b"\x1c", b"\x5a\xff\xff\xff\xff"],
)  # fmt: skip
def test_broken_cbor_is_malformed_whatever_it_claims(payload: bytes) -> None:
    assert fix(payload, {"unpack": "cbor"}).refused == {MALFORMED: 1}


@pytest.mark.parametrize(
    "table",
    [
        {"unpack": "zstd"},
        {"unpack": []},
        {"unpack": ["cbor", "gzip"]},
        {"unpack": "cbor", "codec": "msgpack"},
        {"unpack": "struct <dd lat lon", "codec": "gtfs_rt"},
        {"unpack": ["struct <dd lat lon", "gzip"]},
        {"unpack": "struct <dd lat"},
        {"unpack": "struct <dd lat lat"},
        {"unpack": "struct dd lat lon"},
        {"unpack": "struct <zz lat lon"},
        {"unpack": "struct <9999xdd lat lon"},
        {"unpack": "struct <" + "9" * 30 + "d lat"},
        {"unpack": "gzip", "echo": "out/{pseudonym}"},
        {"codec": "json", "payload": ISO | {"time_zone": "Mars/Base"}},
        {"codec": "json", "payload": NUMBER | {"time_zone": "+02:00"}},
        {"codec": "json", "payload": {"lat": "a", "lon": "b", "positions": "{device}"}},
        {"codec": "json", "device_from": "payload", "topic": "x",
         "payload": {"lat": "a", "lon": "b", "device": "c", "positions": "{device}"}},
        {"codec": "json", "payload": {"lat": "a", "lon": "b", "bare": True, "join_s": 1.0}},
        {"codec": "json", "topic": "{device}/+", "payload": {"lat": "a", "lon": "b", "bare": True}},
    ],
)  # fmt: skip
def test_declarations_that_fit_nothing_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InputSettings.model_validate({"topic": "x/{device}"} | table)


HERE = {"lat": 1.5, "lon": 2.5}
KEYED: list[tuple[str, Any, list[str], dict[Outcome, int]]] = [
    ("{device}", {"a": HERE, "b": [HERE] * 2}, [*"abb"], {}),
    ("{device}", {"a": None, "b": HERE}, ["b"], {NO_FIX: 1}),
    ("{device}", {"a": 7, "": HERE}, [], {SCHEMA: 1, Outcome.INVALID__NO_DEVICE: 1}),
    ("{device}", {}, [], {Outcome.INVALID__EMPTY: 1}),
    ("{device}", [], [], {SCHEMA: 1}),
    ("data.{device}.at", {"data": {"a": {"at": [HERE]}, "b": {}}}, ["a"],
     {SCHEMA: 1}),
    ("data.{device}.at", {"data": None}, [], {NO_FIX: 1}),
    ("data.{device}.at", {}, [], {SCHEMA: 1}),
]  # fmt: skip


@pytest.mark.parametrize(("positions", "body", "devices", "refused"), KEYED)
def test_each_key_is_a_device_and_a_bad_one_spoils_no_other(
    positions: str, body: object, devices: list[str], refused: dict[Outcome, int]
) -> None:
    paths = {"positions": positions, "lat": "lat", "lon": "lon"}
    table = {"codec": "json", "device_from": "payload", "payload": paths}
    found = Read(table, ("x", json.dumps(body).encode()))
    assert (found.devices, found.refused) == (devices, refused)
