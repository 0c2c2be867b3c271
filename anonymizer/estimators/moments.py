"""Dates and times as quasi-identifiers of estimators: as numbers, and back."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, FloatArray

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Clock:
    """How the moments of a column are numbers: dates in days, times in microseconds.

    Attributes
    ----------
    has_time
        Whether they are times, and not dates.
    zone
        Their time zone; None: they have none.
    """

    has_time: bool
    zone: tzinfo | None = None

    @classmethod
    def of(cls, column: NDArray[Any]) -> Self | None:
        """Return the clock of a column without missing values; None: it has no moments."""
        if column.dtype.kind == "M":
            return cls(has_time=True)
        if column.dtype.kind != "O" or not len(column):
            return None
        if all(isinstance(cell, datetime) for cell in column):
            return cls(has_time=True, zone=column[0].tzinfo)
        if all(isinstance(cell, date) and not isinstance(cell, datetime) for cell in column):
            return cls(has_time=False)
        return None

    def numbers(self, column: NDArray[Any], lacks: BoolArray, name: str) -> FloatArray:
        """Return the numbers of a column, NaN where it lacks a value.

        Raises
        ------
        ValueError
            If a cell is no moment of this kind. The error does not contain it.
        """
        found = np.full(len(column), np.nan)
        if column.dtype.kind == "M" and self == Clock(has_time=True):
            found[~lacks] = column[~lacks].astype("datetime64[us]").astype(np.int64)
            return found
        try:
            found[~lacks] = [self._number(cell) for cell in column[~lacks].astype(object)]
        except (TypeError, AttributeError):
            kind = "times" if self.has_time else "dates"
            raise ValueError(f"column {name} mixes {kind} with something else") from None
        return found

    def moments(self, number: FloatArray) -> NDArray[Any]:
        """Return the moments of numbers, rounded down; None where a number is NaN."""
        found = np.full(len(number), None, object)
        for i in np.flatnonzero(~np.isnan(number)).tolist():
            found[i] = self._moment(int(number[i] // 1))
        return found

    def _number(self, cell: Any) -> float:  # noqa: ANN401  a date or a time
        if not self.has_time:
            return float((cell - date(1970, 1, 1)) / _DAY)
        return float((cell - self._epoch) / _MICROSECOND)

    def _moment(self, number: int) -> date | datetime:
        if not self.has_time:
            return date(1970, 1, 1) + number * _DAY
        moment = self._epoch + number * _MICROSECOND
        return moment if self.zone is None else moment.astimezone(self.zone)

    @property
    def _epoch(self) -> datetime:
        return datetime(1970, 1, 1, tzinfo=None if self.zone is None else UTC)
