"""GPX 1.0 and 1.1: the points of tracks, by file and track."""

from pathlib import Path
from xml.parsers import expat

import polars as pl

from anonymizer.audit.foreign.readers.reader import FileKind, check_size
from anonymizer.errors import InputError
from anonymizer.networks.markup import parse

_POINTS = frozenset({"trkpt", "rtept", "wpt"})


class _Tracks:
    """What the parser calls: collects the points."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, str, str]] = []
        self._track, self._text = 0, ""
        self._point: list[str] | None = None

    def start(self, name: str, stated: dict[str, str]) -> None:
        self._text = ""
        local = name.rpartition(":")[2]
        if local in {"trk", "rte"}:
            self._track += 1
        elif local in _POINTS:
            self._point = [stated.get("lat", ""), stated.get("lon", ""), ""]

    def text(self, data: str) -> None:
        self._text += data

    def end(self, name: str) -> None:
        local = name.rpartition(":")[2]
        if local == "time" and self._point is not None:
            self._point[2] = self._text.strip()
        elif local in _POINTS and self._point is not None:
            lat, lon, at = self._point
            self.rows.append((self._track, lat, lon, at))
            self._point = None


def read(path: Path) -> pl.DataFrame:
    """Return the points of all tracks that have a time.

    Raises `InputError` if it is no XML, or a piece of it is endless.
    """
    check_size(path)
    tracks = _Tracks()
    parser = expat.ParserCreate()
    parser.StartElementHandler = tracks.start
    parser.EndElementHandler = tracks.end
    parser.CharacterDataHandler = tracks.text
    try:
        with path.open("rb") as file:
            parse(file, parser)
    except expat.ExpatError as error:
        raise InputError(f"{path}: is no XML: see line {error.lineno}") from None
    rows = [row for row in tracks.rows if row[3]]
    if not rows:
        raise InputError(f"{path}: no point has a time")
    track, lat, lon, at = zip(*rows, strict=True)
    return pl.DataFrame(
        {"_track": [f"{path.stem} {each}" for each in track], "time": at, "lat": lat, "lon": lon}
    )


def _recognizes(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".gpx" or b"<gpx" in head


READER = FileKind("GPX", _recognizes, read)
