"""Membership in a table: whether the row of a person was in the release.

The adversary knows the whole row, and shadow releases of random halves of a pool.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from anonymizer.api.anonymizing import anonymize
from anonymizer.api.keywords import TableKeywords
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from experiments.membership import scores_of
from experiments.scores import Score

K = 5
_QIS = {"age": (18, 90), "income": (0, 200), "hours": (0, 80)}
_OF: TableKeywords = {"qi": list(_QIS), "sa": ["disease"], "k": K, "d": 2}
MODELS: dict[str, TableKeywords] = {
    "table, (k,d)": {**_OF, "model": "kd"},
    "table, (k,l,d)": {**_OF, "model": "kld", "l": 2},
}
_N_VALUES = 6


def run_tables(
    *,
    n_rows: int,
    n_shadows: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Attack anonymized tables of random halves of a pool of rows, and raw ones.

    Parameters
    ----------
    n_rows
        Rows of the pool; half of them are in each release.
    """
    rng = np.random.default_rng(seed)
    columns = [rng.integers(low, high + 1, n_rows) for low, high in _QIS.values()]
    values = np.stack(columns, axis=1).astype(np.float64)
    sensitive = rng.integers(_N_VALUES, size=n_rows)
    is_in = rng.random((n_shadows, n_rows)) < 1 / 2
    for name, options in MODELS.items():
        progress(f"membership: {name}")
        begun = time.process_time()
        said = [
            read_table(*_published(values[row], sensitive[row], options), values, sensitive)
            for row in is_in
        ]
        yield from scores_of(name, (np.stack(said), is_in), begun)
    begun = time.process_time()
    raw = [
        read_table(np.stack([values[row], values[row]], axis=2), sensitive[row], values, sensitive)
        for row in is_in
    ]
    yield from scores_of("table, raw", (np.stack(raw), is_in), begun)


def _published(
    values: FloatArray, sensitive: IntArray, options: TableKeywords
) -> tuple[FloatArray, IntArray]:
    """Return the range of each published row and attribute, and its sensitive value."""
    frame = pl.DataFrame(
        {name: values[:, j].astype(np.int64) for j, name in enumerate(_QIS)}
        | {"disease": [f"d{value}" for value in sensitive.tolist()]}
    )
    rows = pl.DataFrame(anonymize(frame, **options).frame)
    ranges = np.stack([_range(rows[name]) for name in _QIS], axis=1)
    return ranges, rows["disease"].str.slice(1).cast(pl.Int64).to_numpy()


def _range(column: pl.Series) -> FloatArray:
    """Return the ends of labels such as `[20-35]` or `20`, shape (rows, 2)."""
    text = column.cast(pl.String).str.strip_chars("[]")
    low = text.str.extract(r"^(\d+)").cast(pl.Float64)
    high = text.str.extract(r"(\d+)$").cast(pl.Float64)
    return np.stack([low.to_numpy(), high.to_numpy()], axis=1)


def read_table(
    ranges: FloatArray, sensitive: IntArray, values: FloatArray, known: IntArray
) -> FloatArray:
    """Return what a release says where each row would be, shape (rows of the pool, 4).

    Published rows that cover it, their density, and both of those with its sensitive value.

    Parameters
    ----------
    ranges, sensitive
        Ends of each published row and attribute, shape (published, attributes, 2), and value.
    values, known
        Of the pool, shape (n, attributes) and (n,).
    """
    covers: BoolArray = np.logical_and.reduce([
        (ranges[:, j, 0] <= values[:, None, j]) & (values[:, None, j] <= ranges[:, j, 1])
        for j in range(values.shape[1])
    ])  # fmt: skip
    density = 1.0 / np.prod(ranges[..., 1] - ranges[..., 0] + 1.0, axis=1)
    same = covers & (known[:, None] == sensitive)
    return np.stack(
        [covers.sum(axis=1), covers @ density, same.sum(axis=1), same @ density], axis=1
    )
