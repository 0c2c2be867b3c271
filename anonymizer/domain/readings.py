"""Declared readings: what may be published of the values of sensors, and how coarsely."""

from dataclasses import dataclass
from math import ceil, log10

SAFE_STATISTICS = ("count", "mean", "p25", "p50", "p75")
"""Those that depend on several members each."""
_SIGNIFICANT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class ReadingAttribute:
    """A declared reading: only declared readings may be published.

    Attributes
    ----------
    name
        Its name, as returned by the codecs.
    lo, hi
        Range to which values are clamped first; finite, lo < hi.
    step
        Values, means and quantiles are rounded to `lo + n * step` (at most `hi`); None: not
        rounded.
    statistics
        Some of `count`, `mean`, `min`, `max` and `p1` to `p99`, in the order of publication.
    per_pseudonym
        Whether the individual value of each member is published too.
    """

    name: str
    lo: float
    hi: float
    step: float | None = None
    statistics: tuple[str, ...] = SAFE_STATISTICS
    per_pseudonym: bool = False

    @property
    def decimals(self) -> int:
        """Decimal places that keep twelve digits of the range; the rest is rounding noise."""
        return max(0, _SIGNIFICANT_DIGITS - ceil(log10(max(abs(self.lo), abs(self.hi)))))
