"""FIT, as watches and bicycle computers record rides: its records that have a place and a time.

It is read and not written: what is protected is written as GPX, which whoever takes FIT takes, too.
"""

from pathlib import Path

import polars as pl

from anonymizer.audit.foreign.readers.reader import FileKind, check_size
from anonymizer.errors import InputError
from anonymizer.extras import extra

_DEGREES = 180.0 / 2**31
"""Of a semicircle, the unit of places in FIT."""
_MARK, _MARK_AT = b".FIT", slice(8, 12)


def read(path: Path) -> pl.DataFrame:
    """Return the records of a ride; `_track` is the file.

    Raises
    ------
    MissingExtraError
        If fitdecode is not installed.
    InputError
        If it is no FIT, damaged, or no record has a place and a time.
    """
    check_size(path)
    with extra("fit"):
        import fitdecode  # noqa: PLC0415  an extra
    rows = []
    try:
        with fitdecode.FitReader(path, check_crc=fitdecode.CrcCheck.RAISE) as frames:
            for frame in frames:
                if isinstance(frame, fitdecode.FitDataMessage) and frame.name == "record":
                    names = ("timestamp", "position_lat", "position_long")
                    at, lat, lon = (frame.get_value(name, fallback=None) for name in names)
                    if None not in {at, lat, lon}:
                        rows.append((at.timestamp(), lat * _DEGREES, lon * _DEGREES))
    except (fitdecode.FitError, AttributeError, TypeError):
        raise InputError(f"{path}: is no FIT, or damaged") from None
    if not rows:
        raise InputError(f"{path}: no record has a place and a time")
    frame = pl.DataFrame(rows, schema=["time", "lat", "lon"], orient="row")
    return frame.with_columns(pl.lit(path.stem).alias("_track"))


def _recognizes(path: Path, head: bytes) -> bool:
    return head[_MARK_AT] == _MARK or path.suffix.lower() == ".fit"


READER = FileKind("FIT", _recognizes, read)
