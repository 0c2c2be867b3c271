"""Ids: k counts devices, not spellings of one, wherever an id comes from."""

import json
import unicodedata
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.domain.device_ids import id_of, plain_id
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import InputError
from anonymizer.files.device_registry import read_registry
from anonymizer.files.release_lines import read_auditor_map
from anonymizer.files.traces import trace_of
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.device_zones import takes_no_part
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.settings import InputSettings, LimitSettings
from tests.examples import many
from tests.pipeline.records.made import FLEET, fleet

SPELLINGS = ("bus-é 1", "bus-e\u0301 1", " bus-é 1", "bus-é 1  ", "bus-é 1\u200b", "bus-é\u00a01")
ASCII = ("bus-1", " bus-1", "bus-1 ", "bus-1\u200b", "\u00a0bus-1", "\u2060bus-1")
WORDS = ("bus 1", "bus  1", " bus 1  ", "bus\u00a01", "bus \u00a01", "bus \u200b 1")
BY_ESCAPE = ("bus-1\0", "\tbus-1", "bus-1\n", "\x1fbus-1\x7f")
"""No topic can have these."""
NOBODY = ("  ", "\u200b", "\u00a0")
SECRET = b"of this test"
INPUTS = [
    InputSettings(topic="own/{device}"),
    InputSettings(topic="feed", device_from="payload"),
    InputSettings(topic="raw", device_from="payload", codec="msgpack"),
]


def body(device: str, *, ascii_: bool) -> bytes:
    said = {"device": device, "lat": 60.2, "lon": 24.9, "ts": 1.8e9}
    return json.dumps(said, ensure_ascii=ascii_).encode()


def slots_of(*messages: Delivery, limit: int | None = None) -> tuple[set[int], Ledger]:
    """Return the slots of the devices of all usable messages; `limit`: bytes for their names."""
    ledger, devices = Ledger(), DeviceTable(secret=SECRET, max_devices=99)
    decoder = Decoder(TopicRouter(INPUTS), LimitSettings(), ledger)
    if limit is not None:
        decoder.senders._names._max_bytes = limit
    ledger.receive(len(messages))
    decoded = decoder.decode([Arrivals(0.0, messages)]).of[Treatment.MOBILE]
    rows = [*range(len(decoded.sender))]
    return set(decoded.slots(rows, devices).tolist()), ledger  # type: ignore[arg-type]


@pytest.mark.parametrize("of", [SPELLINGS, ASCII, WORDS])
@pytest.mark.parametrize("full", [None, 0])
def test_k_counts_a_device_once_however_payload_and_topic_spell_it(
    of: tuple[str, ...], full: int | None
) -> None:
    by_topic = [Delivery(f"own/{each}", body("", ascii_=True), 0) for each in of]
    assert len(slots_of(*by_topic, limit=full)[0]) == 1
    by_payload = [
        Delivery("feed", body(each, ascii_=ascii_), 0)
        for each in of + (BY_ESCAPE if of is ASCII else ())
        for ascii_ in (True, False)
    ]
    assert len(slots_of(*by_payload, limit=full)[0]) == 1
    found, ledger = slots_of(*by_topic, *by_payload, limit=full)
    assert len(found) == 1
    assert ledger.n_settled == 0


@pytest.mark.parametrize("said", NOBODY)
@pytest.mark.parametrize("full", [None, 0])
def test_an_id_that_says_nothing_is_a_missing_one(said: str, full: int | None) -> None:
    messages = [Delivery(f"own/{said}", body("", ascii_=True), 0)]
    messages += [Delivery("feed", body(said, ascii_=ascii_), 0) for ascii_ in (True, False)]
    found, ledger = slots_of(*messages, limit=full)
    assert found == set()
    assert ledger.n(Outcome.INVALID__NO_DEVICE) == len(messages)


@pytest.mark.parametrize("of", [SPELLINGS, ASCII, WORDS])
def test_records_and_statements_and_sources_of_a_cluster_know_one_device(
    of: tuple[str, ...],
) -> None:
    sources = [{**each, "topic": f"{i}/{{vehicle}}"} for i, each in enumerate(FLEET["sources"])]
    router = RecordRouter([fleet(sources=sources)], secret=SECRET, max_id_chars=99)
    keys = {route.vehicle for each in of for route in router.routes_of(f"0/{each}")}
    assert keys == {router.key(0, plain_id(of[0]))}
    assert not any(route.vehicle for each in NOBODY for route in router.routes_of(f"0/{each}"))
    said = takes_no_part([Delivery(f"zones/{each}", b"[]", 0) for each in of], [1])
    assert list(said) == [plain_id(of[0])]
    routing = DeviceRouting(INPUTS[:1])
    positions = PackedDeliveries.of([Delivery(f"own/{each}", b"", 0) for each in of])
    statements = PackedDeliveries.of([Delivery(f"z/{each}", b"", 0) for each in of])
    [one] = set(routing.parts_of(positions, 1000).tolist())
    assert set(routing.of_statements("z/{device}").parts_of(statements, 1000).tolist()) == {one}


def test_a_registry_lists_a_device_by_any_spelling_once(tmp_path: Path) -> None:
    path = tmp_path / "registry.csv"
    path.write_text(f"device_id,lat,lon\n{SPELLINGS[1]} ,60,25\n", encoding="utf-8")
    assert list(read_registry(path)) == [SPELLINGS[0]]
    path.write_text("device_id,lat,lon\na,60,25\n a,60,25\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3: lists a device again"):
        read_registry(path)


@pytest.mark.parametrize("of", [SPELLINGS, ASCII, WORDS])
def test_a_trace_and_its_map_know_one_device_by_any_spelling(
    of: tuple[str, ...], tmp_path: Path
) -> None:
    rows = {"ts": [*range(len(of) + 1)], "lat": 60.2, "lon": 24.9}
    trace = trace_of(pl.DataFrame({"device_id": [*of, "other"]} | rows))
    assert trace.device_id == (plain_id(of[0]), "other")
    assert trace.read_as == (f"{len(of) - 1} ids are other writings of others: each is one device",)
    nobody = trace_of(pl.DataFrame({"device_id": [*NOBODY]} | {**rows, "ts": [1, 2, 3]}))
    assert (nobody.device_id, nobody.n_unusable) == ((), len(NOBODY))
    path = tmp_path / "map.jsonl"
    path.write_text("".join(json.dumps({"pseudonym": "p", "device": each}) + "\n" for each in of))
    assert read_auditor_map(path, pseudonym=["p"], device_id=trace.device_id).tolist() == [0]


@many(3)
@given(st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_of_printable_ascii_only_blanks_at_the_edges_and_repeated_ones_go(said: str) -> None:
    assert plain_id(said) == " ".join(said.split())


@many(3)
@given(st.text())
@example("é&amp;amp;amp;")
@example("\u0430A")
@example("é 5 Mar 2024")
def test_the_form_of_a_form_is_itself_and_every_unicode_form_has_one(said: str) -> None:
    form = plain_id(said)
    assert plain_id(form) == form
    assert form == form.strip()
    for unicode in ("NFC", "NFD"):
        other = unicodedata.normalize(unicode, said)
        assert plain_id(f" {other}\u200b") == form


@given(st.lists(st.sampled_from(["a", "é", "a/b", "a\uff0fé", "a\u2044é", " ", ""]), min_size=1))
def test_no_level_of_a_topic_becomes_several(levels: list[str]) -> None:
    of = [each.replace("/", "") for each in levels]
    assert id_of(of).count("/") in {0, len(of) - 1}
    assert bool(id_of(of)) == all(each.strip() for each in of)
