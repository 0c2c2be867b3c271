"""Readings: the newest value of every declared attribute of every device, within its bounds.

Values are clamped and rounded as they come in: nothing behind this knows them any finer.

Summaries: what the members of a group sensed, told of at least k of them together.

What is hidden: whose a value is. Every statistic is a symmetric function of the members' values,
given only where at least k members have one, and members are told apart by nothing else.

What is not hidden:

- that a value is *somebody's*: the smallest and the largest are one member's each, so they are
  off unless asked for, and no quantile is given that would be made of either. The others are
  bounds on what the group holds;
- who alone could have it. One who knows the values of all members but one solves the mean for
  the last, and one who knows that only trucks drive at 22 m/s knows what a group holds;
- differences. Two releases of one group between which one member's value changes or comes or goes
  tell that value (`mean * count` before and after). They do not tell whose it is, except to one
  who knows which member reported, or fell silent, just then. Only rounding to `step` blunts this:
  values, means and quantiles are rounded, so that a difference is known to about `count * step`
  and no better;
- that some members have no reading: `count` against the number of pseudonyms.

Own values beside a pseudonym (`per_pseudonym`) hide nothing of this and can undo the anonymity
altogether; `anonymizer.algorithms.attacks.value_linking` measures how far. A value that is
no longer given also tells which member fell silent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isnan, log10

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

SAFE_STATISTICS = ("count", "mean", "p25", "p50", "p75")
_SIGNIFICANT_DIGITS = 12
_NO_STEP = 0.0


@dataclass(frozen=True, slots=True)
class Attribute:
    """A reading that is declared, and may therefore be published.

    Attributes
    ----------
    name
        As the codecs give it.
    lo, hi
        Range that values are clamped to before anything else; finite, lo < hi.
    step
        Values, means and quantiles are rounded to `lo + n * step` (at most `hi`). None: they
        are not.
    statistics
        Of `count`, `mean`, `min`, `max` and `p1` to `p99`, in the order they are published.
    per_pseudonym
        Whether each member's own value is published too.
    """

    name: str
    lo: float
    hi: float
    step: float | None = None
    statistics: tuple[str, ...] = SAFE_STATISTICS
    per_pseudonym: bool = False

    @property
    def decimals(self) -> int:
        """Decimal places that tell twelve digits of the range; the rest is noise of rounding."""
        return max(0, _SIGNIFICANT_DIGITS - ceil(log10(max(abs(self.lo), abs(self.hi)))))


class ReadingsState:
    """Newest value of each declared attribute of each device slot.

    Parameters
    ----------
    attributes
        What is kept; the index of an attribute is its place in here.
    ttl_s
        A value older than this counts as none.
    """

    def __init__(self, attributes: Sequence[Attribute], *, ttl_s: float) -> None:
        self.attributes = tuple(attributes)
        self.index_of = {attribute.name: i for i, attribute in enumerate(attributes)}
        self._ttl_s = ttl_s
        self._bounds = bounds(attributes)
        self._value_of = np.zeros((0, len(attributes)))
        self._heard_at = np.zeros((0, len(attributes)))

    def advance(
        self, slot: Int32Array, attribute: IntArray, value: FloatArray, ts: FloatArray
    ) -> IntArray:
        """Take in a batch of readings; return how many were clamped, shape (attributes,).

        Parameters
        ----------
        slot, attribute, value, ts
            Device slot (>= 0), index of the attribute, finite value and unix seconds of each
            reading, shape (n,), in any order: equal times are settled by the larger value.

        Notes
        -----
        O(n), and O(slots) when a slot is new.
        """
        if len(slot):
            self._make_room(int(slot.max()) + 1)
        return _advance(*self._bounds, self._value_of, self._heard_at, slot, attribute, value, ts)

    def current(self, member: Int32Array, *, now: float) -> FloatArray:
        """Return the values of members (slots), NaN for none, shape (members, attributes)."""
        return _current(self._value_of, self._heard_at, member, now - self._ttl_s)

    def forget(self, slot: Int32Array) -> None:
        """Clear slots set free: the next device there inherits nothing."""
        self._heard_at[slot[slot < len(self._heard_at)]] = -np.inf

    def _make_room(self, n_slots: int) -> None:
        have, width = self._heard_at.shape
        if n_slots > have:
            more = (max(n_slots, 2 * have) - have, width)
            self._value_of = np.concatenate([self._value_of, np.zeros(more)])
            self._heard_at = np.concatenate([self._heard_at, np.full(more, -np.inf)])


def bounds(attributes: Sequence[Attribute]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lo, hi and step (0 for none) of each attribute, as the kernels take them."""
    return (
        np.array([attribute.lo for attribute in attributes], np.float64),
        np.array([attribute.hi for attribute in attributes], np.float64),
        np.array([attribute.step or _NO_STEP for attribute in attributes], np.float64),
    )


@kernel
def rounded(value: float, lo: float, hi: float, step: float) -> float:
    """Return the step nearest to a value in range."""
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
            if s < n_slots and heard_at[s, a] >= since:
                current[i, a] = value_of[s, a]
    return current


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summaries:
    """What is told of each attribute (a) of each group (g).

    Attributes
    ----------
    attributes
        Declared ones.
    count
        Members with a value, 0 where fewer than k have one: then nothing is told, shape (g, a).
    mean, smallest, largest
        Over those members, NaN where nothing is told, shape (g, a).
    percents, quantile
        Which quantiles (1 to 99), and their values, shape (g, a, percents); NaN also where the
        quantile would be made of the smallest or the largest value.
    n_left_out
        Groups where some members had a value, but fewer than k, shape (a,).
    """

    attributes: tuple[Attribute, ...]
    count: IntArray
    mean: FloatArray
    smallest: FloatArray
    largest: FloatArray
    percents: tuple[int, ...]
    quantile: FloatArray
    n_left_out: IntArray

    def told(self) -> list[dict[str, dict[str, float]]]:
        """Return for each group what is published of it: attribute -> statistic -> number.

        An attribute that nothing is told of is missing, and so is a statistic.
        """
        rows: list[dict[str, dict[str, float]]] = [{} for _ in range(len(self.count))]
        for a, attribute in enumerate(self.attributes):
            given = np.flatnonzero(self.count[:, a])
            columns = [self._column(a, s)[given].tolist() for s in attribute.statistics]
            for g, values in zip(given.tolist(), zip(*columns, strict=True), strict=True):
                stated = zip(attribute.statistics, values, strict=True)
                rows[g][attribute.name] = {s: value for s, value in stated if not isnan(value)}
        return rows

    def own_values(
        self, value: FloatArray, first_member_of: IntArray
    ) -> dict[str, list[float | None]]:
        """Return the values that are published beside pseudonyms, by attribute.

        Parameters
        ----------
        value, first_member_of
            As summarized.

        Returns
        -------
        own
            For each attribute published so a value for each member, None where the member has
            none or its group is told nothing.
        """
        n_members = np.diff(first_member_of)
        own: dict[str, list[float | None]] = {}
        for a, attribute in enumerate(self.attributes):
            if attribute.per_pseudonym:
                told = np.repeat(self.count[:, a] > 0, n_members) & ~np.isnan(value[:, a])
                shown = value[:, a].round(attribute.decimals).tolist()
                stated = zip(shown, told.tolist(), strict=True)
                own[attribute.name] = [x if is_told else None for x, is_told in stated]
        return own

    def _column(self, a: int, statistic: str) -> FloatArray | IntArray:
        if statistic == "count":
            return self.count[:, a]
        column = {"mean": self.mean, "min": self.smallest, "max": self.largest}.get(statistic)
        if column is None:
            column = self.quantile[:, :, self.percents.index(int(statistic[1:]))]
        return column[:, a].round(self.attributes[a].decimals)


def summarize(
    value: FloatArray, first_member_of: IntArray, k: Int32Array, *, attributes: Sequence[Attribute]
) -> Summaries:
    """Return what may be told of groups.

    Parameters
    ----------
    value
        Of each member and attribute, as `ReadingsState.current` gives them: within range, on
        its steps, NaN for none, shape (members, attributes).
    first_member_of
        Members of group g: `first_member_of[g]` up to `first_member_of[g + 1]`.
    k
        So many members with a value it takes, shape (groups,).
    attributes
        In the order of the columns.

    Notes
    -----
    The order of members changes nothing, not even the last digit of a mean. Quantiles are
    interpolated linearly between order statistics (type 7 of [1]_). O(members log members)
    for each attribute.

    References
    ----------
    .. [1] R. J. Hyndman, Y. Fan, "Sample quantiles in statistical packages", The American
       Statistician 50(4), 1996.
    """
    asked = {s for attribute in attributes for s in attribute.statistics}
    percents = tuple(sorted(int(s[1:]) for s in asked if s.startswith("p")))
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
            # Summing up can end beside the range of what was summed up.
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
