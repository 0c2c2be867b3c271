"""`[[readings]]`: what is published of the devices' readings."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from anonymizer.domain.readings import SAFE_STATISTICS, ReadingAttribute
from anonymizer.settings.base import FieldName, Group, NotNegative, like

Bound = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Statistic = Annotated[
    str,
    like(
        r"^(count|mean|min|max|each|p[1-9][0-9]?)$",
        "must be count, mean, min, max, p1 to p99, or each",
    ),
]

_EACH = "each"
_STEPS_OF_A_RANGE = 100
"""Steps to which readings are rounded by default."""


class ReadingSettings(Group):
    """One `[[readings]]` table: an attribute that is published. Others never leave the gateway."""

    name: FieldName
    """Its name in the codec of the input, for example `speed_mps`; see the codecs."""
    lo: Bound
    hi: Bound
    """Values outside `lo` to `hi` are clamped, and counted."""
    step: NotNegative | None = None
    """Values, means and quantiles are rounded to this. The coarser it is, the less the difference
    of two releases of one group reveals. None: a hundredth of the range; 0: no rounding."""
    statistics: Annotated[tuple[Statistic, ...], Field(min_length=1)] = SAFE_STATISTICS
    """A choice of `count`, `mean`, `min`, `max`, and `p1` to `p99`. `min` and `max` each publish
    the value of one device. `each`: every device's own value is published with its pseudonym. This
    can undo the anonymity; the audit measures by how much."""

    @field_validator("statistics")
    @classmethod
    def _each_once(cls, statistics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(statistics)) < len(statistics):
            raise ValueError("must name each statistic once")
        if statistics == (_EACH,):
            raise ValueError("must name a statistic beside each")
        return statistics

    @model_validator(mode="after")
    def _range_fits(self) -> Self:
        if not self.lo < self.hi:
            raise ValueError("lo must be below hi")
        if self.step is not None and self.step > self.hi - self.lo:
            raise ValueError("step must not exceed hi - lo")
        return self

    @property
    def attribute(self) -> ReadingAttribute:
        """The attribute as the algorithms take it."""
        step = (self.hi - self.lo) / _STEPS_OF_A_RANGE if self.step is None else self.step
        kept = tuple(name for name in self.statistics if name != _EACH)
        return ReadingAttribute(
            self.name, self.lo, self.hi, step or None, kept, per_pseudonym=self.per_pseudonym
        )

    @property
    def per_pseudonym(self) -> bool:
        """Whether each device's own value is published with its pseudonym."""
        return _EACH in self.statistics


def _names_differ(readings: tuple[ReadingSettings, ...]) -> tuple[ReadingSettings, ...]:
    if len({reading.name for reading in readings}) < len(readings):
        raise ValueError("must declare each name once")
    return readings


DeclaredReadings = Annotated[tuple[ReadingSettings, ...], AfterValidator(_names_differ)]
"""All `[[readings]]` tables."""
