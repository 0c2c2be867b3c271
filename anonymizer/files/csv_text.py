"""The text of csv files: of those that are no UTF-8, or begin with `sep=;` or lines of comment.

What programs write is read, see `encodings`; what may be in several is refused, and named.
"""

import codecs
import re
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from anonymizer.unfolding import packing

_CHUNK_BYTES = 2**24
_SEP = re.compile(rb"(?i)\A(?:\xef\xbb\xbf)?\"?sep=(.)\"?\r?\n", re.DOTALL)
_COMMENTS = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*\r?\n)*(?:#[^\n]*\n|[ \t]*\r?\n)+")
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LONG_BOMS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_NO_LINE = f"has a line of more than {_CHUNK_BYTES >> 20} MiB, so it is no table"
"""To look for its end takes several times its size of memory."""
NOT_UTF_8 = "is not UTF-8 text: save it as UTF-8"
_ISO_2022 = (b"\x1b$", b"\x1b(")
"""Escapes to other letters within ASCII."""


class CsvText(NamedTuple):
    """The text of a csv.

    `data`: in UTF-8 and without a first line `sep=;`; None: the file is so itself. `separator`:
    what such a line names. `encoding`: what it was read as, empty for UTF-8.
    """

    data: bytes | None = None
    separator: str = ""
    encoding: str = ""


UTF_8 = CsvText()


def csv_text(opened: Callable[[], BinaryIO]) -> CsvText:
    """Return the text of a csv; `opened` opens its bytes, unpacked.

    Raises `ValueError` if it is in no encoding that is read, or has a line of 32 MiB; one of 16 MiB
    may pass.
    """
    with opened() as file:
        first = file.readline(64)
        if said := packing(first):
            raise ValueError(said)
        if _is_plain(first) and _is_utf_8(first, file):
            return UTF_8
    with opened() as file:
        raw = file.read()
    from anonymizer.files.encodings import decoded  # noqa: PLC0415  most files are UTF-8

    text, encoding = decoded(raw)
    data = _without_comments(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").encode())
    found = _SEP.match(data)
    if found is None:
        return CsvText(data, "", encoding)
    return CsvText(_without_comments(data[found.end() :]), found[1].decode(), encoding)


def _is_plain(first: bytes) -> bool:
    """Return whether a first line tells of nothing that is to be taken out or decoded."""
    bare = first.removeprefix(codecs.BOM_UTF8).lstrip()
    special = first[:2] in _BOMS or first[:4] in _LONG_BOMS or b"\0" in first
    return bool(bare) and not special and not _SEP.match(first) and not bare.startswith(b"#")


def _without_comments(data: bytes) -> bytes:
    """Return the lines below lines of comment and blank ones at the beginning.

    Raises `ValueError` if the last of them may name the columns.
    """
    found = _COMMENTS.match(data)
    if found is None or b"#" not in found[0]:
        return data[found.end() :] if found else data
    last = found[0].strip().rpartition(b"\n")[2]
    below = data[found.end() :].partition(b"\n")[0]
    if any(last.count(mark) == below.count(mark) > 0 for mark in (b",", b";", b"\t", b"|")):
        raise ValueError("begins with #: take the sign away if this line names the columns")
    return data[found.end() :]


def _is_utf_8(first: bytes, rest: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    chunk = first
    try:
        while chunk:
            if any(escape in chunk for escape in _ISO_2022):
                return False
            decoder.decode(chunk)
            if len(chunk) == _CHUNK_BYTES and b"\n" not in chunk:
                raise ValueError(_NO_LINE)
            chunk = rest.read(_CHUNK_BYTES)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
