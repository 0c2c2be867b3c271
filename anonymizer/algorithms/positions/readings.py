"""Readings: the newest sensor values of each device, and statistics of them for each group.

Values are clamped and rounded on arrival; no later stage knows them more precisely. Statistics
are published only where at least k members of a group have a value.

What is hidden: which member a value belongs to. Every statistic is a symmetric function of the
members' values.

What is not hidden:

- that *some* member has a value. The smallest and the largest are the values of one member each,
  so they are published only on request, and a quantile that would depend on either is omitted.
  The other statistics bound the values in the group;
- who could have a value. An adversary who knows the values of all members but one solves the
  mean for the last. One who knows that only trucks drive at 22 m/s learns what a group contains;
- differences. If one member's value changes, appears or disappears between two releases of a
  group, `mean * count` before and after reveals that value. Whose value it is remains hidden,
  except from an adversary who knows which member reported or fell silent just then. Only `step`
  limits this: values, means and quantiles are rounded, so a difference is known to about
  `count * step` and no better;
- that some members have no reading: compare `count` with the number of pseudonyms.

Individual values next to a pseudonym (`per_pseudonym`) hide none of this and can undo the
anonymity altogether; `anonymizer.audit.mathematics.value_linking` measures how far. A value that
is no longer published also reveals which member fell silent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.readings import ReadingAttribute

_NO_STEP = 0.0


@discreet
class Known(NamedTuple):
    """The values of some devices, in their order.

    `n_of`: number of values of each device, shape (devices,); `attribute`, `value`, `heard_at`:
    index of the attribute, value and unix seconds of each, shape (values,).
    """

    n_of: IntArray
    attribute: IntArray
    value: FloatArray
    heard_at: FloatArray


class ReadingsState:
    """Newest value of each declared attribute of each device slot.

    Parameters
    ----------
    attributes
        The declared readings; the index of an attribute is its position in this sequence.
    """

    def __init__(self, attributes: Sequence[ReadingAttribute]) -> None:
        self.attributes = tuple(attributes)
        self.index_of = {attribute.name: i for i, attribute in enumerate(attributes)}
        self._bounds = bounds(attributes)
        self._value_of = np.zeros((0, len(attributes)))
        self._heard_at = np.zeros((0, len(attributes)))

    def advance(
        self, slot: Int32Array, attribute: IntArray, value: FloatArray, ts: FloatArray
    ) -> IntArray:
        """Process a batch of readings; return how many were clamped, shape (attributes,).

        Device slot (>= 0), index of the attribute, finite value and unix seconds of each reading,
        shape (n,), in any order; among equal times the larger value wins. O(n), and O(slots) if a
        slot is new.
        """
        if len(slot):
            self._make_room(int(slot.max()) + 1)
        return _advance(*self._bounds, self._value_of, self._heard_at, slot, attribute, value, ts)

    def are_outside(self, attribute: IntArray, value: FloatArray) -> BoolArray:
        """Return which readings are outside their declared range, same shape."""
        lo, hi = (np.array([getattr(each, of) for each in self.attributes]) for of in ("lo", "hi"))
        outside: BoolArray = (value < lo[attribute]) | (value > hi[attribute])
        return outside

    def current(self, member: Int32Array, *, since: float) -> FloatArray:
        """Return the values of members (slots), shape (members, attributes).

        NaN if there is none, or if it is older than `since` (unix seconds), or if the slot is
        negative.
        """
        return _current(self._value_of, self._heard_at, member, since)

    def since(self, slot: Int32Array, since: float) -> Known:
        """Return the values of distinct slots (>= 0) that are not older than unix seconds."""
        heard_at = self._heard_at[slot]
        row, attribute = np.nonzero(heard_at >= since)
        return Known(
            np.bincount(row, minlength=len(slot)),
            attribute,
            self._value_of[slot[row], attribute],
            heard_at[row, attribute],
        )

    def put(self, slot: Int32Array, known: Known) -> None:
        """Let these be all values of distinct slots (>= 0)."""
        self._make_room(int(slot.max(initial=-1)) + 1)
        self.forget(slot)
        of = np.repeat(slot, known.n_of)
        self._value_of[of, known.attribute] = known.value
        self._heard_at[of, known.attribute] = known.heard_at

    def are_older(self, slot: Int32Array, than: float) -> BoolArray:
        """Return which slots have no value, or none but older ones than unix seconds."""
        older: BoolArray = np.logical_and.reduce(self._heard_at[slot] < than, axis=1)
        return older

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots, so that the next device in a slot inherits nothing."""
        self._heard_at[slot[slot < len(self._heard_at)]] = -np.inf

    def state(self) -> dict[str, Any]:
        """Return what changes with each batch."""
        return {"value_of": self._value_of.ravel(), "heard_at": self._heard_at.ravel()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same attributes."""
        shape = (-1, len(self.attributes))
        self._value_of = state["value_of"].reshape(shape)
        self._heard_at = state["heard_at"].reshape(shape)

    def _make_room(self, n_slots: int) -> None:
        have, width = self._heard_at.shape
        if n_slots > have:
            more = (max(n_slots, 2 * have) - have, width)
            self._value_of = np.concatenate([self._value_of, np.zeros(more)])
            self._heard_at = np.concatenate([self._heard_at, np.full(more, -np.inf)])


def bounds(attributes: Sequence[ReadingAttribute]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lo, hi and step (0 for none) of each attribute, in the form the kernels need."""
    return (
        np.array([attribute.lo for attribute in attributes], np.float64),
        np.array([attribute.hi for attribute in attributes], np.float64),
        np.array([attribute.step or _NO_STEP for attribute in attributes], np.float64),
    )


@kernel
def rounded(value: float, lo: float, hi: float, step: float) -> float:
    """Return the nearest step to a value in range."""
    if step == _NO_STEP:
        return value
    nearest: float = lo + step * np.floor((value - lo) / step + 0.5)
    return min(hi, nearest)


@kernel
def _advance(
    lo: FloatArray,
    hi: FloatArray,
    step: FloatArray,
    value_of: FloatArray,
    heard_at: FloatArray,
    slot: Int32Array,
    attribute: IntArray,
    value: FloatArray,
    ts: FloatArray,
) -> IntArray:
    n_clamped = np.zeros(len(lo), np.int64)
    for i in range(len(slot)):
        s, a = slot[i], attribute[i]
        inside = min(max(value[i], lo[a]), hi[a])
        n_clamped[a] += inside != value[i]
        x = rounded(inside, lo[a], hi[a], step[a])
        if ts[i] > heard_at[s, a] or (ts[i] == heard_at[s, a] and x > value_of[s, a]):
            value_of[s, a] = x
            heard_at[s, a] = ts[i]
    return n_clamped


@kernel
def _current(
    value_of: FloatArray, heard_at: FloatArray, member: Int32Array, since: float
) -> FloatArray:
    n_slots, n_attributes = heard_at.shape
    current = np.full((len(member), n_attributes), np.nan)
    for i in range(len(member)):
        s = member[i]
        for a in range(n_attributes):
            if 0 <= s < n_slots and heard_at[s, a] >= since:
                current[i, a] = value_of[s, a]
    return current


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summaries:
    """Statistics of each attribute (a) in each group (g).

    `count`: members with a value, shape (g, a); 0 if fewer than k have one, in which case nothing
    is published. `mean`, `smallest`, `largest`: NaN where `count` is 0. `percents`, `quantile`: the
    requested quantiles (1 to 99) and their values, shape (g, a, percents); NaN also where one would
    depend on the smallest or the largest value. `n_left_out`: groups in which some members, but
    fewer than k, have a value, shape (a,).
    """

    attributes: tuple[ReadingAttribute, ...]
    count: IntArray
    mean: FloatArray
    smallest: FloatArray
    largest: FloatArray
    percents: tuple[int, ...]
    quantile: FloatArray
    n_left_out: IntArray

    def published(self) -> list[dict[str, dict[str, float]]]:
        """Return what is published about each group: attribute -> statistic -> number.

        Attributes without statistics and statistics without a value are left out.
        """
        rows: list[dict[str, dict[str, float]]] = [{} for _ in range(len(self.count))]
        for a, attribute in enumerate(self.attributes):
            group = np.flatnonzero(self.count[:, a])
            columns = [self._column(a, s)[group].tolist() for s in attribute.statistics]
            for g, values in zip(group.tolist(), zip(*columns, strict=True), strict=True):
                named = zip(attribute.statistics, values, strict=True)
                rows[g][attribute.name] = {s: value for s, value in named if not isnan(value)}
        return rows

    def own_values(
        self, value: FloatArray, first_member_of: IntArray
    ) -> dict[str, list[float | None]]:
        """Return the individual values that are published next to pseudonyms, by attribute.

        `value`, `first_member_of`: as for `summarize`. A value for each member, of attributes with
        `per_pseudonym` only; None if it has none, or if nothing is published about its group.
        """
        n_members = np.diff(first_member_of)
        own: dict[str, list[float | None]] = {}
        for a, attribute in enumerate(self.attributes):
            if attribute.per_pseudonym:
                published = np.repeat(self.count[:, a] > 0, n_members) & ~np.isnan(value[:, a])
                rounded_value = value[:, a].round(attribute.decimals).tolist()
                pairs = zip(rounded_value, published.tolist(), strict=True)
                own[attribute.name] = [x if is_published else None for x, is_published in pairs]
        return own

    def _column(self, a: int, statistic: str) -> FloatArray | IntArray:
        if statistic == "count":
            return self.count[:, a]
        column = {"mean": self.mean, "min": self.smallest, "max": self.largest}.get(statistic)
        if column is None:
            column = self.quantile[:, :, self.percents.index(int(statistic[1:]))]
        return column[:, a].round(self.attributes[a].decimals)


def summarize(
    value: FloatArray,
    first_member_of: IntArray,
    k: Int32Array,
    *,
    attributes: Sequence[ReadingAttribute],
) -> Summaries:
    """Return the statistics of groups that may be published.

    `value`: of each member and attribute as `ReadingsState.current` returns it, NaN if missing,
    shape (members, attributes); `first_member_of` in compressed sparse rows; `k`: fewest members
    with a value for which statistics are published, shape (groups,).

    Notes
    -----
    The order of members makes no difference, not even in the last digit of a mean. Quantiles are
    interpolated linearly between order statistics (type 7 of [1]_). O(members log members) for
    each attribute.

    References
    ----------
    .. [1] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", The American
       Statistician 50(4), 1996.
    """
    requested = {s for attribute in attributes for s in attribute.statistics}
    percents = tuple(sorted(int(s[1:]) for s in requested if s.startswith("p")))
    count, moments, quantile, n_left_out = _summarize(
        *bounds(attributes), value, first_member_of, k, np.array(percents, np.int64)
    )
    return Summaries(
        attributes=tuple(attributes),
        count=count,
        mean=moments[0],
        smallest=moments[1],
        largest=moments[2],
        percents=percents,
        quantile=quantile,
        n_left_out=n_left_out,
    )


@kernel
def _summarize(
    lo: FloatArray,
    hi: FloatArray,
    step: FloatArray,
    value: FloatArray,
    first_member_of: IntArray,
    k: Int32Array,
    percent: IntArray,
) -> tuple[IntArray, FloatArray, FloatArray, IntArray]:
    shape = (len(k), len(lo))
    count = np.zeros(shape, np.int64)
    moments = np.full((3, len(k), len(lo)), np.nan)  # mean, smallest, largest
    quantile = np.full((len(k), len(lo), len(percent)), np.nan)
    n_left_out = np.zeros(len(lo), np.int64)
    for g in range(len(k)):
        for a in range(len(lo)):
            column = value[first_member_of[g] : first_member_of[g + 1], a]
            known = np.sort(column[~np.isnan(column)])
            n = len(known)
            if n == 0 or n < k[g]:
                n_left_out[a] += n > 0
                continue
            count[g, a] = n
            # A rounded sum can put the mean outside the range of the values.
            mean = min(max(known.sum() / n, known[0]), known[n - 1])
            moments[0, g, a] = rounded(mean, lo[a], hi[a], step[a])
            moments[1, g, a] = known[0]
            moments[2, g, a] = known[n - 1]
            for q in range(len(percent)):
                below, rest = divmod(percent[q] * (n - 1), 100)
                above = below + (rest > 0)
                if below >= 1 and above <= n - 2:
                    x = known[below] + (known[above] - known[below]) * (rest / 100)
                    quantile[g, a, q] = rounded(x, lo[a], hi[a], step[a])
    return count, moments, quantile, n_left_out
