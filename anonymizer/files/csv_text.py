"""The text of csv files: of those that are no UTF-8, or begin with `sep=;` or lines of comment.

What programs write is read: UTF-16 and UTF-32, GB18030 (also GBK and GB2312), and the code page
1252 of Western Europe. Nothing in a file says which of the two latter it is, so it is guessed, and
said; what looks like neither is refused, with what it may be.
"""

import codecs
import re
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import numpy as np

from anonymizer.unfolding import packing

_CHUNK_BYTES = 2**24
_SEP = re.compile(rb"(?i)\A(?:\xef\xbb\xbf)?\"?sep=(.)\"?\r?\n", re.DOTALL)
_COMMENTS = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:[ \t]*\r?\n)*(?:#[^\n]*\n|[ \t]*\r?\n)+")
_BOMS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_LONG_BOMS = {codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"}
_SAMPLE_BYTES = 4_096
_MOST_JUDGED_BYTES = 2**20
"""Around the first byte beyond ASCII: they tell the encoding."""
_CJK = "\u4e00-\u9fff\uff00-\uff60\u3000-\u303f"
_SCRIPTS = {
    "cp932": ("Shift-JIS", f"[\u3040-\u30ff{_CJK}]", "[\u3040-\u30ff]", 0.15),
    "euc_jp": ("EUC-JP", f"[\u3040-\u30ff{_CJK}]", "[\u3040-\u30ff]", 0.15),
    "euc_kr": ("EUC-KR", f"[\uac00-\ud7a3{_CJK}]", "[\uac00-\ud7a3]", 0.8),
    "big5": ("Big5", f"[{_CJK}]", "[\u4e00-\u9fff]", 0.8),
    "cp1251": ("the code page 1251", "[\u0400-\u045f\u2013\u2116]", "[\u0430-\u044f]", 0.5),
    "koi8_r": ("KOI8-R", "[\u0410-\u044f\u0401\u0451]", "[\u0430-\u044f]", 0.5),
    "cp866": ("the code page 866", "[\u0410-\u044f\u0401\u0451]", "[\u0430-\u044f]", 0.5),
    "cp1253": ("the code page 1253", "[\u0386-\u03ce\u2013]", "[\u03ac-\u03ce]", 0.5),
    "cp1255": ("the code page 1255", "[\u05d0-\u05ea\u2013]", "[\u05d0-\u05ea]", 0.9),
    "cp1256": ("the code page 1256", "[\u060c-\u06d2\u2013]", "[\u0621-\u064a]", 0.9),
}
"""By codec: its name, what its texts have beyond ASCII, and what is frequent in them, and how."""
NOT_UTF_8 = "is not UTF-8 text: save it as UTF-8"
_HIGH, _FEW, _MOSTLY = 0x80, 0.25, 0.9
_GB_LEAD, _GB_COMMON, _HANGUL_END = 0xA1, 0xB0, 0xC8
_KANA_LEADS = (0xA4, 0xA5)
_LEAST_PAIRS = 30
_HALF = 0.5
_IN_LATIN_WORD = rb"[A-Za-z][\x80-\xff]|[\x80-\xff](?=[A-Za-z])"
_NOT_WITHIN = {bytes([sign]) for sign in range(0x80, 0xC0)} - {
    *(b"\x8a", b"\x92", b"\x9a", b"\x9c", b"\x9e", b"\xb7")
}
"""What the code page 1252 has within no word: signs, but for an apostrophe and a dot."""


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
        if said := packing(first):
            raise ValueError(said)
        if _is_plain(first) and _is_utf_8(first, file):
            return UTF_8
    with opened() as file:
        raw = file.read()
    text, encoding = _decoded(raw)
    data = _without_comments(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").encode())
    found = _SEP.match(data)
    if found is None:
        return CsvText(data, "", encoding)
    return CsvText(_without_comments(data[found.end() :]), found[1].decode(), encoding)


def _is_plain(first: bytes) -> bool:
    """Return whether a first line tells of nothing that is to be taken out or decoded."""
    if b"\x1b$" in first:
        raise ValueError(NOT_UTF_8 + "; it may be in ISO-2022-JP")
    bare = first.removeprefix(codecs.BOM_UTF8).lstrip()
    special = first[:2] in _BOMS or first[:4] in _LONG_BOMS or b"\0" in first
    return bool(bare) and not special and not _SEP.match(first) and not bare.startswith(b"#")


def _without_comments(data: bytes) -> bytes:
    """Return the lines below lines of comment and blank ones at the beginning.

    Raises
    ------
    ValueError
        If the last of them may name the columns.
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
    try:
        decoder.decode(first)
        while chunk := rest.read(_CHUNK_BYTES):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(raw: bytes) -> tuple[str, str]:
    some = _judged(raw)
    tried = [("utf-8", "")]
    tried += [("gb18030", "GB18030")] if _looks_chinese(some) else []
    tried += [("cp1252", "the code page 1252")] if _looks_western(some) else []
    if raw[:4] in _LONG_BOMS:
        tried = [("utf-32", "UTF-32")]
    elif raw[:2] in _BOMS:
        tried = [("utf-16", "UTF-16")]
    elif b"\0" in raw[:_SAMPLE_BYTES]:
        # Without a mark, half of each sign of ASCII is 0: the first or the second.
        halves = [b"\0" in raw[at:_SAMPLE_BYTES:2] for at in (0, 1)]
        order = "be" if halves[0] else "le"
        tried = [] if all(halves) else [(f"utf-16-{order}", "UTF-16")]
    for codec, encoding in tried:
        try:
            return raw.decode(codec), encoding
        except UnicodeDecodeError:
            continue
    raise ValueError(NOT_UTF_8 + _perhaps(some))


def _judged(raw: bytes) -> bytes:
    """Return some of the bytes: those around the first one beyond ASCII."""
    first = re.search(rb"[\x80-\xff]", raw)
    at = 0 if first is None else max(0, first.start() - _MOST_JUDGED_BYTES // 2)
    return raw[at : at + _MOST_JUDGED_BYTES]


def _perhaps(some: bytes) -> str:
    """Return what a text in no encoding that is read may be in, for the message."""
    if len(re.findall(_IN_LATIN_WORD, some)) > _HALF * len(re.findall(rb"[\x80-\xff]", some)):
        return "; it may be in the code page 1250, 1254 or 850, or in ISO 8859-2"
    names = []
    for codec, (name, there, frequent, least) in _SCRIPTS.items():
        try:
            text = codecs.getincrementaldecoder(codec)().decode(some)  # it may end within a sign
            beyond = "".join(sign for sign in text if sign >= "\x80")
        except UnicodeDecodeError:
            continue
        fits, often = (len(re.findall(f, beyond)) / max(len(beyond), 1) for f in (there, frequent))
        if fits >= _MOSTLY and often >= least:
            names.append(name)
    return f"; it may be in {' or '.join(names)}" if names else ""


def _looks_chinese(raw: bytes) -> bool:
    """Return whether bytes above ASCII come in pairs, and not as those of Korean do."""
    runs = re.findall(rb"[\x80-\xff]+", raw)
    even = sum(len(run) % 2 == 0 for run in runs)
    if not runs or even < _MOSTLY * len(runs):
        return False
    leads = np.concatenate([np.frombuffer(run, np.uint8)[::2] for run in runs])
    if np.isin(leads, _KANA_LEADS).mean() > _FEW / 2:  # of kana, as in EUC-JP
        return False
    korean = (leads >= _GB_COMMON) & (leads <= _HANGUL_END)
    return bool((leads >= _GB_LEAD).mean() > _MOSTLY) and not (
        len(leads) > _LEAST_PAIRS and korean.all()
    )


def _looks_western(raw: bytes) -> bool:
    """Return whether few letters are beyond ASCII, which no other alphabet's code page has."""
    within = re.findall(rb"[a-z]([\x80-\xff])(?=[a-z])", raw)
    if sum(sign in _NOT_WITHIN for sign in within) > _FEW / 2 * len(within):
        return False  # as where others have letters: the code page 850, that of Central Europe
    byte = np.frombuffer(raw, np.uint8)
    n_high = int((byte >= _HIGH).sum())
    n_ascii = int((((byte | 32) >= ord("a")) & ((byte | 32) <= ord("z"))).sum())
    return n_high <= _FEW * (n_high + n_ascii)
