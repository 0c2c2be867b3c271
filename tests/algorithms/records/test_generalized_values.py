import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, join_identical
from anonymizer.algorithms.records.generalization import Generalized, generalize
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
    common_prefix,
    covering_hours,
    from_json,
    text,
    to_json,
)
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import TOLL, exits, toll
from tests.algorithms.records.made import SCHEMA
from tests.algorithms.records.made import records as tables

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
    prefix = Prefix(common_prefix(sections))
    assert text(prefix) == (f"{common}区域" if common else "全部区域")
    assert text(prefix, EN) == (f"{common} area" if common else "all areas")


def part_of_day(hours: list[int], language: Language = ZH) -> str:
    return text(Hours(covering_hours(hours) if len(hours) else None), language)


@pytest.mark.parametrize(
    ("there", "zh", "en"),
    [
        ([12, 17], "下午时段(12-18)", "afternoon (12-18)"),
        ([12, 13], "下午时段(12-14)", "afternoon (12-14)"),
        ([0, 5], "凌晨时段(00-06)", "early morning (00-06)"),
        ([18, 23], "晚上时段(18-24)", "evening (18-24)"),
        ([8, 19], "时段(08-20)", "period (08-20)"),
        ([23, 0], "时段(23-01)", "period (23-01)"),
        (list(range(24)), "全天时段(00-24)", "all day (00-24)"),
        ([], "未知时段", "unknown time"),
    ],
)
def test_the_periods_of_the_source_keep_their_names(there: list[int], zh: str, en: str) -> None:
    assert (part_of_day(there, ZH), part_of_day(there, EN)) == (zh, en)


def test_an_unknown_prefix_has_words_of_its_own() -> None:
    assert text(Prefix(None, missing=True), EN) == "unknown area"


def test_labels_of_a_class_are_made_from_its_own_members() -> None:
    records = toll([1, 1, 0, 3, 3], [725, 1079, 740, 1439, 0])
    classes = classes_of(np.array([0, 0, 0, 1, 1], np.int32))
    told = generalize(records.qi, classes, TOLL)
    assert told.texts(0, LabelStyle(Form.PREFIX), ZH) == ["G561区域", "S0010530010区域"]
    assert told.texts(1, LabelStyle(Form.HOURS), ZH) == ["下午时段(12-18)", "时段(23-01)"]
    assert told.texts(1, LabelStyle(), ZH) == ["[725-1079]", "[0-1439]"]
    shifted = LabelStyle(Form.HOURS, midnight=-480)  # positions begin at 8 o'clock
    assert told.texts(1, shifted, EN) == ["period (20-02)", "morning (07-09)"]


def test_members_without_a_value_are_told_beside_the_label_and_never_hidden_by_it() -> None:
    section = Attribute("section", np.arange(3.0), ("G1", "G2", "?"), missing=2)
    minute = Attribute("minute", np.array([60.0, 61.0]), missing=1)
    schema = Schema((section, minute), (), ((0,), (1,)))
    qi = np.array([[0, 0], [2, 1], [2, 1]], np.int32)
    records = Records(qi, np.zeros((3, 0), np.int32), np.arange(3, dtype=np.int32))
    told = generalize(records.qi, classes_of(np.array([0, 0, 1], np.int32)), schema)
    assert told.texts(0, LabelStyle(Form.PREFIX), EN) == ["{G1 area|?}", "unknown area"]
    assert told.texts(1, LabelStyle(Form.HOURS), EN) == [
        "{early morning (01-02)|?}",
        "unknown time",
    ]


def test_a_form_that_does_not_suit_an_attribute_is_refused() -> None:
    told = generalize(toll([0], [0]).qi, classes_of(np.zeros(1, np.int32)), TOLL)
    with pytest.raises(ValueError, match="section: "):
        told.texts(0, LabelStyle(Form.HOURS))
    with pytest.raises(ValueError, match="minute: "):
        told.texts(1, LabelStyle(Form.PREFIX))
    with pytest.raises(ValueError, match="section: prefixes are for categories"):
        told.joinable_value(0, 0, LabelStyle(Form.HOURS))


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
    joined = join_identical(class_of, [words])
    for i in range(records.n):
        for j in range(records.n):
            if class_of[i] >= 0 and class_of[j] >= 0:
                assert (joined[i] == joined[j]) == (words[class_of[i]] == words[class_of[j]])
    assert ((joined == SUPPRESSED) == (class_of == SUPPRESSED)).all()


def values_of(general: Generalized) -> list[Value]:
    return [general.value(c, j) for c in range(len(general)) for j in range(len(general.qis))]


@given(exits(), tables(), st.sampled_from(list(Cost)))
def test_every_value_survives_json(exits_: Records, table: Records, cost: Cost) -> None:
    tolls = generalize(exits_.qi, classes_of((exits_.qi[:, 1] % 3 > 0).astype(np.int32)), TOLL)
    everybody = generalize(table.qi, classes_of(np.zeros(table.n, np.int32)), SCHEMA, cost)
    joinable = [
        tolls.joinable_value(c, j, LabelStyle(form))
        for c in range(len(tolls))
        if len(tolls.present(c, 0))
        for j, form in enumerate((Form.PREFIX, Form.HOURS))
    ]
    plain = [tolls.joinable_value(c, 0) for c in range(len(tolls)) if len(tolls.present(c, 0))]
    for value in (*values_of(everybody), *joinable, *plain):
        assert from_json(to_json(value)) == value


def test_json_of_each_type() -> None:
    assert to_json(Range((17, 30.5))) == {"range": [17, 30.5]}
    assert to_json(Range(None, missing=True)) == {"range": None, "missing": True}
    assert to_json(Values(("a", "?"))) == {"values": ["a", "?"]}
    assert to_json(Values((), missing=True)) == {"values": None, "missing": True}
    assert to_json(Node("a", missing=True)) == {"label": "a", "missing": True}
    assert to_json(Prefix("G5")) == {"prefix": "G5"}
    assert to_json(Hours((22, 2), missing=True)) == {"hours": [22, 2], "missing": True}
    with pytest.raises(ValueError, match="no generalized value"):
        from_json({"shape": 1})


def test_words_of_plain_values_are_those_of_a_table() -> None:
    assert text(Range((1.0, 2.5))) == "[1-2.5]"
    assert text(Range((1.0, 2.5), missing=True)) == "{[1-2.5]|?}"
    assert text(Range(None, missing=True)) == "{?}"
    assert text(Values(("a", "b"))) == "{a|b}"
    assert text(Values((), missing=True)) == "{?}"
    assert text(Values(("a|}",), missing=True)) == r"{a\|\}|?}"
    assert text(Prefix("a|b", missing=True), EN) == r"{a\|b area|?}"
    assert Values(("b",)).join(Values(("a",), missing=True)) == Values(("a", "b"), missing=True)
    assert Range((0.0, 1.0)).join(Range(None, missing=True)) == Range((0.0, 1.0), missing=True)
    assert Hours((22, 1)).join(Hours(None, missing=True)) == Hours((22, 1), missing=True)
    assert Hours(None).join(Hours(None)) == Hours(None)
    assert Hours(None).spread == 0
