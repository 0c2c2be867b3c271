"""Recorded traces: which device was where and when, from csv and parquet."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.fixes import MOTION
from anonymizer.domain.network import NodeNames
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.tables import reading
from anonymizer.unfolding import (
    UnfoldingError,
    check_csv,
    check_frame,
    check_texts,
    check_unfolding,
    parquet_source,
)

KNOWN_ENDINGS = (".csv", ".csv.gz", ".parquet")
_NETWORK = "network"
TRACE_SCHEMA = {"device_id": pl.String, "ts": pl.Float64, "lat": pl.Float64, "lon": pl.Float64}


def read_trace(path: str | Path, *, readings: Sequence[str] = ()) -> Trace:
    """Read a trace: columns device_id, ts and either lat and lon or node; others are ignored.

    A file with both coordinates and nodes is read by its coordinates. The readings `heading_deg`
    and `speed_mps` are always read where they are columns: the heading chooses between roads. So is
    `network`, the source of the network of each device, for networks of several.

    Parameters
    ----------
    path
        Ends in .csv, .csv.gz or .parquet.
    readings
        More columns to read: numbers that the devices sensed. One that is missing, NaN or
        infinite is no reading; its row is as good as any.

    Raises
    ------
    InputError
        If the file is missing or damaged, lacks a column, holds what cannot be understood, or is
        too large once it is unpacked (see `check_unfolding`).
        The message gives the number of rows, never their content.

    Notes
    -----
    O(n log n), in memory: about 0.4 s for a million rows.
    """
    path = Path(path)
    return trace_of(_read_frame(path, readings), readings=readings, path=path)


def trace_of(
    frame: pl.DataFrame, *, readings: Sequence[str] = (), path: Path = Path("trace")
) -> Trace:
    """Return the trace of a data frame, as `read_trace`; `path` is what messages call it."""
    try:
        frame = check_frame(frame.select(_wanted(path, frame.columns, readings)))
    except UnfoldingError as error:
        raise InputError(f"{path}: {error}") from None
    ts = _numbers(path, frame, "ts")
    ids = _names(path, frame, "device_id")
    usable = np.isfinite(ts) & ids.is_not_null().to_numpy()
    node = None
    lat = lon = np.full(len(ts), np.nan)
    if "node" in frame.columns:
        names = _names(path, frame, "node")
        usable &= names.is_not_null().to_numpy()
    else:
        names = None
        lat, lon = _numbers(path, frame, "lat"), _numbers(path, frame, "lon")
        usable &= np.isfinite(lat) & np.isfinite(lon)
    rows = _in_time_order(ts, usable)
    read = dict.fromkeys([*readings, *_motion(frame.columns)])
    if names is not None:
        node = _node_names(names.gather(rows))
    ids = ids.gather(rows)
    distinct = ids.unique(maintain_order=True)
    return Trace(
        device_id=tuple(distinct),
        device_of=ids.cast(pl.Enum(distinct)).to_physical().to_numpy().astype(np.int64),
        ts=ts[rows],
        lat=lat[rows],
        lon=lon[rows],
        node=node,
        n_unusable=len(usable) - len(rows),
        readings={name: _readings(path, frame, name)[rows] for name in read},
        network=_sources(frame, rows),
    )


def ending_of(path: Path) -> str:
    """Return which of the known endings the file of a trace has; raises `InputError` if none."""
    for ending in KNOWN_ENDINGS:
        if path.name.lower().endswith(ending):
            return ending
    raise InputError(f"{path}: a trace ends in {', '.join(KNOWN_ENDINGS)}")


def _read_frame(path: Path, readings: Sequence[str]) -> pl.DataFrame:
    """Return the columns that matter; those of a csv as text."""
    form = "parquet" if ending_of(path) == ".parquet" else "csv"
    with reading(path, form):
        if form == "parquet":
            source = parquet_source(path)
            wanted = _wanted(path, list(pl.read_parquet_schema(source)), readings)
            check_unfolding(path, wanted)
            return check_frame(pl.read_parquet(source, columns=wanted))
        check_unfolding(path)
        check_csv(path)
        header = pl.read_csv(path, n_rows=0, infer_schema=False)
        wanted = _wanted(path, header.columns, readings)
        return pl.read_csv(path, columns=wanted, infer_schema=False)


def _wanted(path: Path, columns: list[str], readings: Sequence[str]) -> list[str]:
    by_node = "node" in columns and not {"lat", "lon"} <= set(columns)
    wanted = ["device_id", "ts", "node"] if by_node else list(TRACE_SCHEMA)
    missing = [name for name in wanted if name not in columns]
    if missing:
        hint = "" if by_node else " (columns: device_id, ts, and lat and lon, or node)"
        raise InputError(f"{path}: no column {missing[0]}{hint}")
    if unread := [name for name in readings if name not in columns]:
        raise InputError(f"{path}: no column {unread[0]} (a declared reading)")
    of_kinds = [_NETWORK] if _NETWORK in columns and not by_node else []
    return list(dict.fromkeys([*wanted, *readings, *_motion(columns), *of_kinds]))


def _motion(columns: Sequence[str]) -> list[str]:
    return [name for name in MOTION if name in columns]


def _sources(frame: pl.DataFrame, rows: IntArray) -> NDArray[np.str_] | None:
    """Return the network of each row, where the trace tells it; empty where it is missing."""
    if _NETWORK not in frame.columns:
        return None
    texts = frame[_NETWORK].cast(pl.String, strict=False).fill_null("").gather(rows).to_numpy()
    check_texts(texts)
    return texts.astype(np.str_)


def _numbers(path: Path, frame: pl.DataFrame, name: str) -> FloatArray:
    """Return a column as floats, NaN where it is missing."""
    column = frame[name]
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        column = text.cast(pl.Float64, strict=False)
        n_bad = int((column.is_null() & (text != "")).sum())
        if n_bad:
            raise InputError(f"{path}: column {name}: not a number in {n_bad} of {len(text)} rows")
    elif not column.dtype.is_numeric():
        raise InputError(f"{path}: column {name}: must hold numbers, not {column.dtype}")
    return column.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _readings(path: Path, frame: pl.DataFrame, name: str) -> FloatArray:
    """Return a column as finite floats, NaN where there is no reading."""
    value = _numbers(path, frame, name)
    return np.where(np.isfinite(value), value, np.nan)


def _names(path: Path, frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column as text, null where it is missing or empty."""
    column = frame[name]
    if not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise InputError(f"{path}: column {name}: must hold text or integers, not {column.dtype}")
    return column.cast(pl.String).replace("", None)


def _node_names(names: pl.Series) -> NodeNames:
    integers = names.cast(pl.Int64, strict=False)
    # As for the nodes of networks: 007 is text, since it could not be distinguished from 7.
    if integers.null_count() == 0 and (integers.cast(pl.String) == names).all():
        return integers.to_numpy()
    texts = names.to_numpy()
    check_texts(texts)
    return texts.astype(np.str_)


def _in_time_order(ts: FloatArray, usable: BoolArray) -> IntArray:
    rows: IntArray = np.flatnonzero(usable)
    return rows[np.argsort(ts[rows], kind="stable")]
