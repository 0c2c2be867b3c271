"""Every mix of the types of columns: what the command makes of the same table, or one sentence."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anonymizer import anonymize
from anonymizer.estimators import Anonymizer

N, K = 40, 4
_RNG = np.random.default_rng(0)
WORDS = _RNG.choice(["x", "y", "z"], N).tolist()
WHOLE = _RNG.integers(0, 9, N).tolist()
PARTS = (_RNG.integers(0, 9, N) / 4).tolist()
FLAGS = (_RNG.integers(0, 2, N) > 0).tolist()
DAY = datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None)
TIMES = [DAY + timedelta(hours=h) for h in _RNG.integers(0, 99, N).tolist()]
SPANS = [timedelta(hours=h) for h in WHOLE]
MIXED = [word if i % 2 else i % 5 for i, word in enumerate(WORDS)]


def gaps(values: list[Any]) -> list[Any]:
    return [None if i % 7 == 3 else value for i, value in enumerate(values)]


Column: TypeAlias = tuple[Callable[[], Any], bool]
"""A column, and whether it is declared categorical."""


def _of_pandas() -> dict[str, Column]:
    def made(values: list[Any], dtype: Any) -> Callable[[], Any]:  # noqa: ANN401  of pandas
        return lambda: pd.Series(values, dtype=dtype)

    lacking = [np.nan if value is None else value for value in gaps(PARTS)]
    helsinki = "datetime64[us, Europe/Helsinki]"
    found: dict[str, Column] = {
        "category of text": (made(gaps(WORDS), "category"), True),
        "category of whole numbers": (made(WHOLE, "category"), True),
        "category that is a number": (made(WHOLE, "category"), False),
        "category of truth values": (made(FLAGS, "category"), True),
        "category of intervals": (lambda: pd.cut(pd.Series(WHOLE), 3), True),
        "string[python]": (made(gaps(WORDS), "string[python]"), True),
        "Int64": (made(gaps(WHOLE), "Int64"), False),
        "Int64 of categories": (made(gaps(WHOLE), "Int64"), True),
        "UInt8": (made(WHOLE, "UInt8"), False),
        "Float64": (made(gaps(PARTS), "Float64"), False),
        "boolean": (made(gaps(FLAGS), "boolean"), True),
        "bool": (made(FLAGS, "bool"), True),
        "float32": (made(gaps(PARTS), "float32"), False),
        "int8": (made(WHOLE, "int8"), False),
        "datetime64": (made(gaps(TIMES), "datetime64[us]"), False),
        "datetime64 with a zone": (made(gaps(TIMES), helsinki), False),
        "timedelta": (made(SPANS, "timedelta64[us]"), False),
        "timedelta of categories": (made(SPANS, "timedelta64[us]"), True),
        "period": (lambda: pd.Series(pd.to_datetime(TIMES).to_period("D")), False),
        "mixed": (made(MIXED, object), False),
        "mixed categories": (made(MIXED, object), True),
        "sparse": (lambda: pd.Series(pd.arrays.SparseArray(WHOLE)), False),
        "sparse with gaps": (lambda: pd.Series(pd.arrays.SparseArray(lacking)), False),
    }
    return found


def _of_pyarrow() -> dict[str, Column]:
    columns: dict[str, tuple[list[Any], bool]] = {
        "string[pyarrow]": (gaps(WORDS), True),
        "int64[pyarrow]": (gaps(WHOLE), False),
        "double[pyarrow]": (gaps(PARTS), False),
        "bool[pyarrow]": (gaps(FLAGS), True),
        "timestamp[us][pyarrow]": (gaps(TIMES), False),
    }
    return {name: (lambda v=values, name=name: pd.Series(v, dtype=name), chosen)  # type: ignore[misc]
            for name, (values, chosen) in columns.items()}  # fmt: skip


def _of_polars() -> dict[str, Column]:
    def made(values: list[Any], dtype: Any = None) -> Callable[[], Any]:  # noqa: ANN401  of polars
        return lambda: pl.Series("a", values, dtype)

    return {
        "Categorical": (made(gaps(WORDS), pl.Categorical), True),
        "Enum": (made(gaps(WORDS), pl.Enum(["x", "y", "z"])), True),
        "String": (made(gaps(WORDS)), True),
        "Int64": (made(gaps(WHOLE)), False),
        "Int64 of categories": (made(gaps(WHOLE)), True),
        "UInt8": (made(WHOLE, pl.UInt8), False),
        "Float32": (made(gaps(PARTS), pl.Float32), False),
        "Decimal": (made([Decimal(str(each)) for each in PARTS]), False),
        "Boolean": (made(gaps(FLAGS)), True),
        "Datetime": (made(gaps(TIMES)), False),
        "Datetime with a zone": (made(gaps(TIMES), pl.Datetime("us", "Europe/Helsinki")), False),
        "Date": (made([each.date() for each in TIMES]), False),
        "Duration": (made(SPANS), False),
        "List": (made([[each] for each in WHOLE]), False),
    }


def same_classes(labels: Any) -> list[int]:  # noqa: ANN401  whole numbers
    """Number classes by their first rows; -1: suppressed."""
    number: dict[int, int] = {}
    return [-1 if c < 0 else number.setdefault(int(c), len(number)) for c in labels]


def by_the_command(frame: Any, categories: list[str], path: Path) -> list[int]:  # noqa: ANN401
    """Return the classes that the command forms of a csv with these columns."""
    if isinstance(frame, pl.DataFrame):
        frame.write_csv(path)
    else:
        frame.to_csv(path, index=False)
    released = anonymize(
        path,
        qi=["a", "b"],
        sources=[["a"], ["b"]],
        categories=categories,
        k=K,
        d=1,
        model="kd",
        method="hilbert",
        max_source_share=1,
    )
    found = np.full(N, -1)
    kept = released.auditor_map.drop_nulls()
    classes = released.frame["class_id"].rank("dense").to_numpy()
    found[kept["in_row"].to_numpy()] = classes[kept["out_row"].to_numpy()]
    return same_classes(found)


NO_NUMBERS = {"timedelta", "period", "mixed", "Duration", "List"}
"""Columns that are declared numbers and hold none."""


def _check(
    names: tuple[str, str], columns: dict[str, Column], kind: Callable[..., Any], path: Path
) -> None:
    frame = kind({at: columns[name][0]() for at, name in zip("ab", names, strict=True)})
    categories = [at for at, name in zip("ab", names, strict=True) if columns[name][1]]
    estimator = Anonymizer("kd", k=K, d=1, method="hilbert", categorical=categories)
    if none := "".join(at for at, name in zip("ab", names, strict=True) if name in NO_NUMBERS):
        sentence = rf"^column [{none}] is not numeric: is it categorical\?$"
        with pytest.raises(ValueError, match=sentence):
            estimator.fit(frame)
        return
    assert estimator.fit_transform(frame).shape == (N, 2)
    assert same_classes(estimator.class_of_) == by_the_command(frame, categories, path), names
    assert estimator.transform(frame).shape == (N, 2)


def _pairs(columns: dict[str, Column], first: str) -> Iterator[tuple[str, str]]:
    return (pair for pair in combinations(columns, 2) if pair[0] == first)


@pytest.mark.parametrize("first", list(_of_pandas())[:-1])
def test_columns_of_pandas_of_any_two_types_are_what_the_command_reads(
    first: str, tmp_path: Path
) -> None:
    columns = _of_pandas()
    for pair in _pairs(columns, first):
        _check(pair, columns, pd.DataFrame, tmp_path / "table.csv")


@pytest.mark.parametrize("first", list(_of_pyarrow()))
def test_columns_of_pyarrow_beside_others_are_what_the_command_reads(
    first: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow", reason="`make test-spark` has it, and runs this")
    columns = {first: _of_pyarrow()[first]} | _of_pandas()
    for pair in _pairs(columns, first):
        _check(pair, columns, pd.DataFrame, tmp_path / "table.csv")


@pytest.mark.parametrize("first", list(_of_polars())[:-1])
def test_columns_of_polars_of_any_two_types_are_what_the_command_reads(
    first: str, tmp_path: Path
) -> None:
    columns = _of_polars()
    for pair in _pairs(columns, first):
        _check(pair, columns, pl.DataFrame, tmp_path / "table.csv")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_untouched_columns_of_any_type_are_published_as_they_are(kind: type[Any]) -> None:
    ids = [f"0{i}" for i in range(N)]
    rows = kind({"a": WHOLE, "b": PARTS, "id": ids, "flag": FLAGS, "span": SPANS})
    estimator = Anonymizer("kd", k=K, method="hilbert", untouched=["id", "flag", "span"])
    published = estimator.fit_transform(rows)
    kept = estimator.valid_rows_.tolist()
    assert published[kept, 2].tolist() == [ids[i] for i in kept]
    assert published[kept, 3].tolist() == [FLAGS[i] for i in kept]
    assert published[kept, 4].tolist() == [SPANS[i] for i in kept]


def test_what_convert_dtypes_makes_is_the_same_table() -> None:
    plain = pd.DataFrame({"a": WHOLE, "b": WORDS, "c": gaps(PARTS)})
    made = Anonymizer(k=K, categorical=["b"]).fit(plain, FLAGS)
    for other in (plain.convert_dtypes(), plain.convert_dtypes().astype({"b": "category"})):
        again = Anonymizer(k=K, categorical=["b"]).fit(other, FLAGS)
        assert same_classes(again.class_of_) == same_classes(made.class_of_)


@pytest.mark.parametrize("target", [WORDS, FLAGS, [each + 0.1 for each in PARTS]])
def test_rows_without_a_target_are_released_like_others(target: list[Any]) -> None:
    rows = np.column_stack([WHOLE, PARTS])
    found = Anonymizer(k=K).fit(rows, pd.Series(gaps(target), dtype=object))
    assert found.n_classes_ > 1
    assert found.deletion_ratio_ == 0
    with pytest.raises(ValueError, match="y has no value: leave it out"):
        Anonymizer(k=K).fit(rows, np.full(N, np.nan))
