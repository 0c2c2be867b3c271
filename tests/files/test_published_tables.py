from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.records import Schema
from anonymizer.errors import InputError
from anonymizer.files.published_tables import PublishedTable, read_published, read_row_map
from anonymizer.files.tables import TextTable
from tests.algorithms.records.made import SCHEMA, categories

AGE, WORK, _ = SCHEMA.qis


HEADER = "class_id,age,work,home,illness\n"


def read(folder: Path, text: str, markers: tuple[str, ...] = ()) -> PublishedTable:
    path = folder / "out.csv"
    path.write_text(text)
    return read_published(path, SCHEMA, markers_of=lambda _: markers)


def test_a_release_is_read_class_by_class(tmp_path: Path) -> None:
    text = HEADER + "9,[17-20],{a|b},{x},f\n9,[17-20],{a|b},{x},g\n4,[18-18],low,{y|z},h\n"
    release = read(tmp_path, text)
    assert release.class_of.tolist() == [0, 0, 1]
    assert release.sensitive.ravel().tolist() == [0, 1, 2]
    assert not release.uneven().any()
    seen = release.seen()
    assert (seen.n_classes, len(seen.qi), len(seen.sensitive)) == (2, 3, 1)
    assert [labels.lo.tolist() for labels in seen.qi] == [[0, 1], [0, 0], [0, 1]]
    assert [labels.hi.tolist() for labels in seen.qi] == [[2, 1], [1, 1], [0, 2]]
    assert seen.sensitive[0].lo.tolist() == [0, 1, 2]


def test_a_class_with_rows_of_different_labels_is_uneven_there_alone(tmp_path: Path) -> None:
    release = read(tmp_path, HEADER + "0,[17-20],a,x,f\n0,[17-20],b,x,g\n1,[18-18],a,y,h\n")
    assert release.uneven().tolist() == [[False, True, False], [False, False, False]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class_id,age,work,home\n0,17,a,x\n", "no column illness"),
        ("age,work,home,illness\n17,a,x,f\n", "no column class_id"),
        (HEADER + "0,17,a,x,f\n,17,a,x,f\n", "column class_id, row 2: is empty"),
        (HEADER + "0,17,a,x,f\n0,17,secret,x,f\n", "column work, row 2: is no label"),
        (HEADER + "0,17,a,x,f\n0,,a,x,f\n", "column age, row 2: is no label"),
        (HEADER + "0,99,a,x,f\n", "column age, row 1: lies outside its domain"),
        (HEADER + "0,17,a,x,secret\n", "column illness, row 1: is no label"),
        (HEADER + "0,17,a,x,\n", "column illness, row 1: is no label"),
    ],
)
def test_a_cell_that_cannot_be_understood_is_named_and_never_quoted(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert str(error.value) == f"{tmp_path / 'out.csv'}: {message}"


@pytest.mark.parametrize(
    ("text", "out_row"),
    [
        ("in_row,out_row\n0,1\n1,\n2,0\n", [1, -1, 0]),
        ("in_row,out_row\n2,0\n1,\n0,1\n", [1, -1, 0]),
    ],
)
def test_the_map_says_what_became_of_each_row(
    tmp_path: Path, text: str, out_row: list[int]
) -> None:
    path = tmp_path / "map.csv"
    path.write_text(text)
    assert read_row_map(path, n_rows=3, n_published=2).tolist() == out_row


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("in_row,out_row\n0,1\n1,\n", "column in_row: does not name each row of the table once"),
        (
            "in_row,out_row\n0,1\n0,0\n2,\n",
            "column in_row: does not name each row of the table once",
        ),
        ("in_row,out_row\n0,1\n1,1\n2,\n", "column out_row: does not name each published row once"),
        ("in_row,out_row\n0,1\n1,\n2,\n", "column out_row: does not name each published row once"),
        ("in_row,out_row\n0,1\n1,x\n2,0\n", "column out_row, row 2: is no row number"),
        ("in_row,out_row\n0,1\n1,-1\n2,0\n", "column out_row, row 2: is no row number"),
        ("in_row\n0\n", "no column out_row"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.csv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_row_map(path, n_rows=3, n_published=2)
    assert str(error.value) == f"{path}: {message}"


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_sensitive_values_of_a_class_are_seen_as_a_set(classes: list[int]) -> None:
    codes = np.arange(len(classes), dtype=np.int32)[:, None] % 3
    of = np.unique(classes, return_inverse=True)[1].astype(np.int32)
    release = PublishedTable(
        TextTable(Path("t"), pl.DataFrame()), of, (), (), np.zeros((len(of), 0), np.int32), codes
    )
    (labels,) = release.seen().sensitive
    for c in range(of.max() + 1):
        code = np.arange(3, dtype=np.int32)
        inside = labels.covers(np.full(3, c, np.int32), code)
        assert set(np.flatnonzero(inside).tolist()) == set(codes[of == c].ravel().tolist())


def test_missing_sensitive_values_are_read_by_any_of_their_marks(tmp_path: Path) -> None:
    ill = categories("illness", "fg", missing=True)
    schema = Schema(qis=(SCHEMA.qis[0],), sensitive=(ill,), sources=((0,),))
    path = tmp_path / "out.csv"
    path.write_text("class_id,age,illness\n0,[17-18],f\n0,[17-18],\n0,[17-18],NA\n0,[17-18],?\n")
    release = read_published(path, schema, markers_of=lambda _: ["NA"])
    assert release.sensitive.ravel().tolist() == [0, 2, 2, 2]


def test_a_sensitive_range_is_no_value_and_none_need_be_there(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("class_id,age\n0,[17-20]\n")
    as_sensitive = Schema(qis=(), sensitive=(SCHEMA.qis[0],), sources=())
    with pytest.raises(InputError, match="column age, row 1: is no value"):
        read_published(path, as_sensitive)
    without = Schema(qis=(SCHEMA.qis[0],), sensitive=(), sources=((0,),))
    assert read_published(path, without).sensitive.shape == (1, 0)
