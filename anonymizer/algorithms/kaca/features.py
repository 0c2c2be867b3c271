"""Features: quasi-identifiers as coordinates on comparable scales."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Records, Schema

MOST_APART = 16
"""Up to this many categories get an axis each by default; more lie on a line, in their order."""


_AT_ONCE = 1 << 16
"""Records whose distances are held at a time."""


class Scale(Enum):
    """Position of the values of a quasi-identifier; the greatest distance of any two is 1.

    The missing marker is a value beyond the last one (`LINE`), one of its own (`APART`), the
    middle (`CIRCLE`), or as far below the least value as the greatest is above it (`DIGITS`).
    """

    LINE = "line"
    """On a line: the position over the span of the declared domain. For numbers, and for
    categories whose order means something (a taxonomy)."""
    CIRCLE = "circle"
    """On a circle of circumference 1, a turn every `period`: for times of day where 23:59 and
    00:01 may share a class. The greatest distance is then 1/pi."""
    DIGITS = "digits"
    """On a line: the number made of the digits of the label, over the span of all of them
    (G5615530120: 5615530120). For identifiers that are similar if they begin alike."""
    APART = "apart"
    """Every two categories at distance 1."""


@dataclass(frozen=True, slots=True)
class Feature:
    """How one quasi-identifier is compared between records."""

    scale: Scale | None = None
    """None: `LINE` for numbers and for what has a hierarchy, `APART` for other categories, up to
    `MOST_APART` of them."""
    weight: float = 1.0
    """What its distances are multiplied by, >= 0."""
    period: float = 1440.0
    """Of a `CIRCLE`, in the unit of the attribute's positions: 1440 for minutes of the day."""


class Points(NamedTuple):
    """Records as points, looked up by code: their coordinates would take several times as much.

    Coordinate f of record i is `place[start[f] + code[i, column[f]]]`.
    """

    code: Int32Array
    """Of each record in each quasi-identifier, shape (n, qis)."""
    column: IntArray
    start: IntArray
    """`column`, `start`: quasi-identifier of each coordinate, and where its places begin, shape
    (features,)."""
    place: FloatArray
    """Places of all coordinates by code."""

    def of(self, records: IntArray | slice = slice(None)) -> FloatArray:
        """Return the coordinates of some records, all if none are named, shape (n, features)."""
        return np.take(self.place, self.start + self.code[records][:, self.column])

    def ordered(self, order: IntArray) -> "Points":
        """Return the points in another order."""
        return self._replace(code=self.code[order])


@inner_kernel
def coordinate(points: Points, i: int, f: int) -> float:
    """Return a coordinate of a record."""
    return float(points.place[points.start[f] + points.code[i, points.column[f]]])


def features(records: Records, schema: Schema, how: Sequence[Feature] = ()) -> Points:
    """Return the features of each record.

    Parameters
    ----------
    how
        A feature for each quasi-identifier; empty: the default for all.

    Raises
    ------
    ValueError
        If their number differs from that of the quasi-identifiers, or a scale does not suit one.

    Notes
    -----
    In the source, the number of a section (up to 10^10) is next to the hour (up to 24), so that
    the time of day has no effect. Here every quasi-identifier spans 1. O(codes).
    """
    each = tuple(how) or (Feature(),) * len(schema.qis)
    if len(each) != len(schema.qis):
        raise ValueError("one feature for each quasi-identifier")
    places = [_places(qi, feature) for qi, feature in zip(schema.qis, each, strict=True)]
    n_axes = [place.shape[1] for place in places]
    sizes = np.repeat([len(place) for place in places], n_axes).astype(np.int64)
    return Points(
        np.ascontiguousarray(records.qi),
        np.repeat(np.arange(len(places)), n_axes),
        np.cumsum(sizes) - sizes,
        np.concatenate([np.zeros(0), *(place.T.ravel() for place in places)]),
    )


def sum_of_squares(points: Points, class_of: Int32Array) -> float:
    """Return the sum of squared distances of the records to the mean of their class.

    Suppressed records do not count; no class is empty. O(n features).
    """
    mean, total = means(points, class_of), 0.0
    for at in range(0, len(class_of), _AT_ONCE):
        label, point = class_of[at : at + _AT_ONCE], points.of(slice(at, at + _AT_ONCE))
        chosen = label >= 0
        total += float(((point[chosen] - mean[label[chosen]]) ** 2).sum())
    return total


def means(points: Points, class_of: Int32Array) -> FloatArray:
    """Return the mean of each class, shape (classes, features); suppressed records do not count."""
    size = np.bincount(class_of[class_of >= 0])
    total = np.zeros((len(size), len(points.start)))
    _add_up(points, class_of, total)
    mean: FloatArray = total / size[:, None]
    return mean


@kernel
def _add_up(points: Points, class_of: Int32Array, total: FloatArray) -> None:
    """Add the coordinates of each record to those of its class."""
    for i in range(len(class_of)):
        c = class_of[i]
        if c >= 0:
            for f in range(total.shape[1]):
                total[c, f] += coordinate(points, i, f)


def nearest(
    mean: FloatArray, point: FloatArray, n: int, *, within: float = 1.0
) -> tuple[FloatArray, IntArray]:
    """Return distance and index of the nearest means of each point, shape (points, up to n).

    `within`: the i-th is at most so many times as far as the i-th nearest. With many features exact
    neighbours of many means take longer for each, the more there are.
    """
    if not len(mean) or not len(point):
        return np.zeros((len(point), 0)), np.zeros((len(point), 0), np.int64)
    ranks = np.arange(1, min(n, len(mean)) + 1)
    # Cut in the middle of space, where means are few: a balanced tree takes five times as long.
    tree = cKDTree(mean, balanced_tree=False)
    distance, near = tree.query(point, k=ranks, eps=within - 1)
    return np.asarray(distance), np.asarray(near, np.int64)


def _places(qi: Attribute, feature: Feature) -> FloatArray:
    """Return the position of each code, shape (size, dimensions)."""
    if not 0 <= feature.weight < np.inf:
        raise ValueError(f"{qi.name}: the weight is finite and not below 0")
    scale = feature.scale or _default_scale(qi)
    places: FloatArray
    if scale is Scale.APART:
        places = np.eye(qi.size) * np.sqrt(0.5)
    elif scale is Scale.CIRCLE:
        places = _on_circle(qi, feature.period)
    elif scale is Scale.DIGITS:
        places = _by_digits(qi)[:, None]
    else:
        places = ((qi.position - qi.position[0]) / (qi.span or 1.0))[:, None]
    return places * feature.weight


def _default_scale(qi: Attribute) -> Scale:
    if qi.numeric or qi.hierarchy is not None or qi.size > MOST_APART:
        return Scale.LINE
    return Scale.APART


def _on_circle(qi: Attribute, period: float) -> FloatArray:
    if not (qi.numeric and 0 < period < np.inf):
        raise ValueError(f"{qi.name}: a circle is for numbers, and its period above 0")
    angle = qi.position / period * 2 * np.pi
    places = np.column_stack([np.cos(angle), np.sin(angle)]) / (2 * np.pi)
    if qi.missing >= 0:
        places[qi.missing] = 0.0
    return places


def _by_digits(qi: Attribute) -> FloatArray:
    """Return the numbers in the labels, from 0 to 1; -1 where there is none."""
    if qi.numeric:
        raise ValueError(f"{qi.name}: a number has no digits to read")
    digits = ["".join(c for c in label if c in "0123456789") for label in qi.label]
    has_digits = np.array(
        [bool(text) and code != qi.missing for code, text in enumerate(digits)], bool
    )
    number = np.array([float(text or 0) for text in digits])
    lo, hi = (
        (number[has_digits].min(), number[has_digits].max()) if has_digits.any() else (0.0, 0.0)
    )
    return np.where(has_digits, (number - lo) / ((hi - lo) or 1.0), -1.0)
