from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.generalized_values import (
    Form,
    Hours,
    LabelStyle,
    Language,
    Node,
    Prefix,
    Range,
    Value,
    Values,
    text,
    to_json,
)
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.published_values import (
    PublishedValue,
    ValueReader,
    uncovered,
)
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Attribute, Records
from tests.algorithms.kaca.made import SECTIONS, TOLL, exits
from tests.algorithms.records.made import SCHEMA, categories, numbers
from tests.algorithms.records.made import records as tables
from tests.algorithms.records.partitions import partitions
from tests.examples import many

SECTION, MINUTE = TOLL.qis
AGE, WORK = numbers("age", 17, 18, 20, 25), SCHEMA.qis[1]
BELOW = numbers("cold", -5, -2.5, 0, 3, missing=True)
ROAD = categories("road", ["G5611", "G5612", "S0010"], missing=True)
TIME = numbers("time", 0, 61, 360, 719, 1439, missing=True)
DAYS = Attribute("day", np.array([0.0, 31.0]), written=("2024-01-01", "2024-02-02"))
ODD = categories("odd", ["a|b", "c}", "d\\", "{e"], missing=True)


@pytest.mark.parametrize(
    ("label", "attribute", "runs"),
    [
        ("[17-20]", AGE, [(0, 2)]),
        ("[18-18]", AGE, [(1, 1)]),
        ("25", AGE, [(3, 3)]),
        ("[18.5-30]", AGE, [(2, 3)]),
        ("[-5--2.5]", BELOW, [(0, 1)]),
        ("{[-2.5-3]|?}", BELOW, [(1, 3), (4, 4)]),
        ("{[-5-0]|?}", BELOW, [(0, 2), (4, 4)]),
        ("{?}", BELOW, [(4, 4)]),
        ("{a|c|d}", WORK, [(0, 0), (2, 3)]),
        ("{e|?}", WORK, [(4, 4), (5, 5)]),
        ("b", WORK, [(1, 1)]),
        ("low", WORK, [(0, 1)]),
        ("*", WORK, [(0, 4)]),
        ("{high|?}", WORK, [(2, 4), (5, 5)]),
        (r"{a\|b|d\\}", ODD, [(0, 0), (2, 2)]),
        (r"{c\}|{e|?}", ODD, [(1, 1), (3, 3), (4, 4)]),
        ("G561区域", ROAD, [(0, 1)]),
        ("G5 area", ROAD, [(0, 1)]),
        ("全部区域", ROAD, [(0, 2)]),
        ("{S0 area|?}", ROAD, [(2, 2), (3, 3)]),
        ("unknown area", ROAD, [(3, 3)]),
        ("上午时段(06-12)", TIME, [(2, 3)]),
        ("period (23-01)", TIME, [(0, 0), (4, 4)]),
        ("{all day (00-24)|?}", TIME, [(0, 4), (5, 5)]),
        ("未知时段", TIME, [(5, 5)]),
    ],
)
def test_a_label_allows_the_codes_that_it_says(
    label: str, attribute: Attribute, runs: list[tuple[int, int]]
) -> None:
    assert ValueReader(attribute).runs(label) == runs


@pytest.mark.parametrize(
    ("label", "attribute"),
    [
        ("", AGE),
        ("{}", WORK),
        ("{a||b}", WORK),
        ("f", WORK),
        ("[17-", AGE),
        ("[20-17]", AGE),
        ("[18.1-19.9]", AGE),
        ("nan", AGE),
        ("inf", AGE),
        ("?", AGE),
        ("[1-2]", Attribute("none", np.array([1.0]), missing=0)),
        ("[4-4]", BELOW),
        (" area", ROAD),
        ("区域", ROAD),
        ("G9 area", ROAD),
        ("unknown time", ROAD),
        ("morning (06-12)", ROAD),
        ("G561区域", TIME),
        ("early morning (02-06)", TIME),
        ("morning (06-25)", TIME),
        ("morning (06-12)", BELOW),
        ("unknown time", AGE),
        ("[2024-02-02..2024-01-01]", DAYS),
    ],
)
def test_what_is_no_label_of_an_attribute_is_refused(label: str, attribute: Attribute) -> None:
    with pytest.raises(ValueError, match=r"is no label|outside its domain"):
        ValueReader(attribute).runs(label)


@pytest.mark.parametrize("cost", list(Cost))
@given(made=partitions())
def test_what_is_generalized_reads_as_labels_that_cover_it(
    cost: Cost, made: tuple[Records, Int32Array]
) -> None:
    table, class_of = made
    kept = table.only(class_of != SUPPRESSED)
    of = class_of[class_of != SUPPRESSED]
    if not kept.n:
        return
    told = generalize(kept.qi, classes_of(of), SCHEMA, cost)
    for j, qi in enumerate(SCHEMA.qis):
        for label, c in zip(told.texts(j), range(len(told)), strict=True):
            runs = ValueReader(qi).runs(label)
            codes = kept.qi[of == c, j].tolist()
            assert all(any(lo <= code <= hi for lo, hi in runs) for code in codes)


def covers(published: PublishedValue, code: int, attribute: Attribute) -> bool:
    try:
        return any(lo <= code <= hi for lo, hi in ValueReader(attribute).runs(published))
    except ValueError:
        return False


@given(exits(), st.data(), st.sampled_from(list(Language)))
def test_every_label_covers_every_member(
    records: Records, data: st.DataObject, language: Language
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=records.n, max_size=records.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    told = generalize(records.qi, classes_of(class_of), TOLL)
    for j, style in (
        (0, LabelStyle(Form.PREFIX)),
        (1, LabelStyle(Form.HOURS)),
        (1, LabelStyle()),
    ):
        published = told.texts(j, style, language)
        assert not len(uncovered(records.qi[:, j], class_of, published, ValueReader(TOLL.qis[j])))


@given(tables(), st.sampled_from([Cost.RANGE, Cost.TAXONOMY]), st.data())
def test_plain_labels_of_any_table_cover_every_member(
    records: Records, cost: Cost, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=records.n, max_size=records.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    told = generalize(records.qi, classes_of(class_of), SCHEMA, cost)
    for j, qi in enumerate(SCHEMA.qis):
        for published in (told.texts(j), [to_json(told.value(c, j)) for c in range(len(told))]):
            assert not len(uncovered(records.qi[:, j], class_of, published, ValueReader(qi)))


def test_a_label_that_misses_a_member_is_found() -> None:
    code, class_of = np.array([0, 3, 1], np.int32), np.array([0, 0, 1], np.int32)
    section, minutes = ValueReader(SECTION), ValueReader(MINUTE)
    assert uncovered(code, class_of, ["G区域", "G5区域"], section).tolist() == [0]
    assert uncovered(code, class_of, ["all areas", "G7 area"], section).tolist() == [1]
    minute = np.array([779, 780, 1439], np.int32)
    words = ["下午时段(12-13)", "period (23-01)"]
    assert uncovered(minute, class_of, words, minutes).tolist() == [0]
    words = ["下午时段(12-14)", "period (22-23)"]
    assert uncovered(minute, class_of, words, minutes).tolist() == [1]
    assert uncovered(minute, class_of, ["noon", "noon"], minutes).tolist() == [0, 1]
    assert uncovered(minute, class_of, ["[779-779]", "[0-1439]"], minutes).tolist() == [0]


def test_hours_are_read_up_to_their_end_and_through_midnight() -> None:
    assert not covers("下午时段(12-18)", 18 * 60, MINUTE)
    assert covers("下午时段(12-18)", 18 * 60 - 1, MINUTE)
    assert covers("period (23-01)", 0, MINUTE)
    assert not covers("period (23-01)", 60, MINUTE)
    assert covers("all day (00-24)", 1439, MINUTE)


def test_a_missing_value_is_covered_only_where_it_is_told() -> None:
    section = Attribute("section", np.arange(3.0), ("G1", "a|b}", "?"), missing=2)
    minute = Attribute("minute", np.arange(3.0), missing=2)
    assert not covers("G区域", 2, section)
    assert covers("{G区域|?}", 2, section)
    assert covers("未知区域", 2, section)
    assert not covers("未知区域", 0, section)
    assert covers(r"{G1|a\|b\}}", 1, section)
    assert not covers("{G1|a}", 1, section)
    assert covers("{[0-1]|?}", 2, minute)
    assert not covers("[0-1]", 2, minute)
    assert covers("[0-1]", 1, minute)


def test_the_name_of_a_section_is_no_pattern() -> None:
    assert not covers("S0010530010区域", SECTIONS.index("S0010530020"), SECTION)


LABELS = ["a|b", "c}", "d\\\\", "{e", "G1", "G15", "S}|"]
NUMBER = numbers("number", -5, -2.5, 0, 0.25, 30, missing=True)
CATEGORY = categories("category", LABELS, missing=True)
TREE = categories("tree", LABELS, missing=True, halves=True)
CLOCK = Attribute("clock", np.arange(49.0) * 30, missing=48)
"""Every half hour of a day."""


@st.composite
def values(
    draw: st.DrawFn, kinds: Sequence[type] = (Range, Values, Node, Prefix, Hours)
) -> tuple[Attribute, Value, set[int]]:
    """A generalized value of each type, and the codes that it covers by definition."""
    kind = draw(st.sampled_from(kinds))
    missing = draw(st.booleans())
    if kind is Range:
        lo, hi = sorted(draw(st.tuples(st.integers(0, 4), st.integers(0, 4))))
        ends = (float(NUMBER.position[lo]), float(NUMBER.position[hi]))
        covered = set(range(lo, hi + 1))
        if missing and draw(st.booleans()):
            return NUMBER, Range(None, missing=True), {NUMBER.missing}
        return NUMBER, Range(ends, missing), covered | ({NUMBER.missing} if missing else set())
    if kind is Values:
        codes = draw(st.sets(st.integers(0, 6), min_size=not missing))
        labels = tuple(CATEGORY.label[code] for code in sorted(codes))
        if draw(st.booleans()):  # the marker as a category of its own
            labels, stated = (*labels, *(["?"] if missing else [])), False
        else:
            stated = missing
        return CATEGORY, Values(labels, stated), codes | ({CATEGORY.missing} if missing else set())
    if kind is Node:
        assert TREE.hierarchy is not None
        label = draw(st.sampled_from([name for name in TREE.hierarchy.label if name != "?"]))
        nodes = [[TREE.hierarchy.label[n] for n in row] for row in TREE.hierarchy.ancestor]
        covered = {code for code, names in enumerate(nodes[:-1]) if label in names}
        return TREE, Node(label, missing), covered | ({TREE.missing} if missing else set())
    if kind is Prefix:
        label = draw(st.sampled_from(LABELS))
        prefix = None if missing and draw(st.booleans()) else label[: draw(st.integers(0, 3))]
        covered = {
            c for c, name in enumerate(LABELS) if prefix is not None and name.startswith(prefix)
        }
        return (
            CATEGORY,
            Prefix(prefix, missing),
            covered | ({CATEGORY.missing} if missing else set()),
        )
    first, length = draw(st.integers(0, 23)), draw(st.integers(1, 24))
    if length == 24:
        first = 0
    end = (first + length - 1) % 24 + 1
    arc = None if missing and draw(st.booleans()) else (first, end)
    hours = set() if arc is None else {(first + i) % 24 for i in range(length)}
    covered = {code for code in range(48) if code // 2 in hours}
    return CLOCK, Hours(arc, missing), covered | ({CLOCK.missing} if missing else set())


def codes(runs: Sequence[tuple[int, int]]) -> set[int]:
    return {code for lo, hi in runs for code in range(lo, hi + 1)}


@many(5)
@given(values(), st.sampled_from(list(Language)))
def test_text_and_json_of_a_value_are_read_as_exactly_the_codes_that_it_covers(
    case: tuple[Attribute, Value, set[int]], language: Language
) -> None:
    attribute, value, covered = case
    reader = ValueReader(attribute)
    assert codes(reader.runs(text(value, language))) == covered
    assert codes(reader.runs(to_json(value))) == covered


@given(st.data())
def test_a_class_is_refused_exactly_where_its_value_misses_a_member(data: st.DataObject) -> None:
    n_classes = data.draw(st.integers(1, 4))
    drawn = [data.draw(values([Hours])) for _ in range(n_classes)]
    n = data.draw(st.integers(0, 12))
    member = data.draw(st.lists(st.integers(0, 48), min_size=n, max_size=n))
    class_of = data.draw(st.lists(st.integers(-1, n_classes - 1), min_size=n, max_size=n))
    missed = {c for v, c in zip(member, class_of, strict=True) if c >= 0 and v not in drawn[c][2]}
    found = uncovered(
        np.array(member, np.int32),
        np.array(class_of, np.int32),
        [text(value) for _, value, _ in drawn],
        ValueReader(CLOCK),
    )
    assert found.tolist() == sorted(missed)


def test_a_category_that_reads_as_an_area_is_read_as_the_caller_says() -> None:
    town = categories("town", ["north", "north area", "south"])
    assert ValueReader(town).runs("north area") == [(1, 1)]
    assert ValueReader(town, areas_first=True).runs("north area") == [(0, 1)]
    assert ValueReader(town).code("north area") == 1
    with pytest.raises(ValueError, match="is no value"):
        ValueReader(town).code("all areas")


def test_hours_follow_the_day_of_the_attribute() -> None:
    tick = Attribute("tick", np.arange(5.0))  # five positions a day, the day begins at 1
    assert ValueReader(tick, per_day=5.0, midnight=1.0).runs("day (00-05)") == [(1, 2)]
    assert ValueReader(tick, per_day=5.0, midnight=1.0).runs({"hours": [19, 24]}) == [(0, 0)]


def test_json_that_is_no_value_allows_nothing() -> None:
    for content in ({}, {"range": None}, {"shape": 1}, {"values": ["z"]}, {"label": "z"}):
        with pytest.raises(ValueError, match="is no label"):
            ValueReader(WORK).runs(content)
    assert ValueReader(AGE).runs({"range": [18, 20]}) == [(1, 2)]
    assert ValueReader(NUMBER).runs({"values": ["?"]}) == [(5, 5)]
