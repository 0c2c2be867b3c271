"""Readings: the newest value of every declared attribute of every device, within its bounds.

Values are clamped and rounded as they come in: nothing behind this knows them any finer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10

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
