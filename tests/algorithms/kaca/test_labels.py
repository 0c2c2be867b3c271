import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.labels import (
    Form,
    Label,
    Language,
    Period,
    covering_hours,
    join_same,
    region,
    texts,
    time_period,
)
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import TOLL, exits, toll

ZH, EN = Language.ZH, Language.EN
hours = st.sets(st.integers(0, 23), min_size=1)
names = st.lists(st.text("G5S", min_size=1, max_size=4), min_size=1, max_size=4)


@given(hours)
def test_the_hours_of_a_class_are_the_shortest_stretch_that_holds_every_member(
    there: set[int],
) -> None:
    first, length = naive.arcs(there)[0]
    if length == 24:
        assert covering_hours(there) == (0, 24)
    else:
        assert covering_hours(there) == (first, (first + length - 1) % 24 + 1)


@given(names)
def test_a_region_is_what_all_sections_begin_with_and_not_what_most_do(sections: list[str]) -> None:
    common = naive.prefix(sections)
    assert region(sections) == (f"{common}区域" if common else "全部区域")
    assert region(sections, EN) == (f"{common} area" if common else "all areas")


@pytest.mark.parametrize(
    ("there", "zh", "en"),
    [
        ([12, 17], "下午时段(12-18)", "afternoon (12-18)"),
        ([12, 13], "下午时段(12-14)", "afternoon (12-14)"),
        ([0, 5], "凌晨时段(00-06)", "early morning (00-06)"),
        ([18, 23], "晚上时段(18-24)", "evening (18-24)"),
        ([8, 19], "时段(08-20)", "period (08-20)"),
        ([23, 0], "时段(23-01)", "period (23-01)"),
        (range(24), "全天时段(00-24)", "all day (00-24)"),
        ([], "未知时段", "unknown time"),
    ],
)
def test_the_periods_of_the_source_keep_their_names(there: list[int], zh: str, en: str) -> None:
    assert (time_period(there, ZH), time_period(there, EN)) == (zh, en)


def test_a_night_that_goes_through_midnight_has_its_name_from_the_settings() -> None:
    night = (Period(22, 6, "夜间时段", "night"),)
    assert time_period([22, 5], EN, night) == "night (22-06)"
    assert time_period([21, 5], EN, night) == "period (21-06)"
    for wrong in ((6, 6), (24, 3), (3, 25), (-1, 5), (3, 0)):
        with pytest.raises(ValueError, match="period"):
            Period(*wrong, "", "")


def test_a_region_is_no_longer_than_it_may_be_and_none_is_told_where_none_is_known() -> None:
    assert region(["G5615530120"], longest=4) == "G561区域"
    assert region([], EN) == "unknown area"


def test_labels_of_a_class_are_made_from_its_own_members() -> None:
    records = toll([1, 1, 0, 3, 3], [725, 1079, 740, 1439, 0])
    classes = classes_of(np.array([0, 0, 0, 1, 1], np.int32))
    told = generalize(records.qi, classes, TOLL)
    assert texts(told, 0, Label(Form.PREFIX), ZH) == ["G561区域", "S0010530010区域"]
    assert texts(told, 1, Label(Form.HOURS), ZH) == ["下午时段(12-18)", "时段(23-01)"]
    assert texts(told, 1, Label(), ZH) == ["[725-1079]", "[0-1439]"]
    shifted = Label(Form.HOURS, midnight=-480)  # positions begin at 8 o'clock
    assert texts(told, 1, shifted, EN) == ["period (20-02)", "morning (07-09)"]


def test_members_without_a_value_are_told_beside_the_label_and_never_hidden_by_it() -> None:
    section = Attribute("section", np.arange(3.0), ("G1", "G2", "?"), missing=2)
    minute = Attribute("minute", np.array([60.0, 61.0]), missing=1)
    schema = Schema((section, minute), (), ((0,), (1,)))
    qi = np.array([[0, 0], [2, 1], [2, 1]], np.int32)
    records = Records(qi, np.zeros((3, 0), np.int32), np.arange(3, dtype=np.int32))
    told = generalize(records.qi, classes_of(np.array([0, 0, 1], np.int32)), schema)
    assert texts(told, 0, Label(Form.PREFIX), EN) == ["{G1 area|?}", "unknown area"]
    assert texts(told, 1, Label(Form.HOURS), EN) == ["{early morning (01-02)|?}", "unknown time"]


def test_a_form_that_does_not_suit_an_attribute_is_refused() -> None:
    told = generalize(toll([0], [0]).qi, classes_of(np.zeros(1, np.int32)), TOLL)
    with pytest.raises(ValueError, match="section: "):
        texts(told, 0, Label(Form.HOURS))
    with pytest.raises(ValueError, match="minute: "):
        texts(told, 1, Label(Form.PREFIX))


@given(exits(), st.data())
def test_classes_that_are_published_alike_become_one_and_no_member_is_lost(
    records: Records, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 5), min_size=records.n, max_size=records.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    class_of[0 : data.draw(st.integers(0, 1))] = SUPPRESSED
    class_of[1:] = np.unique(class_of[1:], return_inverse=True)[1]
    class_of[0] = min(0, class_of[0])
    n_classes = int(class_of.max()) + 1
    words = [data.draw(st.sampled_from("ab")) for _ in range(n_classes)]
    joined = join_same(class_of, [words])
    for i in range(records.n):
        for j in range(records.n):
            if class_of[i] >= 0 and class_of[j] >= 0:
                assert (joined[i] == joined[j]) == (words[class_of[i]] == words[class_of[j]])
    assert ((joined == SUPPRESSED) == (class_of == SUPPRESSED)).all()
