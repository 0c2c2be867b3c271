"""Options that say what the columns of a table are."""

from pathlib import Path
from typing import Any

import pytest

from anonymizer.algorithms.records.attributes import Interval
from anonymizer.app.anonymize.plan import declared_of
from anonymizer.app.table_options import ColumnOptions
from anonymizer.cli.columns import values_of
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import Declared


def declared_columns(**given: Any) -> Declared:  # noqa: ANN401  of any option
    return declared_of(ColumnOptions(**values_of(given)))


def test_options_say_what_the_columns_are(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("f;*\nm;*\n")
    (tmp_path / "more.JSON").write_text('{"job": {"g": ["a"]}, "age": [1]}')
    (tmp_path / "order.json").write_text('{"job": ["a"]}')
    declared = declared_columns(
        qi=["age, sex,job"],
        sa=["illness"],
        id="name",
        sources=["age,sex", "job"],
        hierarchies=[str(tmp_path / "more.JSON"), f"sex={tmp_path / 'sex.csv'}"],
        orders=[tmp_path / "order.json"],
        domains=["age=17:90:0.5"],
        categories=["illness"],
        missing=["NA"],
        keep=["town"],
    )
    assert declared.columns == ("name", "age", "sex", "job", "illness", "town")
    assert declared.sources == [("age", "sex"), ("job",)]
    assert declared.hierarchies["sex"] == (("f", "*"), ("m", "*"))
    assert declared.hierarchies["job"] == (("a", "g", "*"),)
    assert declared.orders == {"job": ("a",)}
    assert declared.ranges == {"age": Interval(17, 90, 0.5)}
    assert (declared.categories, declared.markers) == (("illness",), ("NA",))


@pytest.mark.parametrize("name", ["age\n(years)", "age\r\n(years)", "a,b\nc"])
def test_a_heading_with_a_line_break_is_a_name(name: str) -> None:
    listed = f'"{name}"' if "," in name else name
    assert declared_columns(qi=[f"{listed}, sex"]).qis == (name, "sex")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"domains": ["age"]}, "domain: must be a name, = and numbers"),
        ({"domains": ["=1:2"]}, "domain: must be a name, = and numbers"),
        ({"domains": ["age=1"]}, "domain: age: must be LO:HI or LO:HI:STEP"),
        ({"domains": ["age=1:2:3:4"]}, "domain: age: must be LO:HI or LO:HI:STEP"),
        ({"domains": ["age=30:20"]}, "domain: age: the ends are finite"),
        ({"domains": ["age=1:9", "age=1:9"]}, "domain: age is given twice"),
        ({"hierarchies": ["sexes.csv"]}, "hierarchy: must be ATTRIBUTE=FILE"),
        (
            {"hierarchies": ["age=year-month", "age=sexes.csv"]},
            "age: a calendar is the hierarchy of dates and times alone",
        ),
        ({"sa": ["sex"]}, "column sex is declared twice"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_by_its_name(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        declared_columns(qi=["age,sex"], **options)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"none\.csv: no such file"):
        declared_columns(qi=["age,sex"], hierarchies=["sex=none.csv"])


def test_the_name_of_a_column_may_have_a_comma() -> None:
    declared = declared_columns(qi=['age, "name, first"'], sources=["age", '"name, first"'])
    assert declared.qis == ("age", "name, first")
    assert declared.sources == [("age",), ("name, first",)]


def test_quasi_identifiers_may_be_named_one_by_one() -> None:
    assert declared_columns(qi=["age,sex", "job"], sa=["illness", "pay"]).qis == (
        "age",
        "sex",
        "job",
    )
    assert declared_columns(qi=["age"], sa=["illness", "pay"]).sensitive == ("illness", "pay")
