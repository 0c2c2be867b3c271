"""Recorded traces: which device was where and when, from csv and parquet."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.fixes import MOTION
from anonymizer.domain.network import NodeNames
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.tables import reading, text_of_csv
from anonymizer.files.trace_columns import (
    NAME_OF,
    are_numbers,
    checked_columns,
    no_such_column,
    unread_form,
    usual_columns,
    wanted_of,
    with_our_names,
)
from anonymizer.unfolding import (
    UnfoldingError,
    check_csv,
    check_frame,
    check_texts,
    check_unfolding,
    parquet_source,
    polars_source,
)

KNOWN_ENDINGS = (".csv", ".csv.gz", ".parquet")
_ALSO_CSV = (".txt", ".tsv")
_NETWORK = "network"
_MARKS = {";": "semicolons", "\t": "tabs", "|": "|"}
TRACE_SCHEMA = {"device_id": pl.String, "ts": pl.Float64, "lat": pl.Float64, "lon": pl.Float64}


def read_trace(
    path: str | Path,
    *,
    readings: Sequence[str] = (),
    columns: Mapping[str, str] = MappingProxyType({}),
    usual_names: bool = False,
) -> Trace:
    """Read a trace: columns device_id, ts and either lat and lon or node; others are ignored.

    Times are numbers, whose unit follows from their size, or text such as ISO 8601; numbers may
    have decimal commas. Encodings and separators of a csv are found. `Trace.read_as` says what was.

    A file with both coordinates and nodes is read by its coordinates. The readings `heading_deg`
    and `speed_mps` are always read where they are columns: the heading chooses between roads. So is
    `network`, the source of the network of each device, for networks of several.

    Parameters
    ----------
    path
        Ends in .csv, .txt, .tsv (also with .gz) or .parquet.
    columns
        Other names of columns, or their numbers (from 1) in a file without a header: see
        `checked_columns`.
    readings
        More columns to read: numbers that the devices sensed. One that is missing, NaN or
        infinite is no reading; its row is as good as any.
    usual_names
        Whether columns are also found by names such as vehicle_id, time, latitude and longitude,
        where one alone can be meant. `Trace.read_as` says which.

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
    columns = checked_columns(columns)
    frame, notes, taken = _read_frame(path, readings, columns, usual_names=usual_names)
    trace = trace_of(frame, readings=readings, path=path, columns={**columns, **taken})
    if taken:
        notes.append(f"columns {', '.join(f'{key}={name}' for key, name in taken.items())}")
    if "id" in taken and len(trace.device_id) == trace.n_rows > 1:
        who = taken["id"]
        raise InputError(
            f"{path}: column {who} names each row: if these are devices, state --columns id={who}"
        )
    return replace(trace, read_as=(*notes, *trace.read_as))


def trace_of(
    frame: pl.DataFrame,
    *,
    readings: Sequence[str] = (),
    path: Path = Path("trace"),
    columns: Mapping[str, str] = MappingProxyType({}),
    there: Sequence[str] | None = None,
) -> Trace:
    """Return the trace of a data frame, as `read_trace`; `path` is what messages call it.

    `there`: all columns that the caller has, for messages; None: those of the frame.
    """
    try:
        frame = check_frame(frame.select(_wanted(path, there or frame.columns, readings, columns)))
    except UnfoldingError as error:
        raise InputError(f"{path}: {error}") from None
    frame, notes = with_our_names(path, frame, columns)
    ts = frame["ts"].to_numpy()
    ids, n_alike = _devices(path, frame)
    if n_alike:
        notes += (f"{n_alike:,} ids are other writings of others: each is one device",)
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
        read_as=notes,
    )


def ending_of(path: Path) -> str:
    """Return which of the known endings the file of a trace has; raises `InputError` if none."""
    for ending in KNOWN_ENDINGS:
        if path.name.lower().endswith(ending):
            return ending
    raise InputError(f"{path}: a trace ends in {', '.join(KNOWN_ENDINGS)}")


def _read_frame(
    path: Path, readings: Sequence[str], columns: Mapping[str, str], *, usual_names: bool
) -> tuple[pl.DataFrame, list[str], dict[str, str]]:
    """Return the columns that matter, those of a csv as text, and what was found of its form.

    Last, the columns that were found by their usual names.
    """

    def found(there: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        taken = usual_columns(there, columns) if usual_names else {}
        return _wanted(path, there, readings, {**columns, **taken}), taken

    also = "|".join(map(re.escape, _ALSO_CSV))
    name = path.with_name(re.sub(rf"(?i)({also})(\.gz)?$", r".csv\2", path.name))
    if not name.name.lower().endswith(KNOWN_ENDINGS):
        if hint := unread_form(path):
            raise InputError(f"{path}: is no table: {hint}")
        raise InputError(f"{path}: a trace ends in {', '.join((*KNOWN_ENDINGS, *_ALSO_CSV))}")
    form = "parquet" if ending_of(name) == ".parquet" else "csv"
    with reading(path, form):
        if form == "parquet":
            source = parquet_source(path)
            wanted, taken = found(list(pl.read_parquet_schema(source)))
            check_unfolding(path, wanted)
            return check_frame(pl.read_parquet(source, columns=wanted)), [], taken
        check_unfolding(path)
        check_csv(path)
        text = text_of_csv(path)
        notes = [f"is in {text.encoding}"] * bool(text.encoding)
        if text.separator in _MARKS:
            notes.append(f"cells are separated by {_MARKS[text.separator]}")
        read = partial(
            pl.read_csv,
            polars_source(path) if text.data is None else text.data,
            separator=text.separator,
            infer_schema=False,
        )
        if are_numbers(columns):
            frame = read(has_header=False)
            numbers = map(str, range(1, frame.width + 1))
            return frame.rename(dict(zip(frame.columns, numbers, strict=True))), notes, {}
        wanted, taken = found(read(n_rows=0).columns)
        return read(columns=wanted), notes, taken


def _wanted(
    path: Path, there: Sequence[str], readings: Sequence[str], columns: Mapping[str, str]
) -> list[str]:
    """Return the columns to read, under the names that they have in the file."""
    stated = wanted_of(columns)
    has = {NAME_OF[key] for key in columns if key in NAME_OF}
    has |= {"lat", "lon"} if {"latlon", "lonlat"} & columns.keys() else set()
    known = has | set(there)
    by_node = "node" in known and not {"lat", "lon"} <= known
    wanted = ["device_id", "ts", "node"] if by_node else list(TRACE_SCHEMA)
    for name in [*stated, *(name for name in wanted if name not in has)]:
        if name not in there:
            raise no_such_column(path, name, there)
    if unread := [name for name in readings if name not in there]:
        raise InputError(f"{path}: no column {unread[0]} (a declared reading)")
    of_kinds = [_NETWORK] if _NETWORK in there and not by_node else []
    own = [name for name in wanted if name not in has]
    return list(dict.fromkeys([*own, *stated, *readings, *_motion(there), *of_kinds]))


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
            hint = ": write degrees as 60.1699" * (name in {"lat", "lon"})
            raise InputError(
                f"{path}: column {name}: not a number in {n_bad} of {len(text)} rows{hint}"
            )
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


def _devices(path: Path, frame: pl.DataFrame) -> tuple[pl.Series, int]:
    """Return the device of each row as the gateway writes its id, null where there is none.

    And how many distinct ids are other writings of one that is there, too.
    """
    names = _names(path, frame, "device_id")
    said = names.drop_nulls().unique()
    plain = pl.Series([plain_id(each) or None for each in said], dtype=pl.String)
    n_alike = len(said) - plain.null_count() - plain.drop_nulls().n_unique()
    return names if plain.equals(said) else names.replace(said, plain), n_alike


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
