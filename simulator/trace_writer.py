"""Traces that are written batch by batch, to csv and parquet."""

import gzip
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, BinaryIO, Self, cast

import polars as pl

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.files.atomic_write import naming, whole_file
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
    live
        Whether the file is written in its place, and what has come stays if the run fails; else it
        takes its place when it is whole.
    """

    def __init__(self, path: str | Path, *, device_id: Sequence[str], live: bool = False) -> None:
        self._path = Path(path)
        self._ids = pl.Series(device_id, dtype=pl.String)
        self._ending = ending_of(self._path)
        self._live = live
        self._open = ExitStack()
        self._out: BinaryIO
        self._rows: IO[bytes] | gzip.GzipFile

    def __enter__(self) -> Self:
        with naming(self._path):
            self._out = self._open.enter_context(
                self._path.open("wb") if self._live else whole_file(self._path)
            )
            self._rows = self._out
            if self._ending == ".parquet":
                # It has no name, so that nothing is left of it whatever ends the program.
                self._rows = self._open.enter_context(TemporaryFile(dir=self._path.parent))
            elif self._ending == ".csv.gz":
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
        with naming(self._path):
            self._rows.write(frame.write_csv(include_header=False).encode())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with naming(self._path):
            if self._ending == ".parquet" and (kind is None or self._live):
                self._rows.seek(0)
                pl.scan_csv(cast("IO[bytes]", self._rows), schema=TRACE_SCHEMA).sink_parquet(
                    self._out
                )
            self._open.__exit__(kind, error, trace)
