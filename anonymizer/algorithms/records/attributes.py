"""Attributes from declarations: numbers or categories with an order, a hierarchy, or bands.

Bands of a sensitive number make its distinct values countable: 14.1 and 14.2 are one value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.algorithms.records.generalized_values import MISSING
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import NO_CODE, Attribute, Hierarchy

Branch: TypeAlias = tuple[str, ...]
"""Labels of a hierarchy from a leaf up to the root, without repetition."""
_Exact = TypeVar("_Exact", Decimal, Fraction)
ROOT = "*"
"""Label of a root that the hierarchy itself does not name."""
MOST_STEPS = 2**20
"""Greatest number of codes of whole numbers or of a declared step."""
_MOST_WHOLE = 2**53
"""Every whole number below this is a float."""
_EXACT_TENS = 22
"""Greatest power of ten that is a float."""


@dataclass(frozen=True, slots=True, repr=False)
class Interval:
    """The declared domain of a number.

    Both ends are inclusive; `step` is the distance between possible values, None for any value.
    """

    lo: float
    hi: float
    step: float | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite([self.lo, self.hi]).all() and self.lo <= self.hi):
            raise ValueError("the ends are finite, the second is not below the first")
        if self.step is None:
            return
        if not 0 < self.step < np.inf:
            raise ValueError("the step is above 0 and finite")
        n_steps = (self.hi - self.lo) / self.step
        if n_steps >= MOST_STEPS:
            raise ValueError(f"more than {MOST_STEPS} steps")
        if abs(n_steps - round(n_steps)) > 1e-6:
            raise ValueError("the step does not lead from one end to the other")


def categories(
    name: str, order: Sequence[str], *, branches: Iterable[Branch] = (), marker: str | None = None
) -> Attribute:
    """Return a categorical attribute; codes follow `order` as far as the hierarchy allows.

    `order`: each once; the marker that means "missing" may be among them, and always comes last.
    `branches`: at least one for each category, or none at all; a marker without one is placed below
    the root. ValueError if a category has no branch.

    Notes
    -----
    Codes below a node are consecutive: where the order scatters them, they are gathered at the
    first of them.
    """
    marked = marker is not None
    leaves = [each for each in order if each != marker] + ([] if marker is None else [marker])
    branch_of = {branch[0]: branch for branch in branches}
    if branch_of:
        _hang(branch_of, marker)
        if any(leaf not in branch_of for leaf in leaves):
            raise ValueError("the hierarchy lacks a category of the order")
        leaves = _gathered([branch_of[leaf] for leaf in leaves], marker)
    ordered = [branch_of[leaf] for leaf in leaves] if branch_of else []
    return Attribute(
        name=name,
        position=np.arange(len(leaves), dtype=np.float64),
        label=tuple(leaves),
        missing=len(leaves) - 1 if marked else NO_CODE,
        hierarchy=hierarchy_of(ordered, marked=marked) if ordered else None,
    )


def numbers(
    name: str,
    position: FloatArray,
    *,
    branches: Iterable[Branch] = (),
    missing: bool = False,
    exact: Sequence[Decimal] = (),
) -> Attribute:
    """Return a numeric attribute whose values lie at `position`, rising.

    `exact`: the values themselves, rising, where some are no floats, see `rising`. `branches` have
    numbers for leaves, at least one for each position. The position of a missing marker is one step
    beyond the last value. ValueError if a leaf is no number, a position has no branch, or numbers
    below a node are not consecutive.
    """
    values = [*exact] or [Decimal(repr(x)) for x in position.tolist()] if branches else []
    try:
        branch_of = {Decimal(b[0]): b for b in branches}
    except InvalidOperation:
        raise ValueError("a leaf of the hierarchy is no number") from None
    leaves = []
    if branch_of:
        if any(x not in branch_of for x in values):
            raise ValueError("the hierarchy lacks a number of the domain")
        leaves = [branch_of[x] for x in values]
        if _gathered(leaves, None) != [leaf[0] for leaf in leaves]:
            raise ValueError("the numbers below a node of the hierarchy do not follow each other")
        leaves += [(MISSING, leaves[0][-1])] if missing else []
    step = float(position[-1] - position[-2]) if len(position) > 1 else 1.0
    last = float(position[-1]) if len(position) else -step
    beyond = [max(last + step, float(np.nextafter(last, np.inf)))] if missing else []
    return Attribute(
        name=name,
        position=np.concatenate([position, beyond]),
        missing=len(position) if missing else NO_CODE,
        hierarchy=hierarchy_of(leaves, marked=missing) if leaves else None,
        exact=tuple(exact),
    )


def times(
    name: str,
    value: Sequence[Fraction],
    written: Sequence[str],
    *,
    branches: Sequence[Branch] = (),
    missing: bool = False,
) -> Attribute:
    """Return an attribute of dates, times or durations; see `Attribute.written`.

    `value`, `written`: the different values, rising, and the text of each; `branches`: of each
    value, or none at all. ValueError if a label of the hierarchy names two nodes, or the values
    below a node do not follow each other.
    """
    if branches and ambiguous(branches) is not None:
        raise ValueError("a label of the hierarchy names two nodes")
    if branches and _gathered(branches, None) != [*written]:
        raise ValueError("the values below a node of the hierarchy do not follow each other")
    plain = numbers(name, rising(value), missing=missing)
    below_root = [(MISSING, branches[0][-1])] if branches and missing else []
    leaves = [*branches, *below_root]
    hierarchy = hierarchy_of(leaves, marked=missing) if leaves else None
    return replace(plain, written=tuple(written), hierarchy=hierarchy)


def rising(values: Sequence[_Exact]) -> FloatArray:
    """Return positions for rising numbers: their distance from the first, as floats that rise."""
    position = np.array([float(value - values[0]) for value in values])
    for i in np.flatnonzero(np.diff(position) <= 0).tolist():
        at = i + 1
        while at < len(position) and position[at] <= position[at - 1]:
            position[at] = np.nextafter(position[at - 1], np.inf)
            at += 1
    return position


def places_of(interval: Interval, values: FloatArray) -> FloatArray:
    """Return the possible values of a number: the positions of its attribute.

    Every step if one is declared. Otherwise every whole number, if all values are whole and these
    are not too many (`MOST_STEPS`); otherwise the values present and the ends.
    """
    lo, hi, step = interval.lo, interval.hi, interval.step
    ends = np.array([lo, hi])
    countable = hi - lo < MOST_STEPS and max(-lo, hi) < _MOST_WHOLE
    if step is None and countable and _whole(ends) and _whole(values):
        step = 1.0
    if step is None:
        return np.unique(np.concatenate([ends, values]))
    return steps_of(lo, step, round((hi - lo) / step) + 1)


def steps_of(lo: float, step: float, n: int) -> FloatArray:
    """Return n numbers from `lo`, each the float nearest to the decimal: 0.3, not 3 * 0.1."""
    first, each = Decimal(repr(lo)), Decimal(repr(step))
    scale = max(0, *(-int(x.as_tuple().exponent) for x in (first, each)))
    start, by = int(first.scaleb(scale)), int(each.scaleb(scale))
    if scale <= _EXACT_TENS and max(abs(start), abs(start + n * by)) < _MOST_WHOLE:
        # The quotient of two exact floats is the float nearest to it.
        return (start + by * np.arange(n)) / 10.0**scale
    return np.array([(start + by * i) / 10**scale for i in range(n)])  # rounded correctly, too


def hierarchy_of(branches: Sequence[Branch], *, marked: bool = False) -> Hierarchy:
    """Return the hierarchy of branches in the order of their codes.

    A node is identified by the labels from the root down to it. All branches share one root.
    `marked`: the last leaf is the missing marker.
    """
    height = max(len(branch) for branch in branches)
    label = [branch[0] for branch in branches]
    counts = [1] * (len(branches) - marked) + [0] * marked
    n_leaves = counts.copy()
    node_of: dict[Branch, int] = {}
    ancestor = np.zeros((len(branches), height), np.int32)
    for code, branch in enumerate(branches):
        path = [code]
        for at in range(1, len(branch)):
            node = node_of.setdefault(branch[at:], len(label))
            if node == len(label):
                label.append(branch[at])
                n_leaves.append(0)
            n_leaves[node] += counts[code]
            path.append(node)
        # Levels are counted from the root, so that a node has the same level for all its leaves.
        above = path[1:] or path
        ancestor[code] = [code, *above[:1] * (height - len(path)), *path[1:]][:height]
    return Hierarchy(ancestor, tuple(label), np.array(n_leaves, np.int32))


def ambiguous(branches: Sequence[Branch]) -> int | None:
    """Return the first branch with a label that also names another node; None if there is none.

    A release that publishes the label of a node would be ambiguous.
    """
    place_of: dict[str, tuple[bool, Branch]] = {}
    for i, branch in enumerate(branches):
        if branch[0] in place_of:
            return i
        for at in range(len(branch)):
            place = (at == 0, branch[at:])
            if place_of.setdefault(branch[at], place) != place:
                return i
    return None


def _hang(branch_of: dict[str, Branch], marker: str | None) -> None:
    if marker is not None and marker not in branch_of:
        root = next(iter(branch_of.values()))[-1]
        branch_of[marker] = (marker, root)


def _gathered(branches: Sequence[Branch], last: str | None) -> list[str]:
    """Return the leaves so that those below each node are consecutive, `last` at the end."""
    first: dict[Branch, tuple[bool, int]] = {}
    for i, branch in enumerate(branches):
        for at in range(len(branch)):
            holds_last, seen = first.get(branch[at:], (False, i))
            first[branch[at:]] = (holds_last or branch[0] == last, seen)
    down = [[first[branch[at:]] for at in reversed(range(len(branch)))] for branch in branches]
    return [branches[i][0] for i in sorted(range(len(branches)), key=down.__getitem__)]


def _whole(values: FloatArray) -> bool:
    return bool((values == np.rint(values)).all())


def banded(values: ArrayLike, edges: Sequence[float]) -> Int32Array:
    """Return the band of each value: the number of edges at or below it.

    `values` are finite, shape (n,); `edges` rise, and an edge belongs to the band above it:
    ValueError if not. Edges are declared and not learned: quantiles of a table would reveal
    something about it. O(n log edges).
    """
    at, numbers = _checked(edges), np.asarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a value that is no finite number is in no band")
    return np.searchsorted(at, numbers, side="right").astype(np.int32)


def banded_attribute(name: str, edges: Sequence[float]) -> Attribute:
    """Return the attribute whose codes are the bands between `edges`.

    It is numeric, with adjacent bands one step apart, and t-closeness ranks the bands that occur.
    ValueError as for `banded`.
    """
    return Attribute(name, np.arange(len(_checked(edges)) + 1, dtype=np.float64))


def in_bands(attribute: Attribute, edges: Sequence[float]) -> tuple[Attribute, Int32Array]:
    """Return the attribute of the bands of a number, and the band of each of the number's codes.

    The missing marker is not a band and stays the missing marker. ValueError as for `banded`.
    """
    bands, band = banded_attribute(attribute.name, edges), banded(_values_of(attribute), edges)
    if attribute.missing == NO_CODE:
        return bands, band
    band[attribute.missing] = bands.size
    position = np.append(bands.position, float(bands.size))
    return Attribute(attribute.name, position, missing=bands.size), band


def _values_of(attribute: Attribute) -> FloatArray:
    """Return the number of each code; that of the missing marker is any."""
    if not attribute.exact:
        return attribute.position
    values = [float(value) for value in attribute.exact]
    return np.array(values + values[-1:] * (attribute.size - len(values)))


def _checked(edges: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    at = np.asarray(edges, np.float64)
    if at.ndim != 1 or not np.isfinite(at).all() or not (np.diff(at) > 0).all():
        raise ValueError("the edges of bands must be finite and rise")
    return at
