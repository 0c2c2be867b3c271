"""Small tables for the tests of records: few values, so that collisions happen."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Attribute, Hierarchy, Records, Schema


def numbers(name: str, *values: float, missing: bool = False) -> Attribute:
    """A numeric attribute; the marker lies one beyond the last value."""
    position = np.array([*values, values[-1] + 1] if missing else values, float)
    return Attribute(name, position, missing=len(values) if missing else NO_CODE)


def categories(
    name: str, labels: Sequence[str], *, missing: bool = False, halves: bool = False
) -> Attribute:
    """A categorical attribute; `halves` gives it a hierarchy of two groups below the root."""
    every = (*labels, "?") if missing else tuple(labels)
    hierarchy = _halves(every, len(labels)) if halves else None
    marker = len(labels) if missing else NO_CODE
    return Attribute(name, np.arange(len(every), dtype=float), every, marker, hierarchy)


def _halves(every: tuple[str, ...], n: int) -> Hierarchy:
    """Leaves first, then the two groups, then the root; a marker hangs below the root."""
    size = len(every)
    group = [size if c < n // 2 else size + 1 for c in range(n)] + list(range(n, size))
    ancestor = np.array([[c, group[c], size + 2] for c in range(size)], np.int32)
    n_leaves = [1] * n + [0] * (size - n) + [n // 2, n - n // 2, n]
    return Hierarchy(ancestor, (*every, "low", "high", "*"), np.array(n_leaves, np.int32))


SCHEMA = Schema(
    qis=(
        numbers("age", 17, 18, 20, 25, missing=True),
        categories("work", "abcde", missing=True, halves=True),
        categories("home", "xyz"),
    ),
    sensitive=(categories("illness", "fgh"),),
    sources=((0, 1), (2,)),
)
"""Two sources; the first one tells two attributes."""


@st.composite
def records(draw: st.DrawFn, *, max_n: int = 40, repeats: bool = False) -> Records:
    """Records of `SCHEMA`; `repeats` lets persons have several."""
    n = draw(st.integers(1, max_n))
    columns = [
        draw(st.lists(st.integers(0, a.size - 1), min_size=n, max_size=n))
        for a in (*SCHEMA.qis, *SCHEMA.sensitive)
    ]
    cells: Int32Array = np.array(columns, np.int32).T
    who = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)) if repeats else range(n)
    person = np.unique(np.array(who), return_inverse=True)[1].astype(np.int32)
    return Records(np.ascontiguousarray(cells[:, :3]), np.ascontiguousarray(cells[:, 3:]), person)


def promises() -> st.SearchStrategy[Promise]:
    """Promises that some of these tables can keep."""
    return st.builds(
        Promise,
        k=st.integers(1, 4),
        d=st.integers(1, 3),
        l=st.integers(1, 3),
        max_share=st.sampled_from([0.5, 0.75, 1.0]),
        max_source_share=st.sampled_from([0.5, 0.75, 1.0]),
        min_spread=st.sampled_from([{}, {"age": 2.0}]),
        entropy_l=st.sampled_from([1.0, 1.5, 2.0]),
        t=st.sampled_from([0.2, 0.5, float("inf")]),
    )


def counts_alone() -> st.SearchStrategy[Promise]:
    """Promises of k, d and l only."""
    return st.builds(Promise, k=st.integers(1, 4), d=st.integers(1, 3), l=st.integers(1, 3))
