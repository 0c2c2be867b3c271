"""Parts of the time by which traffic is told: hours of the day, weekdays, months, days."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from anonymizer.client.tables import Column
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError

_FORM_OF = {"hour": "%H", "weekday": "%u", "month": "%m", "day": "%Y-%m-%d"}


def parts_of_time(start_s: FloatArray, by: str, tz: str) -> tuple[Column, IntArray]:
    """Return the parts in which some times are, in order, and the part of each, shape (n,).

    Parameters
    ----------
    start_s
        Unix seconds, shape (n,).
    by
        `hour`, `weekday` (1 is Monday), `month` or `day`.
    tz
        Time zone of the city, such as `Europe/Helsinki`.

    Raises
    ------
    InputError
        If `by` is none of these.
    """
    if by not in _FORM_OF:
        raise InputError(f"pattern: by must be {', '.join(_FORM_OF)}")
    zone, form = ZoneInfo(tz), _FORM_OF[by]
    said = [datetime.fromtimestamp(at, UTC).astimezone(zone).strftime(form) for at in start_s]
    names, part_of = np.unique(np.array(said, np.str_), return_inverse=True)
    return names if by == "day" else names.astype(np.int64), part_of.ravel()
