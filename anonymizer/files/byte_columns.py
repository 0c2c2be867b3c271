"""Columns of bytes and of UUIDs as text: in UTF-8, as UUIDs are written, or in hexadecimal."""

from uuid import UUID

import polars as pl

_UUID_BYTES = 16


def with_text_of_bytes(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose columns of bytes and of UUIDs are text."""
    odd = [column for column in frame if column.dtype in (pl.Binary, pl.Object)]
    return frame.with_columns(_text(column) for column in odd) if odd else frame


def _text(column: pl.Series) -> pl.Series:
    cells = column.to_list()
    there = [cell for cell in cells if cell is not None]
    if column.dtype == pl.Object:
        are_ids = all(isinstance(cell, UUID) for cell in there)
        texts = [None if cell is None else str(cell) for cell in cells]
        return pl.Series(column.name, texts, pl.String) if are_ids else column
    try:
        written = [None if cell is None else cell.decode() for cell in cells]
        if all(text is None or text.isprintable() for text in written):
            return pl.Series(column.name, written, pl.String)
    except UnicodeDecodeError:
        pass
    if all(len(cell) == _UUID_BYTES for cell in there):
        written = [None if cell is None else str(UUID(bytes=cell)) for cell in cells]
    else:
        written = [None if cell is None else cell.hex() for cell in cells]
    return pl.Series(column.name, written, pl.String)
