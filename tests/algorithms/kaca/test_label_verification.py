import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.label_verification import covers, short_classes, uncovered
from anonymizer.algorithms.kaca.labels import Form, Label, Language, texts
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.records import Attribute, Records
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import SECTIONS, TOLL, exits
from tests.algorithms.records.made import SCHEMA
from tests.algorithms.records.made import records as tables

SECTION, MINUTE = TOLL.qis


@given(exits(repeats=True), st.data(), st.integers(1, 3))
def test_a_class_of_too_few_trucks_is_found_however_many_exits_it_has(
    records: Records, data: st.DataObject, k: int
) -> None:
    drawn = data.draw(st.lists(st.integers(-1, 4), min_size=records.n, max_size=records.n))
    short = [
        c
        for c, own in naive.members(drawn).items()
        if len({int(records.person[i]) for i in own}) < k
    ]
    found = short_classes(np.array(drawn, np.int32), records.person, k)
    assert found.tolist() == sorted(short)


@given(exits(), st.data(), st.sampled_from(list(Language)), st.sampled_from([None, 4]))
def test_every_label_covers_every_member(
    records: Records, data: st.DataObject, language: Language, longest: int | None
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=records.n, max_size=records.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    told = generalize(records.qi, classes_of(class_of), TOLL)
    for j, label in (
        (0, Label(Form.PREFIX, longest=longest)),
        (1, Label(Form.HOURS)),
        (1, Label()),
    ):
        published = texts(told, j, label, language)
        found = uncovered(records.qi[:, j], class_of, TOLL.qis[j], published, label)
        assert not len(found)


@given(tables(), st.sampled_from([Cost.RANGE, Cost.TAXONOMY]), st.data())
def test_plain_labels_of_any_table_cover_every_member(
    records: Records, cost: Cost, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 4), min_size=records.n, max_size=records.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    told = generalize(records.qi, classes_of(class_of), SCHEMA, cost)
    for j, qi in enumerate(SCHEMA.qis):
        published = texts(told, j, Label())
        assert not len(uncovered(records.qi[:, j], class_of, qi, published, Label()))


def test_a_label_that_misses_a_member_is_found() -> None:
    code, class_of = np.array([0, 3, 1], np.int32), np.array([0, 0, 1], np.int32)
    prefix, hours = Label(Form.PREFIX), Label(Form.HOURS)
    assert uncovered(code, class_of, SECTION, ["G区域", "G5区域"], prefix).tolist() == [0]
    assert uncovered(code, class_of, SECTION, ["all areas", "G7 area"], prefix).tolist() == [1]
    minute = np.array([779, 780, 1439], np.int32)
    words = ["下午时段(12-13)", "period (23-01)"]
    assert uncovered(minute, class_of, MINUTE, words, hours).tolist() == [0]
    words = ["下午时段(12-14)", "period (22-23)"]
    assert uncovered(minute, class_of, MINUTE, words, hours).tolist() == [1]
    assert uncovered(minute, class_of, MINUTE, ["noon", "noon"], hours).tolist() == [0, 1]
    assert uncovered(minute, class_of, MINUTE, ["[779-779]", "[0-1439]"], Label()).tolist() == [0]


def test_hours_are_read_up_to_their_end_and_through_midnight() -> None:
    hours = Label(Form.HOURS)
    assert not covers("下午时段(12-18)", 18 * 60, MINUTE, hours)
    assert covers("下午时段(12-18)", 18 * 60 - 1, MINUTE, hours)
    assert covers("period (23-01)", 0, MINUTE, hours)
    assert not covers("period (23-01)", 60, MINUTE, hours)
    assert covers("all day (00-24)", 1439, MINUTE, hours)


def test_a_missing_value_is_covered_only_where_it_is_told() -> None:
    section = Attribute("section", np.arange(3.0), ("G1", "a|b}", "?"), missing=2)
    minute = Attribute("minute", np.arange(3.0), missing=2)
    assert not covers("G区域", 2, section, Label(Form.PREFIX))
    assert covers("{G区域|?}", 2, section, Label(Form.PREFIX))
    assert covers("未知区域", 2, section, Label(Form.PREFIX))
    assert not covers("未知区域", 0, section, Label(Form.PREFIX))
    assert covers(r"{G1|a\|b\}}", 1, section, Label())
    assert not covers("{G1|a}", 1, section, Label())
    assert covers("{[0-1]|?}", 2, minute, Label())
    assert not covers("[0-1]", 2, minute, Label())
    assert covers("[0-1]", 1, minute, Label())


def test_the_name_of_a_section_is_no_pattern() -> None:
    assert not covers("S0010530010区域", SECTIONS.index("S0010530020"), SECTION, Label(Form.PREFIX))
