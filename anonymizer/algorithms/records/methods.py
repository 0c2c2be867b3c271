"""Names of methods that form equivalence classes, and what is known of each.

Cheap to import: algorithms are imported when a method is called.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from anonymizer.algorithms.records.task import Task
    from anonymizer.domain.arrays import Int32Array

SHARE_PRICE = 0.1
"""Price of a preferred share, in GCP, unless the caller sets one."""
TIME_BUDGET_S = 20.0
"""Time budget of a search, unless the caller sets one."""
WORK_PER_S = 100_000_000
"""Work of a search that takes about one second of one core, at six columns; see `Task`."""
AUTO = "auto"
"""Stands for the default method; so does None."""


Method: TypeAlias = "Callable[[Task], Int32Array]"
"""Returns the class of each record, `SUPPRESSED` where it has none, shape (n,)."""


def methods_in(module: str, *names: str) -> dict[str, Method]:
    """Return methods by name: those in `METHODS` of a module, which the first call imports."""
    return {name: partial(_formed, module, name) for name in names}


def _formed(module: str, name: str, task: "Task") -> "Int32Array":
    found: Int32Array = import_module(module).METHODS[name](task)
    return found


def searches(method: str) -> bool:
    """Return whether a method takes all the time that it is given, and loses less with more."""
    return method in {"best", "sighted"}


def cuts(method: str) -> bool:
    """Return whether a method that makes stretches begins with cuts of the whole table."""
    return searches(method) or method == "mondrian"


def weighs(method: str) -> bool:
    """Return whether a method knows how much the loss of each quasi-identifier counts."""
    return searches(method) or method == "mondrian"
