"""Records of any shape: paths, filters, and categories that nobody has declared."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymizer.codecs.record_parts import PartReader, texts_of
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.records.anonymize_window import warm_up
from anonymizer.pipeline.records.declaration import Stream, declare
from anonymizer.settings import StreamSettings
from tests.codecs.hostile import HOSTILE, paths, with_part
from tests.pipeline.records.support import Rig

TOLL: dict[str, Any] = {
    "name": "toll",
    "window_s": 60.0,
    "lateness_s": 5,
    "idle_s": 30,
    "method": "hilbert",
    "promise": {"k": 3, "d": 1},
    "sources": [
        {
            "name": "gantry",
            "topic": "toll/{vehicle}",
            "time": "exit.at",
            "where": {"vehicle": {"type": ["truck", "bus"]}},
            "tells": ["section", "axles", "km"],
        }
    ],
    "attributes": [
        {"name": "section", "path": "exit.section", "values": "any"},
        {"name": "axles", "path": "vehicle.axles", "values": ["2", "3", "4"]},
        {"name": "km", "path": "km", "lo": 0, "hi": 100},
    ],
}
MESSAGE = {
    "vehicle": {"type": "truck", "axles": 3},
    "exit": {"at": 1_700_000_061_000, "section": "03F-261S"},
    "km": "12",
}


def toll(**changes: Any) -> StreamSettings:  # noqa: ANN401  settings
    return StreamSettings.model_validate(TOLL | changes)


def reader(**changes: Any) -> PartReader:  # noqa: ANN401  settings
    return declare(toll(**changes)).readers[0]


def outcome_of(message: object) -> Outcome | None:
    part = reader().read(json.dumps(message).encode())
    return part if isinstance(part, Outcome) else None


def test_a_part_is_read_where_the_settings_say() -> None:
    part = reader().read(json.dumps(MESSAGE).encode())
    assert not isinstance(part, Outcome)
    ts, cells = part
    assert (ts, cells[4:12], texts_of(cells, n_attributes=3)) == (
        1_700_000_061.0,
        bytes([1, 0, 0, 0, 12, 0, 0, 0]),
        ["03F-261S"],
    )


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("vehicle", "type"), "bus", None),
        (("vehicle", "type"), "car", Outcome.INVALID__NOT_SELECTED),
        (("vehicle", "type"), None, Outcome.INVALID__NOT_SELECTED),
        (("vehicle",), "truck", Outcome.INVALID__NOT_SELECTED),
        (("vehicle", "axles"), "4", None),
        (("vehicle", "axles"), 7, Outcome.INVALID__OUT_OF_DOMAIN),
        (("vehicle", "axles"), 2.5, Outcome.INVALID__SCHEMA),
        (("exit", "at"), "1970-01-01T00:01:01Z", None),
        (("exit", "at"), "1700000061000", None),
        (("exit", "at"), None, Outcome.INVALID__SCHEMA),
        (("exit",), None, Outcome.INVALID__SCHEMA),
        (("exit", "section"), 5, None),
        (("exit", "section"), None, None),
        (("exit", "section"), "?", None),
        (("exit", "section"), "x" * 65, Outcome.INVALID__OUT_OF_DOMAIN),
        (("exit", "section"), "a\x07b", None),  # without the sign that nobody sees
        (("exit", "section"), "a\ue000b", Outcome.INVALID__OUT_OF_DOMAIN),
        (("km",), "twelve", Outcome.INVALID__SCHEMA),
        (("km",), "101", Outcome.INVALID__OUT_OF_DOMAIN),
    ],
)
def test_each_value_is_accepted_or_refused_with_its_reason(
    path: tuple[str, ...], value: object, expected: Outcome | None
) -> None:
    assert outcome_of(with_part(MESSAGE, path, value)) is expected


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ("", None),
        (" ", None),
        ("N/A", None),
        ("a\nb", "a b"),
        ("a\x00b", "a b"),
        (" a \t b", "a b"),
        ("0", "0"),
    ],
)
def test_a_text_is_read_without_what_its_writing_adds(stated: str, read: str | None) -> None:
    part = reader().read(json.dumps(with_part(MESSAGE, ("exit", "section"), stated)).encode())
    assert not isinstance(part, Outcome)
    assert texts_of(part[1], n_attributes=3) == [read]


@given(
    path=st.sampled_from(list(paths(MESSAGE))),
    part=st.sampled_from(HOSTILE),
    cut=st.integers(0, 200),
)
def test_no_payload_makes_a_reader_raise(path: tuple[Any, ...], part: object, cut: int) -> None:
    payload = json.dumps(with_part(MESSAGE, path, part)).encode()
    for each in (payload, payload[:cut], b'{"exit":' + b"[" * 9000):
        found = READER.read(each)
        assert isinstance(found, Outcome) or len(found) == 2


READER = reader()


def sent(
    section: str | None, *vehicles: str, kind: str = "truck", at: float = 61
) -> list[Delivery]:
    message = {
        "vehicle": {"type": kind, "axles": 2},
        "exit": {"at": at * 1000, "section": section},
        "km": 5,
    }
    return [Delivery(f"toll/{v}", json.dumps(message).encode(), 0) for v in vehicles]


class TollRig(Rig):
    def __init__(self, folder: Path, **changes: Any) -> None:  # noqa: ANN401  settings
        self._changes = changes
        super().__init__(folder)

    def _open(self) -> None:
        self.stream = declare(toll(**self._changes))
        super()._open()


def sections(rig: Rig) -> list[list[str]]:
    return [of["qis"]["section"]["values"] for of in rig.classes()]


def test_cars_do_not_count_among_trucks(tmp_path: Path) -> None:
    rig = TollRig(tmp_path)
    rig.take_raw([*sent("a", "1", "2"), *sent("a", "3", "4", "5", kind="car")])
    rig.close(silent=True)
    assert rig.classes() == []  # two trucks are fewer than k
    assert rig.accounts()["invalid/not_selected"] == 3
    assert rig.accounts()["suppressed/no_class"] == 2


def test_a_section_that_nobody_has_declared_is_published_without_a_restart(tmp_path: Path) -> None:
    rig = TollRig(tmp_path)
    rig.take_raw(sent("01F", "1", "2", "3"))
    rig.close(silent=True)
    assert sections(rig) == [["01F"]]
    rig.publish()
    # The same process, a new section: between the known ones, so that codes by first sight differ.
    rig.take_raw([*sent("01F", "1", "2", "3", at=121), *sent("00N", "4", "5", "6", at=121)])
    rig.close(silent=True)
    assert sorted(sections(rig)) == [["00N"], ["01F"]]


def test_values_keep_their_meaning_over_a_crash(tmp_path: Path) -> None:
    rig = TollRig(tmp_path)
    rig.take_raw(sent("zz", "1", "2", "3"))
    rig.crash()
    # What comes later sorts before it; a code given by then would now mean something else.
    rig.take_raw(sent("aa", "4", "5", "6"))
    rig.crash()
    rig.close(silent=True)
    assert sorted(sections(rig)) == [["aa"], ["zz"]]


def test_a_missing_value_is_none_of_the_domain(tmp_path: Path) -> None:
    rig = TollRig(tmp_path)
    rig.take_raw([*sent("a", "1", "2"), *sent(None, "3")])
    rig.close(silent=True)
    [only] = rig.classes()
    assert only["qis"]["section"]["values"] == ["a", "?"]
    rig.publish()
    rig.take_raw(sent(None, "1", "2", "3", at=121))
    rig.close(silent=True)
    assert rig.classes() == []  # not one value


SENSITIVE = [
    *TOLL["attributes"][1:],
    {"name": "section", "path": "exit.section", "values": "any", "role": "sensitive"},
]


def test_l_counts_the_values_of_an_open_domain(tmp_path: Path) -> None:
    changes = {"attributes": SENSITIVE, "model": "kld", "promise": {"k": 3, "d": 1, "l": 2}}
    rig = TollRig(tmp_path, **changes)
    rig.take_raw(sent("a", "1", "2", "3"))
    rig.close(silent=True)
    assert rig.classes() == []  # one value among three vehicles, or none: never two
    rig.take_raw([*sent("a", "1", "2", at=121), *sent(None, "3", at=121)])
    rig.close(silent=True)
    assert rig.classes() == []  # the missing marker is no value
    rig.take_raw([*sent("a", "1", "2", at=181), *sent("b", "3", at=181)])
    rig.close(silent=True)
    [only] = rig.classes()
    assert sorted(only["sensitive"]["section"]) == ["a", "a", "b"]


LABELS = {"kd": "representative", "kaca": "representative", "cells": "range"}


def test_every_model_warms_up_and_closes_with_an_open_domain(tmp_path: Path) -> None:
    for model in ("kd", "kaca", "cells"):
        (tmp_path / model).mkdir()
        rig = TollRig(tmp_path / model, model=model, method="auto", labels=LABELS[model])
        some = dict.fromkeys(rig.stream.open_columns, "0123456789")
        warm_up(*rig.state.in_window(some))
        rig.take_raw([*sent("03F-1", "1", "2", "3"), *sent("03F-2", "4", "5", "6")])
        rig.close(silent=True)
        assert sum(each["count"] for each in rig.classes()) == 6
        rig.store.close()


def test_the_shape_of_a_stream_does_not_depend_on_what_has_occurred() -> None:
    stream: Stream = declare(toll())
    assert stream.in_window({0: ["a", "b"]}).shape == stream.shape
    declared = [{"name": "section", "path": "exit.section", "values": ["a"]}, *SENSITIVE[:2]]
    assert declare(toll(attributes=declared)).shape != stream.shape


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ({"lo": 0, "hi": 1}, 'values: "any" is for categories'),
        ({"hierarchy": "x.csv"}, 'values: "any" is for categories'),
        ({"lasting": True}, "not for a lasting attribute"),
        ({"role": "measure"}, "a measure must be a number"),
    ],
)
def test_an_open_domain_has_nothing_declared(attribute: dict[str, Any], said: str) -> None:
    attributes = [TOLL["attributes"][0] | attribute, *TOLL["attributes"][1:]]
    with pytest.raises(ValidationError, match=said):
        toll(attributes=attributes)


def test_what_a_tree_learns_is_declared() -> None:
    with pytest.raises(ValidationError, match='target: must not have values = "any"'):
        toll(
            attributes=SENSITIVE,
            model="cells",
            method="auto",
            target="section",
            promise={"k": 3, "l": 2},
        )


def test_paths_that_fit_nothing_are_refused_by_their_source() -> None:
    attributes = [*TOLL["attributes"][:2], {"name": "km", "path": "exit", "lo": 0, "hi": 9}]
    with pytest.raises(SettingsError, match=r"toll: sources: gantry: .*exit"):
        declare(toll(attributes=attributes))
    with pytest.raises(ValidationError, match="km is the time of a part"):
        toll(sources=[TOLL["sources"][0] | {"time": "km"}])
