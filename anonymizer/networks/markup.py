"""XML in blocks of bytes, in which no piece of markup is endless.

A parser looks at a tag, a comment or a declaration from its beginning with every block until it
ends. One of 30 MB, of which a packed file has 100 kB, took minutes.
"""

import gzip
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast
from xml.parsers import expat

from anonymizer.errors import InputError

MOST_BYTES = 1 << 20
"""Of one piece. The longest of real files are comments of some kilobytes."""
_BLOCK_BYTES = 1 << 16


def parse(file: BinaryIO, parser: expat.XMLParserType) -> None:
    """Parse a file to its end.

    Raises
    ------
    InputError
        If a tag, a comment or a declaration has more than `MOST_BYTES`.
    ExpatError
        If the file is not XML.
    """
    n_bytes = 0
    while block := file.read(_BLOCK_BYTES):
        parser.Parse(block, False)
        n_bytes += len(block)
        if n_bytes - parser.CurrentByteIndex > MOST_BYTES:
            raise InputError(
                f"a tag or comment has more than {MOST_BYTES:,} bytes: see line"
                f" {parser.CurrentLineNumber}"
            )
    parser.Parse(b"", True)


def check_markup(path: Path) -> None:
    """Check a file, plain or `.gz`, for a library that reads it as a whole.

    What else is wrong with it, the library says.

    Raises `InputError` as `parse`.
    """
    with (
        suppress(OSError, EOFError, zlib.error, expat.ExpatError),
        gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file,
    ):
        parse(cast("BinaryIO", file), expat.ParserCreate())
