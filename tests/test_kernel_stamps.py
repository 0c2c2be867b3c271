"""Stamps of kernels: they change with what becomes part of machine code, and with nothing else."""

from typing import Any

import pytest

from anonymizer.kernel_stamps import stamp_of

SOURCE = """
from enum import IntEnum
from typing import NamedTuple
import numpy as np
from anonymizer.algorithms.kernels import inner_kernel, kernel

LIMIT = 2.0
PAIR = (1, LIMIT)
TABLE = np.array([1, 2])
RECORD = np.dtype([("one", np.int32), ("other", np.int32)])
UNUSED = 7

class Kind(IntEnum):
    FIRST = 1

class Point(NamedTuple):
    x: float
    y: float

@inner_kernel
def innermost(x, power=2):
    return x ** power + LIMIT

@kernel
def inner(x):
    def within(y):
        return innermost(y) * 3
    return within(x) + PAIR[0] + TABLE[1] + Kind.FIRST

@kernel
def outer(x):
    point = Point(x, inner(x))
    return point.x + point.y + np.zeros(1, RECORD)[0]["one"]
"""
CHANGES = [
    ("LIMIT = 2.0", "LIMIT = 3.0"),
    ("PAIR = (1", "PAIR = (4"),
    ("np.array([1, 2])", "np.array([1, 3])"),
    ("np.array([1, 2])", "np.array([1, 2], np.int32)"),
    ('("other", np.int32)', '("other", np.int64)'),
    ("FIRST = 1", "FIRST = 2"),
    ("x: float\n    y: float", "y: float\n    x: float"),
    ("class Point", "class Place"),
    ("power=2", "power=3"),
    ("x ** power +", "x ** power -"),
    ("innermost(y) * 3", "innermost(y) * 4"),
    ("np.zeros(1", "np.ones(1"),
    ("@inner_kernel", "@kernel"),
]
NO_CHANGES = [
    ("UNUSED = 7", "UNUSED = 8"),
    ("    return x **", "    # Why.\n    return x **"),
    ("@kernel\ndef outer", "\n\n@kernel\ndef outer"),
]

pytestmark = pytest.mark.compiled


def stamp(source: str, name: str = "outer") -> str:
    module: dict[str, Any] = {"__name__": "module_of_a_test"}
    exec(source.replace("Point(x", "Place(x") if "Place" in source else source, module)  # noqa: S102
    return stamp_of(module[name])


@pytest.mark.parametrize(("was", "is_now"), CHANGES)
def test_what_a_kernel_is_made_from_changes_its_stamp(was: str, is_now: str) -> None:
    assert was in SOURCE
    assert stamp(SOURCE.replace(was, is_now)) != stamp(SOURCE)


@pytest.mark.parametrize(("was", "is_now"), NO_CHANGES)
def test_what_a_kernel_does_not_reach_leaves_its_stamp(was: str, is_now: str) -> None:
    assert was in SOURCE
    assert stamp(SOURCE.replace(was, is_now)) == stamp(SOURCE)


def test_kernels_of_one_module_have_stamps_of_their_own() -> None:
    changed = SOURCE.replace("np.zeros(1", "np.ones(1")
    assert stamp(changed, "inner") == stamp(SOURCE, "inner")
    assert len({stamp(SOURCE, name) for name in ("outer", "inner", "innermost")}) == 3
