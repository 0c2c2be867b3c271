"""What of the devices' readings is published, and how coarsely."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from anonymizer.algorithms.positions.readings import SAFE_STATISTICS, Attribute
from anonymizer.settings.group import Group

Bound = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Statistic = Annotated[str, Field(pattern=r"^(count|mean|min|max|p[1-9][0-9]?)$")]


class ReadingSettings(Group):
    """One `[[readings]]` table: an attribute that may leave the gateway. No table, no reading."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """As the codec of the input names it, for example `speed_mps`; see each codec."""
    lo: Bound
    hi: Bound
    """Values outside `lo` to `hi` are clamped, and counted."""
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Values, means and quantiles are rounded to this. The coarser, the less two releases
    of one group tell by their difference. None: no rounding."""
    statistics: Annotated[tuple[Statistic, ...], Field(min_length=1)] = SAFE_STATISTICS
    """Of `count`, `mean`, `min`, `max`, and `p1` to `p99`. `min` and `max` are some
    device's own values, for all to see."""
    per_pseudonym: bool = False
    """Whether each device's own value is published beside its pseudonym. It can undo the
    anonymity: let the audit measure by how much."""

    @field_validator("statistics")
    @classmethod
    def _each_once(cls, statistics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(statistics)) < len(statistics):
            raise ValueError("must name each statistic once")
        return statistics

    @model_validator(mode="after")
    def _range_fits(self) -> Self:
        if not self.lo < self.hi:
            raise ValueError("lo must be below hi")
        if self.step is not None and self.step > self.hi - self.lo:
            raise ValueError("step must not exceed hi - lo")
        return self

    @property
    def attribute(self) -> Attribute:
        """What the algorithms know of it."""
        return Attribute(**self.model_dump())


def _names_differ(readings: tuple[ReadingSettings, ...]) -> tuple[ReadingSettings, ...]:
    if len({reading.name for reading in readings}) < len(readings):
        raise ValueError("must declare each name once")
    return readings


DeclaredReadings = Annotated[tuple[ReadingSettings, ...], AfterValidator(_names_differ)]
"""All `[[readings]]` tables."""
