"""Registries of fixed devices: where each one stands, from a csv file."""

import csv
from pathlib import Path

from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.fixes import Fix, Places, checked_fix
from anonymizer.errors import InputError

_COLUMNS = ("device_id", "lat", "lon")


def read_registry(path: Path) -> Places:
    """Return the places of the devices that a file lists.

    `path`: a csv file in UTF-8 with a header; its columns `device_id`, `lat` and `lon` (WGS84
    degrees) are read, others are ignored.

    Raises `InputError` if the file cannot be read, lacks a column, or has a row without a device or
    with coordinates that are not on the earth, or lists a device twice. The message names the line,
    never what it contains.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _places_in(csv.DictReader(file, strict=True), path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: is not a csv file in UTF-8") from None


def _places_in(rows: "csv.DictReader[str]", path: Path) -> Places:
    header = rows.fieldnames or ()
    if missing := [name for name in _COLUMNS if header.count(name) != 1]:
        raise InputError(f"{path}: must have one column {missing[0]}")
    places: dict[str, tuple[float, float]] = {}
    for row in rows:
        where = f"{path}: line {rows.line_num}"
        device, fix = plain_id(row["device_id"] or ""), _fix_of(row["lat"], row["lon"])
        if not device:
            raise InputError(f"{where}: has no device_id")
        if fix is None:
            raise InputError(f"{where}: has no valid lat and lon")
        if device in places:
            raise InputError(f"{where}: lists a device again")
        places[device] = fix.lat, fix.lon
    return places


def _fix_of(lat: str | None, lon: str | None) -> Fix | None:
    try:
        fix = checked_fix(float(lat or ""), float(lon or ""))
    except ValueError:
        return None
    return fix if isinstance(fix, Fix) else None
