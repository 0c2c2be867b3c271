"""Names of areas and times: where an area is and when a time begins, if its name says so."""

import re
from collections.abc import Sequence
from datetime import UTC
from importlib.util import find_spec

import numpy as np

from anonymizer.audit.foreign.forms.geohashes import is_geohash, middle_of
from anonymizer.codecs.times import instant
from anonymizer.domain.arrays import FloatArray

_LEAST_S, _LEAST_MS = 1e8, 1e11
"""Numbers from which they are unix seconds, and milliseconds."""
_DATE_AND_HOUR = r"^(\d{4}-\d\d-\d\d)[ T](\d{1,2})$"
_DAY = r"^\d{4}-\d\d-\d\d$"
_PLACE = r"^([+-]?\d+\.\d+) ([+-]?\d+\.\d+)$"


def starts_of(names: Sequence[str]) -> FloatArray | None:
    """Return when times begin, unix seconds, shape (n,); None if the name of one does not say."""
    found = [_start(name) for name in names]
    if not found or None in found:
        return None
    return np.array(found, np.float64)


def _start(name: str) -> float | None:
    if re.fullmatch(r"\d+(\.\d*)?", name):
        number = float(name)
        number = number / 1000 if number >= _LEAST_MS else number
        return number if number >= _LEAST_S else None
    if parts := re.match(_DATE_AND_HOUR, name):
        name = f"{parts[1]} {int(parts[2]):02d}:00:00"
    elif re.match(_DAY, name):
        name += " 00:00:00"
    at = instant(name, UTC)
    return None if at is None else at.unix_s


def places_of(names: Sequence[str]) -> FloatArray | None:
    """Return latitude and longitude of the middle of areas in degrees, shape (n, 2); None: unknown.

    Names are both, geohashes, or cells of H3 where its library is installed.
    """
    if not names:
        return None
    if all(pairs := [re.match(_PLACE, name) for name in names]):
        return np.array([[float(each[1]), float(each[2])] for each in pairs if each])
    if all(map(is_geohash, names)) and not all(map(str.isalpha, names)):
        return np.array([middle_of(name) for name in names])
    if find_spec("h3") is None:
        return None
    import h3  # noqa: PLC0415  an extra

    if all(map(h3.is_valid_cell, names)):
        return np.array([h3.cell_to_latlng(name) for name in names])
    return None
