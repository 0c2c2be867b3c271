"""The declaration of a stream: columns, hierarchies, shapes, and what is refused."""

from typing import Any

import pytest

from anonymizer.errors import SettingsError
from anonymizer.pipeline.records.declaration import declare
from tests.pipeline.records.made import FLEET, fleet, stream


def test_columns_are_quasi_identifiers_then_sensitive_attributes() -> None:
    declared = stream()
    assert [a.name for a in declared.attributes] == ["type", "region", "age", "speed", "fault"]
    assert declared.columns_of == ((0, 1), (2,), (3, 4))
    assert declared.schema.sources == ((0, 1), (2,), (3,))
    assert declared.lasting == ("type", "region")
    assert [a.missing for a in declared.attributes] == [4, 4, 73, 101, 4]


def test_a_source_with_only_sensitive_attributes_has_no_quasi_identifiers() -> None:
    sources = [
        {"name": "open", "tells": ["type", "region", "age", "speed"]},
        {"name": "hidden", "tells": ["fault"]},
    ]
    declared = stream(sources=sources)
    assert declared.schema.sources == ((0, 1, 2, 3),)
    assert declared.columns_of == ((0, 1, 2, 3), (4,))


def test_a_hierarchy_determines_the_order_of_codes_and_the_upper_labels() -> None:
    attributes = [*FLEET["attributes"][1:], {"name": "type", "hierarchy": "types.csv"}]
    branches = [("bus", "large", "*"), ("van", "small", "*"), ("truck", "large", "*")]
    declared = declare(fleet(attributes=attributes), branches={"type": branches})
    kind = next(a for a in declared.schema.qis if a.name == "type")
    assert kind.label == ("bus", "truck", "van", "?")
    assert kind.hierarchy is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": {"k": 4, "d": 5}}, "streams: fleet: promise.d: type has 4 values, d = 5"),
        ({"promise": {"k": 5, "l": 5}}, "streams: fleet: promise.l: fault has 4 values, l = 5"),
        (
            {"attributes": [*FLEET["attributes"][:3], FLEET["attributes"][4],
             {"name": "speed", "lo": 0, "hi": 50, "step": 0.3}]},
            "streams: fleet: attributes: speed: the step does not lead from one end to the other",
        ),
        (
            {"attributes": [*FLEET["attributes"][:3], FLEET["attributes"][4],
             {"name": "speed", "lo": 0, "hi": 1e9}]},
            "streams: fleet: attributes: speed: more than 1048576 steps",
        ),
    ],
)  # fmt: skip
def test_an_invalid_declaration_is_refused_in_one_line_that_names_the_key(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        stream(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["x", "y", "X"], "'x' and 'X' mean the same"),
        (["1", "01", "1.0"], "'1' and '01' mean the same"),
        (["yes", "true"], "'yes' and 'true' mean the same"),
        (["M\u00fcller", "Muller"], "'M\u00fcller' and 'Muller' mean the same"),
        (["x", "unknown"], "'unknown' means that there is no value"),
        (["x", "n/a", "-"], "'n/a' means that there is no value"),
    ],
)
@pytest.mark.parametrize("role", ["qi", "sensitive"])
def test_declared_values_are_refused_if_two_mean_the_same_or_one_means_none(
    values: list[str], problem: str, role: str
) -> None:
    declared = {"name": "fault", "role": role, "values": values}
    with pytest.raises(SettingsError, match=f"attributes: fault: values: {problem}.*: "):
        stream(attributes=[*FLEET["attributes"][:-1], declared])
    marked = {**declared, "values": ["x", "y", "n/a"], "missing": "n/a"}
    assert stream(attributes=[*FLEET["attributes"][:-1], marked])


@pytest.mark.parametrize(
    "values",
    [["O-", "O+"], ["C", "C++"], ["none", "brakes"], ["A01.1", "A01.2"], ["1.1", "1.10", "a", "b"]],
)
def test_declared_values_that_differ_in_meaning_are_taken(values: list[str]) -> None:
    declared = {"name": "fault", "role": "sensitive", "values": values}
    assert stream(attributes=[*FLEET["attributes"][:-1], declared])


def test_the_shape_changes_only_with_the_meaning_of_stored_parts() -> None:
    same: list[dict[str, Any]] = [
        {},
        {"promise": {"k": 9, "d": 2}},
        {"method": "best"},
        {"lateness_s": 9},
    ]
    assert len({stream(**changes).shape for changes in same}) == 1
    attributes = FLEET["attributes"]
    others: list[dict[str, Any]] = [
        {"window_s": 61},
        {"utc_offset_h": 0.005},
        {"attributes": [{**a, "lasting": False} for a in attributes]},
        {"attributes": [{**a, "hi": 91} if a["name"] == "age" else a for a in attributes]},
        {"sources": [FLEET["sources"][1], FLEET["sources"][0], FLEET["sources"][2]]},
        {
            "attributes": [
                {**a, "values": a["values"][::-1]} if "values" in a else a for a in attributes
            ]
        },
    ]
    shapes = [stream(**changes).shape for changes in others]
    assert len({stream().shape, *shapes}) == 1 + len(shapes)
