"""Readers, forms and attacks for releases of others, in the order in which they are tried."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

import polars as pl

from anonymizer.audit.foreign.attack import ForeignAttack
from anonymizer.audit.foreign.forms.form import OpenQuestion, ReleaseForm, check_stated
from anonymizer.audit.foreign.readers.reader import HEAD_BYTES, FileKind
from anonymizer.audit.foreign.release import AnyRelease
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.files.trace_columns import names_told

_ROOM = "anonymizer.audit.foreign"
READERS = (
    "readers.transit_feeds:GTFS",
    "readers.transit_feeds:GBFS",
    "readers.recordings:READER",
    "readers.geojson:READER",
    "readers.gpx:READER",
    "readers.fit_rides:READER",
    "readers.recordings:ARRAY",
    "readers.text_tables:READER",
)
FORMS = (
    "forms.road_regions:FORM",
    "forms.wide_counts:FORM",
    "forms.area_counts:FORM",
    "forms.h3_cells:FORM",
    "forms.geohashes:FORM",
    "forms.trip_tables:FORM",
    "forms.plain_points:FORM",
)
ATTACKS = (
    "attacks.trip_ends:HOMES",
    "attacks.trip_ends:HOLES",
    "attacks.road_offsets:ATTACK",
    "attacks.four_points:ATTACK",
    "attacks.histories:ATTACK",
    "attacks.relinking:ATTACK",
    "attacks.following:ATTACK",
    "attacks.nights:ATTACK",
    "attacks.joining:ATTACK",
    "attacks.following:OF_RUNS",
    "attacks.struck_out:ATTACK",
    "attacks.struck_neighbours:ATTACK",
    "attacks.lone_changes:ATTACK",
    "attacks.presence:ATTACK",
)


def readers() -> list[FileKind]:
    """Return the kinds of files."""
    return [resolve_name(f"{_ROOM}.{each}") for each in READERS]


def forms() -> list[ReleaseForm]:
    """Return the forms."""
    return [resolve_name(f"{_ROOM}.{each}") for each in FORMS]


def attacks() -> list[ForeignAttack]:
    """Return the attacks."""
    return [resolve_name(f"{_ROOM}.{each}") for each in ATTACKS]


def read_files(paths: Sequence[Path]) -> pl.DataFrame:
    """Return the rows of some files of one kind, one below the other.

    Raises `InputError` if one is missing, of no known kind, damaged, or of another kind than the
    first.
    """
    frames, kinds = [], set()
    for path in paths:
        reader = _reader_of(path)
        kinds.add(reader.name)
        frames.append(reader.read(path).with_columns(pl.lit(path.name).alias("_file")))
    if len(kinds) > 1:
        raise InputError(f"files of several kinds: {', '.join(sorted(kinds))}")
    frame = pl.concat(frames, how="diagonal_relaxed")
    if len(paths) == 1 and "_track" not in frame.columns:
        frame = frame.drop("_file")
    return frame


def _reader_of(path: Path) -> FileKind:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    for reader in readers():
        if reader.recognizes(path, head):
            return reader
    known = ", ".join(reader.name for reader in readers())
    raise InputError(f"{path}: is none of {known}")


def recognized(path: Path, frame: pl.DataFrame, stated: Mapping[str, str]) -> ReleaseForm:
    """Return the form of a table.

    Raises `InputError` if it has none.
    """
    for form in forms():
        if form.recognizes(frame, stated):
            return form
    known = ", ".join(form.name for form in forms())
    raise InputError(
        f"{path}: is none of {known}: state which of {names_told(frame.columns)} are id, time, lat "
        "and lon, as --columns id=...,time=...,lat=...,lon=..."
    )


def read_foreign(
    paths: Sequence[Path],
    *,
    stated: Mapping[str, str],
    network: RoadNetwork | None,
    answer: Callable[[OpenQuestion], str] | None = None,
) -> AnyRelease:
    """Return the release in some files.

    Parameters
    ----------
    stated
        Columns by what they are: id, time, lat, lon, cell, area, count.
    answer
        Asks somebody; None: there is nobody to ask.

    Raises
    ------
    InputError
        If the files are of no known form, lack a column that is stated, or a question is open.
    """
    frame = read_files(paths)
    check_stated(paths[0], frame, stated)
    form = recognized(paths[0], frame, stated)
    question = form.asks(frame, stated)
    if question is not None:
        if answer is None:
            choices = ", ".join(f"{name} ({means})" for name, means in question.choices.items())
            raise InputError(
                f"{paths[0]}: {question.words} State --columns {question.key}=..., one of {choices}"
            )
        stated = {**stated, question.key: answer(question)}
    return form.read(paths[0], frame, stated, network)
