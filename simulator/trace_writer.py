"""Traces that are written batch by batch, to csv and parquet."""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self, cast

import polars as pl

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.errors import InputError
from anonymizer.files.traces import TRACE_SCHEMA, ending_of


class TraceWriter:
    """A trace that is written batch by batch, in constant memory.

    Equal batches give equal bytes. A parquet file is made from a csv at the end, because its
    columns are only known then.

    Parameters
    ----------
    path
        Ends in .csv, .csv.gz or .parquet.
    device_id
        Names of the devices that `write` speaks of by index.
    """

    def __init__(self, path: str | Path, *, device_id: Sequence[str]) -> None:
        self._path = Path(path)
        self._ids = pl.Series(device_id, dtype=pl.String)
        self._ending = ending_of(self._path)
        self._open = ExitStack()
        self._rows: IO[bytes] | gzip.GzipFile

    def __enter__(self) -> Self:
        with _writing(self._path):
            if self._ending == ".parquet":
                self._path.touch()  # say now, not after the run, that it cannot be written
                # It has no name, so that nothing is left of it whatever ends the program.
                self._rows = self._open.enter_context(TemporaryFile(dir=self._path.parent))
            else:
                self._rows = self._open.enter_context(self._path.open("wb"))
            if self._ending == ".csv.gz":
                # No name and no time in the header: equal traces are equal files.
                self._rows = self._open.enter_context(
                    gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._rows, mtime=0)
                )
            self._rows.write(b"device_id,ts,lat,lon\n")
        return self

    def write(self, device: IntArray, ts: FloatArray, lat: FloatArray, lon: FloatArray) -> None:
        """Append rows: device index, unix seconds, degrees; all of shape (n,)."""
        frame = pl.DataFrame(
            {"device_id": self._ids.gather(device), "ts": ts, "lat": lat, "lon": lon}
        )
        with _writing(self._path):
            self._rows.write(frame.write_csv(include_header=False).encode())

    def __exit__(self, *exc_info: object) -> None:
        with _writing(self._path), self._open:
            if self._ending == ".parquet":
                self._rows.seek(0)
                pl.scan_csv(cast("IO[bytes]", self._rows), schema=TRACE_SCHEMA).sink_parquet(
                    self._path
                )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
