"""Size of a compressed file once it is unpacked, found in little memory before it is read.

A file of a few kilobytes may unpack to gigabytes, whether by a compressor, by repetition in a
column, or by both.
"""

import bz2
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from glob import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from anonymizer.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MAX_BYTES = 2 * 1024**3
"""Compressed files that unpack to more are refused."""
_STEP_BYTES = 1 << 20
_PIECE_BYTES = 256 << 20
_MAX_FOOTER_BYTES = 16 << 20
_MAX_BLOB_BYTES = 32 << 20
"""By the specification of the pbf format."""
_MAX_HEADER_BYTES = 16 << 20
_MAX_COLUMNS = 16_384
"""As spreadsheets have: a million took 10 GiB."""
_BYTES_OF_CELL, _MAX_BYTES_OF_BLANKS = 16, 1 << 30
_SEPARATORS = (b",", b";", b"\t", b"|")
_MAX_DEPTH = 16
_BYTE_ARRAY = 6
_SCHEMA, _NAME, _CONVERTED, _INTERVAL = 2, 4, 6, 21
"""Fields of a footer and of a column in it, and the type of intervals of SQL."""
_INTERVAL_MARK = b"\x25\x2a"
"""The field of the converted type behind the name, and `_INTERVAL`."""
_FIELDS_ON = (_CONVERTED - _NAME) << 4
_WIDTH_OF = {0: 1, 1: 4, 2: 8, 3: 8, 4: 4, 5: 8, _BYTE_ARRAY: 16, 7: 16}
"""Bytes of one value in memory by the physical type of parquet, without the texts themselves."""


class UnfoldingError(InputError):
    """A file is too large once it is unpacked, or its size is unknown; no file is named."""


def check_unfolding(
    path: Path, columns: Collection[str] | None = None, *, max_bytes: int = MAX_BYTES
) -> None:
    """Check the size of a gzip, bzip2, pbf or parquet file once it is unpacked.

    Parameters
    ----------
    path
        The file; the ending of its name says how it is packed. Others are accepted.
    columns
        Columns of a parquet file that will be read. None: all.

    Raises
    ------
    UnfoldingError
        If the file unpacks to more than `max_bytes`, or its index is damaged.

    Notes
    -----
    The sizes of pbf and parquet files are those that they state. Readers of pbf rely on the same
    figures; those of parquet do not.
    """
    sizes = _SIZES_OF.get(path.suffix.lower())
    if sizes is None:
        return
    n_bytes = 0
    with path.open("rb") as file:
        for size in sizes(file, columns):
            n_bytes += size
            _check(n_bytes, max_bytes)
    if sizes is _parquet:
        _check_categories(path, columns, max_bytes)


_PACKED = {
    b"\x1f\x8b": "is packed with gzip: let its name end in .gz",
    b"BZh[1-9]1AY&SY": "is packed with bzip2: let its name end in .bz2",
    b"PK\3\4": "is a zip archive: unpack it",
    b"\\x28\xb5/\xfd": "is packed with zstandard: unpack it",
    b"\xfd7zXZ": "is packed with xz: unpack it",
    b"PAR1": "is a parquet file: let its name end in .parquet",
}


def packing(head: bytes) -> str:
    """Return what to do with a file whose name does not say that it is packed; empty: it is not.

    `head`: its first bytes, ten at least.
    """
    return next((said for magic, said in _PACKED.items() if re.match(magic, head)), "")


def check_csv(path: Path) -> None:
    """Check the lines of a csv, which may be packed with gzip; see `check_lines`."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        check_lines(cast("BinaryIO", file))


def check_lines(file: BinaryIO) -> None:
    """Check that the lines of a csv take no more memory as a table than they say.

    Raises `UnfoldingError` if the first line is endless or names more columns than a spreadsheet
    has, or if lines with fewer cells than that would take more than a GiB: each cell takes its
    place.
    """
    header = file.readline(_MAX_HEADER_BYTES)
    if len(header) == _MAX_HEADER_BYTES:
        raise UnfoldingError(f"has a first line longer than {_MAX_HEADER_BYTES >> 20} MiB")
    n_columns = 1 + max(header.count(mark) for mark in _SEPARATORS)
    if n_columns > _MAX_COLUMNS:
        raise UnfoldingError(f"has more than {_MAX_COLUMNS:,} columns")
    n_bytes = n_lines = 0
    while part := file.read(_STEP_BYTES):
        n_bytes += len(part)
        n_lines += part.count(b"\n")
    n_cells = n_lines * n_columns
    if n_cells > n_bytes and n_cells * _BYTES_OF_CELL > _MAX_BYTES_OF_BLANKS:
        raise UnfoldingError("has too many lines without cells")


def check_frame(frame: "pl.DataFrame", *, max_bytes: int = MAX_BYTES) -> "pl.DataFrame":
    """Return a frame if its texts, which may share their memory, do not take too much when copied.

    Texts of categories are shared by all their rows, and count as often as they are used.

    Raises `UnfoldingError` if the frame without sharing takes more than `max_bytes`.
    """
    n_bytes = int(frame.estimated_size())
    for column in frame:
        if hasattr(column.dtype, "categories"):
            n_bytes += int(column.cat.len_bytes().sum() or 0)
        elif column.dtype.is_nested() and "categories" in repr(column.dtype).lower():
            raise UnfoldingError("has categories inside of lists or structures")
        _check(n_bytes, max_bytes)
    return frame


def _check_categories(path: Path, columns: Collection[str] | None, max_bytes: int) -> None:
    """Check the size of texts that rows of a parquet file share.

    polars copies each to every row before it finds the categories. So they are measured first, in
    pieces that are small even if a whole dictionary is one text.
    """
    import polars as pl  # noqa: PLC0415  a second of start, for who reads no table

    source = parquet_source(path)
    schema = pl.read_parquet_schema(source)
    columns = [
        name
        for name, dtype in schema.items()
        if hasattr(dtype, "categories") and (columns is None or name in columns)
    ]
    if not columns:
        return
    with path.open("rb") as file:
        packed = max(_parquet(file, columns, rows=False), default=0)
    step, n_bytes = max(1, _PIECE_BYTES // max(packed, 1)), 0
    n_rows = int(pl.scan_parquet(source).select(pl.len()).collect().item())
    for first in range(0, n_rows, step):
        piece = pl.scan_parquet(source).select(columns).slice(first, step).collect()
        n_bytes += sum(int(column.cat.len_bytes().sum() or 0) for column in piece)
        _check(n_bytes, max_bytes)


def check_texts(texts: Collection[str], *, max_bytes: int = MAX_BYTES) -> None:
    """Check the size of a numpy array of texts, in which each takes the place of the longest.

    Raises `UnfoldingError` if it takes more than `max_bytes`.
    """
    check_width(len(texts), max(map(len, texts), default=0), max_bytes=max_bytes)


def check_width(n: int, n_chars: int, *, max_bytes: int = MAX_BYTES) -> None:
    """Check the size of a numpy array of `n` texts, of which the longest has `n_chars`.

    Raises `UnfoldingError` if it takes more than `max_bytes`.
    """
    _check(4 * n * n_chars, max_bytes)


def _check(n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise UnfoldingError(f"unpacks to more than {max_bytes / 1024**3:g} GiB")


def _packed(file: BinaryIO, _: Collection[str] | None) -> Iterator[int]:
    """Yield the sizes of parts of a gzip or bzip2 file."""
    is_gzip = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    try:
        with gzip.open(file) if is_gzip else bz2.open(file) as unpacked:
            while part := unpacked.read(_STEP_BYTES):
                yield len(part)
    except (OSError, EOFError, zlib.error):
        return  # the reader of the file finds the same fault


def _pbf(file: BinaryIO, _: Collection[str] | None) -> Iterator[int]:
    """Yield the size of each blob of an OpenStreetMap file."""
    try:
        while length := file.read(4):
            header = dict(_fields(_exactly(file, int.from_bytes(length, "big"))))
            blob = _exactly(file, header[3])
            fields = dict(_fields(blob))
            yield max(fields.get(2, 0), len(blob))
    except (KeyError, IndexError, TypeError):
        raise UnfoldingError("is not well-formed pbf") from None


def _exactly(file: BinaryIO, n_bytes: int) -> bytes:
    if n_bytes > _MAX_BLOB_BYTES:
        raise IndexError
    content = file.read(n_bytes)
    if len(content) < n_bytes:
        raise IndexError
    return content


def _fields(message: bytes) -> Iterator[tuple[int, int]]:
    """Yield number and value of the fields of a protobuf message; of bytes, their length."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        if key & 7 == 2:
            at += value
        elif key & 7:
            raise IndexError
        yield key >> 3, value


def _parquet(
    file: BinaryIO, columns: Collection[str] | None, *, rows: bool = True
) -> Iterator[int]:
    """Yield the size of each column chunk, from the footer; without `rows` as it is packed."""
    content = parquet_footer(file)
    try:
        footer = Thrift(content).struct()
        for group in footer.get(4, ()):
            for chunk in group[1]:
                yield _chunk_bytes(chunk[3], columns, rows=rows)
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnfoldingError("is not well-formed parquet") from None


def polars_source(path: Path) -> Path | BytesIO:
    """Return what polars can read: the file, or its bytes where its name is no UTF-8.

    Python reads such a name where the locale is not UTF-8 (`LC_ALL=C`), too; polars does not, and
    takes brackets, `*` and `?` in a name for a pattern unless they are escaped.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return BytesIO(path.read_bytes())
    return Path(escape(str(path)))


def parquet_source(path: Path) -> Path | BytesIO:
    """Return what polars can read: the file, or a copy in which intervals of SQL are 12 bytes.

    Such a type stops polars before it knows which columns are asked for.

    Raises `UnfoldingError` if the footer is damaged.
    """
    with path.open("rb") as file:
        footer = parquet_footer(file)
        elements = Thrift(footer).struct().get(_SCHEMA, ())
        names = [each[_NAME] for each in elements if each.get(_CONVERTED) == _INTERVAL]
        if not names:
            return polars_source(path)
        file.seek(0)
        whole = file.read()
    for name in names:
        before, _, rest = footer.partition(name + _INTERVAL_MARK)
        # Fields are numbered by their distance to the one before; 0 ends them.
        after = rest[:1] if rest[:1] == b"\0" else bytes([rest[0] + _FIELDS_ON])
        footer = before + name + after + rest[1:]
    content = whole[: -8 - int.from_bytes(whole[-8:-4], "little")]
    return BytesIO(content + footer + len(footer).to_bytes(4, "little") + whole[-4:])


def parquet_footer(file: BinaryIO) -> bytes:
    """Return the footer of a parquet file; `UnfoldingError` if there is none."""
    file.seek(0, 2)
    n_bytes = file.tell()
    file.seek(max(0, n_bytes - 8))
    n_footer, magic = int.from_bytes(file.read(4), "little"), file.read(4)
    if magic != b"PAR1" or n_footer > min(n_bytes - 8, _MAX_FOOTER_BYTES):
        raise UnfoldingError("is not well-formed parquet")
    file.seek(n_bytes - 8 - n_footer)
    return file.read(n_footer)


def _chunk_bytes(meta: Mapping[int, Any], columns: Collection[str] | None, *, rows: bool) -> int:
    if columns is not None and meta[3][0].decode() not in columns:
        return 0
    packed, n_values, kind = int(meta[6]), int(meta[5]), int(meta[1])
    values = n_values * _WIDTH_OF[kind] * rows
    return packed + values if kind == _BYTE_ARRAY else max(packed, values)


class Thrift:
    """Reader of the compact protocol of Apache Thrift; fields are known by their numbers."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._depth = 0

    def struct(self) -> dict[int, Any]:
        """Read a struct."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = self._value(head & 15, in_list=False)
        return fields

    def _value(self, kind: int, *, in_list: bool) -> Any:  # noqa: ANN401  by the content
        if kind in {1, 2}:  # a boolean is its own type, except in lists
            return self._byte() == 1 if in_list else kind == 1
        if kind == 3:
            return self._byte()
        if kind in {4, 5, 6}:
            return self._signed()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind not in {9, 10, 12}:
            raise ValueError(kind)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError(kind)
        value = self.struct() if kind == 12 else self._list()
        self._depth -= 1
        return value

    def _list(self) -> list[Any]:
        head = self._byte()
        n = head >> 4 if head >> 4 < 15 else self._unsigned()
        if n > len(self._content):  # an element takes at least one byte
            raise ValueError(n)
        return [self._value(head & 15, in_list=True) for _ in range(n)]

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _bytes(self, n: int) -> bytes:
        self._at += n
        if self._at > len(self._content):
            raise IndexError
        return self._content[self._at - n : self._at]

    def _unsigned(self) -> int:
        value, self._at = _varint(self._content, self._at)
        return value

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, 7 bits a byte, and the place after it."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise IndexError


_SIZES_OF: Mapping[str, Callable[[BinaryIO, Collection[str] | None], Iterator[int]]] = {
    ".gz": _packed,
    ".bz2": _packed,
    ".pbf": _pbf,
    ".parquet": _parquet,
}
