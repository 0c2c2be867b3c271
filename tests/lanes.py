"""Which cases of a test `make test` tries; `make soak` tries the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return all values, of which those that are not `quick` are for `make soak`."""
    every = list(values)
    assert all(each in every for each in quick), "what is quick is one of them"
    return [each if each in quick else pytest.param(each, marks=pytest.mark.soak) for each in every]


def some_rows(rows: Iterable[tuple[Any, ...]], quick: Collection[tuple[Any, ...]]) -> list[Any]:
    """Return all rows, each the arguments of a case; those that are not `quick` are for soak."""
    every = list(rows)
    assert all(each in every for each in quick), "what is quick is one of them"
    return [pytest.param(*row, marks=[pytest.mark.soak] * (row not in quick)) for row in every]


def one_in(n: int, values: Iterable[Any]) -> list[Any]:
    """Return all values, of which `make test` tries the first and each n-th that follows."""
    every = list(values)
    return some(every, every[::n])


def each_of_both(many: Iterable[Any], few: Iterable[Any]) -> list[Any]:
    """Return all pairs, of which `make test` tries one for each of the many, the few in turns."""
    few = list(few)
    return [
        pytest.param(one, other, marks=[pytest.mark.soak] * ((i + j) % len(few) > 0))
        for i, one in enumerate(many)
        for j, other in enumerate(few)
    ]
