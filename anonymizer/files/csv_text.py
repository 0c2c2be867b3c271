"""The text of csv files, of those that are no UTF-8 and those that begin with `sep=;` as well.

What programs write is read: UTF-16 with a byte order mark, GB18030 (also GBK and GB2312), and the
code page 1252 of Western Europe. Nothing in a file says which of the two latter it is, so it is
guessed, and said; what looks like neither is refused.
"""

import codecs
import re
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import numpy as np

_CHUNK_BYTES = 2**24
_SEP = re.compile(rb"(?i)\A(?:\xef\xbb\xbf)?\"?sep=(.)\"?\r?\n", re.DOTALL)
_BOMS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_HIGH, _FEW, _MOSTLY = 0x80, 0.25, 0.9
_GB_LEAD, _GB_COMMON, _HANGUL_END = 0xA1, 0xB0, 0xC8
_LEAST_PAIRS = 30


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

    Raises
    ------
    ValueError
        If it is in no encoding that is read.
    """
    with opened() as file:
        first = file.readline(64)
        if first[:2] not in _BOMS and not _SEP.match(first) and _is_utf_8(first, file):
            return UTF_8
    with opened() as file:
        raw = file.read()
    text, encoding = _decoded(raw)
    data = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").encode()
    found = _SEP.match(data)
    if found is None:
        return CsvText(data, "", encoding)
    return CsvText(data[found.end() :], found[1].decode(), encoding)


def _is_utf_8(first: bytes, rest: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(first)
        while chunk := rest.read(_CHUNK_BYTES):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(raw: bytes) -> tuple[str, str]:
    tried = [("utf-8", "")]
    tried += [("gb18030", "GB18030")] if _looks_chinese(raw) else []
    tried += [("cp1252", "the code page 1252")] if _looks_western(raw) else []
    if raw[:2] in _BOMS:
        tried = [("utf-16", "UTF-16")]
    for codec, encoding in tried:
        try:
            return raw.decode(codec), encoding
        except UnicodeDecodeError:
            continue
    raise ValueError("is not UTF-8 text: save it in this encoding")


def _looks_chinese(raw: bytes) -> bool:
    """Return whether bytes above ASCII come in pairs, and not as those of Korean do."""
    runs = re.findall(rb"[\x80-\xff]+", raw)
    even = sum(len(run) % 2 == 0 for run in runs)
    if not runs or even < _MOSTLY * len(runs):
        return False
    leads = np.concatenate([np.frombuffer(run, np.uint8)[::2] for run in runs])
    korean = (leads >= _GB_COMMON) & (leads <= _HANGUL_END)
    return bool((leads >= _GB_LEAD).mean() > _MOSTLY) and not (
        len(leads) > _LEAST_PAIRS and korean.all()
    )


def _looks_western(raw: bytes) -> bool:
    """Return whether few letters are beyond ASCII, which no other alphabet's code page has."""
    byte = np.frombuffer(raw, np.uint8)
    n_high = int((byte >= _HIGH).sum())
    n_ascii = int((((byte | 32) >= ord("a")) & ((byte | 32) <= ord("z"))).sum())
    return n_high <= _FEW * (n_high + n_ascii)
