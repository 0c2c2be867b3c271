"""Declared readings: what may be published of the values of sensors, and how coarsely."""

from dataclasses import dataclass
from math import ceil, log10

SAFE_STATISTICS = ("count", "mean", "p25", "p50", "p75")
"""Those that depend on several members each."""
_SIGNIFICANT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class ReadingAttribute:
    """A declared reading: only declared readings may be published."""

    name: str
    """Its name, as returned by the codecs."""
    lo: float
    hi: float
    """`lo`, `hi`: range to which values are clamped first; finite, lo < hi."""
    step: float | None = None
    """Values, means and quantiles are rounded to `lo + n * step` (at most `hi`); None: not
    rounded."""
    statistics: tuple[str, ...] = SAFE_STATISTICS
    """Some of `count`, `mean`, `min`, `max` and `p1` to `p99`, in the order of publication."""
    per_pseudonym: bool = False
    """Whether the individual value of each member is published too."""

    @property
    def decimals(self) -> int:
        """Decimal places that keep twelve digits of the range; the rest is rounding noise."""
        return max(0, _SIGNIFICANT_DIGITS - ceil(log10(max(abs(self.lo), abs(self.hi)))))
