"""Hierarchies and orders as files."""

import json
import os
from pathlib import Path

import polars as pl
import pytest

import anonymizer
from anonymizer.errors import InputError
from anonymizer.files.hierarchies import (
    hierarchies_of,
    misnamed,
    read_hierarchies,
    read_hierarchy,
    read_orders,
    read_trees,
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x"
    path.write_text(text)
    return path


def test_branches_are_read_leaf_first_of_any_length_and_without_repetition(tmp_path: Path) -> None:
    path = written(tmp_path, "a;g;*\n\nb ; h;g2 ;*\nc;c;*\nd;;g;*\ne;*;*\n")
    assert read_hierarchy(path) == (
        ("a", "g", "*"),
        ("b", "h", "g2", "*"),
        ("c", "*"),
        ("d", "g", "*"),
        ("e", "*"),
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("a;*\n;*\n", "line 2: has no leaf"),
        ("a;*\nb\n", "line 2: has no level above the leaf"),
        ("a,*\nb,*\n", "line 1: has no level above the leaf: levels are separated by ;"),
        ("a;g;*\nb;g\n", "line 2: ends in another root"),
        ("a;g;*\n\na;h;*\n", "line 3: a label names two nodes"),
        ('a;*\n"b;*\n', "line 2: has no level above the leaf"),
        ("a;*\n" + "b" * 200_000, "line 2: is not well-formed"),
    ],
)
def test_a_line_at_fault_is_named_by_its_number_and_not_quoted(
    text: str, fault: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=fault):
        read_hierarchy(written(tmp_path, text))


@pytest.mark.parametrize(
    "line",
    ["30;[20-29];*", "-5;[-4-9];*", "20.5;[17-20];[17-30];*", "25;[20-29];[30-39];*", "c;{a|b};*"],
)
def test_a_range_or_set_that_leaves_its_leaf_out_is_refused(line: str, tmp_path: Path) -> None:
    leaf, *groups = line.split(";")
    with pytest.raises(InputError, match=f"line 1: {leaf} is not in") as told:
        read_hierarchy(written(tmp_path, line + "\n"))
    tree: object = [leaf]
    for group in groups[:-1]:
        tree = {group: tree}
    with pytest.raises(InputError, match=f"age: {leaf} is not in") as said:
        hierarchies_of({"age": tree})
    assert any(group in str(told.value) and group in str(said.value) for group in groups)


@pytest.mark.parametrize(
    "line",
    [
        *("34;20-29", "34;20 \u2013 29", "34;20 to 29", "30;[20, 30)", "20;(20, 30]", "20;<20"),
        *("64;65+", "21;<=20", "65;> 65", "64;\u226565"),
    ],
)
def test_a_range_of_others_that_leaves_its_leaf_out_is_told(line: str, tmp_path: Path) -> None:
    leaf, label = line.split(";")
    path = written(tmp_path, f"{line};*\n40;g;*\n")
    assert misnamed(read_hierarchy(path)) == {label: [leaf]}
    rows = pl.DataFrame({"age": [leaf, "40"] * 3})
    found = anonymizer.anonymize(rows, qi=["age"], k=2, d=1, hierarchies={"age": path})
    told = f"age: the group {label} of its hierarchy holds {leaf}, which it says it does not"
    assert any(each.startswith(told) for each in found.report.warnings)


@pytest.mark.parametrize(
    "line",
    [
        *("20;20-29", "29;20..29", "20;[20, 30)", "30;(20, 30]", "20;(20-29)", "10115;10-12"),
        *("19;<20", "65;65+", "20;<=20", "66;>65", "-3;-4--1", "a;20-29", "34;young"),
    ],
)
def test_a_range_of_others_that_holds_its_leaf_is_not_told(line: str) -> None:
    assert misnamed([tuple(f"{line};*".split(";"))]) == {}


@pytest.mark.parametrize(
    "line",
    ["20;[20-29];*", "29.0;[20-29];*", "-3;[-4--1];*", "young;[20-29];*", "a;g;{g|h};*", "b;{a};*"],
)
def test_a_label_that_holds_its_leaf_or_has_another_form_is_taken(
    line: str, tmp_path: Path
) -> None:
    assert len(read_hierarchy(written(tmp_path, line + "\n"))) == 1


def test_groups_within_groups_are_read_from_json_below_a_root(tmp_path: Path) -> None:
    tree = {"work": {"paid": {"state": ["a", "b"], "firm": ["c"]}, "none": ["d"]}, "n": [1, 2]}
    path = written(tmp_path, json.dumps(tree))
    assert read_trees(path) == tree
    assert read_hierarchies(path) == {
        "work": (
            ("a", "state", "paid", "*"),
            ("b", "state", "paid", "*"),
            ("c", "firm", "paid", "*"),
            ("d", "none", "*"),
        ),
        "n": (("1", "*"), ("2", "*")),
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "line 1: is not well-formed JSON"),
        ("[" * 100_000, "is not well-formed JSON"),
        ('{"work": ' + '{"a": ' * 101 + '["b"]' + "}" * 102, "has more than 100 levels"),
        ("[]", "must be an object"),
        ('{"work": {"a": ["b"], "a": ["c"]}}', "is not well-formed JSON"),
        ('{"work": "a"}', "work: must be groups"),
        ('{"work": [true]}', "work: a category is a text or a number"),
        ('{"work": {}}', "work: has no leaves"),
        ('{"work": {"g": ["a"], "h": ["a"]}}', "work: a label names two nodes"),
    ],
)
def test_a_json_that_is_no_hierarchy_is_refused(text: str, fault: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    for read in (read_hierarchies, read_trees):
        with pytest.raises(InputError, match=fault):
            read(path)


def test_orders_are_read_and_repeats_refused(tmp_path: Path) -> None:
    assert read_orders(written(tmp_path, '{"work": ["b", "a", 3]}')) == {"work": ("b", "a", "3")}
    for text, fault in (('{"work": []}', "must be a list"), ('{"work": ["a", "a"]}', "twice")):
        with pytest.raises(InputError, match=f"work: .*{fault}"):
            read_orders(written(tmp_path, text))


def test_what_is_not_there_or_not_text_is_one_line(tmp_path: Path) -> None:
    for read in (read_hierarchy, read_orders):
        with pytest.raises(InputError, match="no such file"):
            read(tmp_path / "missing")
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path)
        (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfa;*")
        with pytest.raises(InputError, match="is not UTF-8"):
            read(tmp_path / "bytes")


@pytest.mark.data
def test_the_published_hierarchies_of_adult_are_read_with_their_faults() -> None:
    folder = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    read = {path.stem: read_hierarchy(path) for path in (folder / "hierarchies").iterdir()}
    assert len(read) == 12
    assert read["mondrian_workclass"][-1] == ("Never-worked", "not-work", "*")
    assert read["arx_age"][0] == ("1", "0-4", "0-9", "0-19", "*")
    orders, trees = (
        read_orders(folder / "adult_order.json"),
        read_hierarchies(folder / "adult_taxonomy.json"),
    )
    for attribute, order in orders.items():
        assert sorted(order) == sorted(branch[0] for branch in trees[attribute])


@pytest.mark.parametrize("text", ["a;g;?\nb;h;?\n", "a;?;*\nb;h;*\n", "a;NA;*\nb;h;*\n"])
def test_the_mark_of_a_missing_value_names_no_group(tmp_path: Path, text: str) -> None:
    path = tmp_path / "h.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="can name no group"):
        read_hierarchy(path)
    with pytest.raises(InputError, match=r"x: \? is read as a missing value"):
        hierarchies_of({"x": {"?": ["a"], "h": ["b"]}})
    path.write_text("a;g;*\n?;*\n")  # as a leaf it is what it means
    assert read_hierarchy(path) == (("a", "g", "*"), ("?", "*"))


@pytest.mark.parametrize("mark", ["NA", "n/a", "NULL", "NaN", "-", "unknown"])
def test_nor_does_any_word_for_it_unless_nothing_else_is_below(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "h.csv"
    path.write_text(f"fr;EU;*\nus;{mark};*\n")
    with pytest.raises(InputError, match=f"line 2: {mark} is read as a missing value"):
        read_hierarchy(path)
    with pytest.raises(InputError, match=f"x: {mark} is read as a missing value"):
        hierarchies_of({"x": {mark: ["us"], "EU": ["fr"]}})
    path.write_text(f"fr;EU;*\n?;{mark};*\n")
    assert read_hierarchy(path)[1] == ("?", mark, "*")


@pytest.mark.parametrize(("cells", "lacks"), [(["a", "c"], "c"), (["1", "3"], "3")])
def test_a_value_without_a_leaf_is_named_with_the_file(
    tmp_path: Path, cells: list[str], lacks: str
) -> None:
    path = tmp_path / "h.csv"
    path.write_text(f"{cells[0]};g;*\n2;h;*\n")
    rows = pl.DataFrame({"x": cells, "y": ["u", "u"]})
    with pytest.raises(InputError, match=f"column x, row 2: '{lacks}' has no leaf in .*h.csv"):
        anonymizer.anonymize(rows, k=2, qi=["x", "y"], hierarchies={"x": path})
