"""Encodings of text that is no UTF-8, told by its letters.

What programs write is read: UTF-16 and UTF-32, GB18030 (also GBK and GB2312), and the code page
1252 of Western Europe. Nothing in a file says which of the two latter it is, so it is read only
with evidence for the one and none for another, and said; else it is refused, with what it may be.
"""

import codecs
import re
from collections import Counter

import numpy as np

from anonymizer.domain.arrays import UInt8Array
from anonymizer.files.csv_text import NOT_UTF_8

_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LONG_BOMS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_SAMPLE_BYTES = 4_096
_MOST_JUDGED_BYTES = 2**20
"""Around the first byte beyond ASCII: they tell the encoding."""
_CJK = "\u4e00-\u9fff\uff00-\uff60\u3000-\u303f"
_JAPANESE = "japanese"
"""Kana, and the kanji that are frequent enough for the first level of JIS."""
_SCRIPTS = {
    "cp932": ("Shift-JIS", f"[\u3040-\u30ff{_CJK}]", _JAPANESE, 0.9),
    "euc_jp": ("EUC-JP", f"[\u3040-\u30ff{_CJK}]", _JAPANESE, 0.9),
    "euc_kr": ("EUC-KR", f"[\uac00-\ud7a3{_CJK}]", "[\uac00-\ud7a3]", 0.8),
    "big5": ("Big5", f"[{_CJK}]", "[\u4e00-\u9fff]", 0.8),
    "cp1251": ("the code page 1251", "[\u0400-\u045f\u2013\u2116]", "[\u0430-\u044f]", 0.5),
    "koi8_r": ("KOI8-R", "[\u0410-\u044f\u0401\u0451]", "[\u0430-\u044f]", 0.5),
    "cp866": ("the code page 866", "[\u0410-\u044f\u0401\u0451]", "[\u0430-\u044f]", 0.5),
    "iso8859_5": ("ISO 8859-5", "[\u0401-\u045f]", "[\u0430-\u044f]", 0.5),
    "cp1253": ("the code page 1253", "[\u0386-\u03ce\u2013]", "[\u03ac-\u03ce]", 0.5),
    "tis_620": ("TIS-620", "[\u0e01-\u0e5b]", "[\u0e01-\u0e4e]", 0.9),
    "cp1255": ("the code page 1255", "[\u05d0-\u05ea\u2013]", "[\u05d0-\u05ea]", 0.9),
    "cp1256": ("the code page 1256", "[\u060c-\u06d2\u2013]", "[\u0621-\u064a]", 0.9),
}
"""By codec: its name, what its texts have beyond ASCII, and what is frequent in them, and how."""
_HIGH, _FEW, _MOSTLY = 0x80, 0.25, 0.9
_GB_LEAD, _GB_COMMON, _HANGUL_END = 0xA1, 0xB0, 0xC8
_KANA_LEADS = (0xA4, 0xA5)
_LEAST_PAIRS = 30
_GB_2, _JIS_2 = 0xD8, 0xD0
"""Where the second levels of GB 2312 and of JIS begin."""
_CHINESE = frozenset(
    "\u7684\u4e00\u662f\u4e0d\u4e86\u5728\u4eba\u6709\u4e2d\u5927\u6765\u4e0a\u56fd\u4e2a"
    "\u5230\u4eec\u4e3a\u5b50\u548c\u5730\u51fa\u9053\u65f6\u5e74\u5f97\u5c31\u8981\u4e0b"
    "\u4ee5\u751f\u4f1a\u81ea\u4e4b\u8fc7\u5bb6\u5b66\u5bf9\u53ef\u5c0f\u591a\u5929\u80fd"
    "\u597d\u90fd\u65e5\u8d77\u53d1\u6210\u4e8b\u4f5c\u5f53\u7537\u5973\u533a\u5e02\u7701"
    "\u53bf\u8def\u5dde\u6d77\u4eac\u5317\u5357\u4e1c\u897f\u6c5f\u6cb3\u6e56\u5c71\u5e7f"
    "\u5b89\u5e73\u9633\u8f66\u724c\u5f20\u738b\u674e\u8d75\u5218\u9648\u6768\u9ec4\u5468"
    "\u5434\u5f90\u5b59\u6797\u533b\u9662\u79d1\u65e0\u6b63\u5e38\u836f\u8840\u7cd6\u538b"
)
_KANJI = frozenset(
    "\u5e02\u533a\u753a\u6751\u770c\u90fd\u5e9c\u9053\u6771\u897f\u5357\u5317\u4eac\u5927"
    "\u5c0f\u4e2d\u5c71\u5ddd\u7530\u5cf6\u6728\u672c\u91ce\u539f\u4e0a\u4e0b\u5185\u6797"
    "\u68ee\u4e95\u85e4\u4f50\u9ad8\u6a4b\u9577\u5d0e\u798f\u5ca1\u5e83\u540d\u53e4\u5c4b"
    "\u6a2a\u6d5c\u962a\u795e\u6238\u57fc\u7389\u5343\u8449\u7537\u5973\u5e74\u6708\u65e5"
    "\u7121\u6709\u98a8\u90aa\u75c5\u9662\u79d1\u8840\u5727\u7cd6\u6b63\u5e38\u4f1a\u793e"
    "\u54e1"
)
"""What is frequent in Chinese and in Japanese names, places and tables."""
_OFTEN = 0.2
_SOME, _SHOWN, _IN_WORDS = 0.05, 8, 10
_LETTERS_FROM = 0xC0
_MAC_LETTERS = [0x8A, 0x8C, 0x8E, 0x9A, 0x9C, 0x9E, 0x9F]
"""Letters that are few in Western languages; Mac Roman has its umlauts and accents there."""
_OF_ICELAND = [0xD0, 0xDD, 0xDE, 0xF0, 0xFD, 0xFE]
_BESIDE_THEM = [0xED, 0xF3, 0xFA]
"""Eth, thorn and accented y, where Turkish and Baltic pages have their own, and who go along."""
_HALF = 0.5
_IN_LATIN_WORD = rb"[A-Za-z][\x80-\xff]|[\x80-\xff](?=[A-Za-z])"
_NOT_WITHIN = {bytes([sign]) for sign in range(0x80, 0xC0)} - {
    *(b"\x8a", b"\x92", b"\x9a", b"\x9c", b"\x9e", b"\xb7")
}
"""What the code page 1252 has within no word: signs, but for an apostrophe and a dot."""


def decoded(raw: bytes) -> tuple[str, str]:
    """Return the text of some bytes, and what they were read as; empty for UTF-8.

    Raises `ValueError` if they are in no encoding that is read, or may be in several.
    """
    if b"\x1b$" in raw:
        raise ValueError(NOT_UTF_8 + "; it may be in ISO-2022-JP")
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
        if all(halves) and raw[1:4] == b"\0\0\0":
            tried = [("utf-32-le", "UTF-32")]
    for codec, encoding in tried:
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            continue
        return text, encoding + _letters(text, codec)
    raise ValueError(NOT_UTF_8 + _perhaps(some))


def _letters(text: str, codec: str) -> str:
    """Return letters beyond ASCII that many different words have, in the order of their codes.

    A reader sees a wrong guess by them, and nobody's name: not how often each is there, nor beside
    what.
    """
    if codec.startswith("utf"):
        return ""
    words = {*re.findall(r"[^\W\d_]*[^\W\d_\x00-\x7f][^\W\d_]*", text[:_MOST_JUDGED_BYTES])}
    n_words = Counter(letter for word in words for letter in {*word} if letter > "\x7f")
    often = sorted(letter for letter, n in n_words.items() if n >= _IN_WORDS)[:_SHOWN]
    return f" (with the letters {' '.join(often)})" if often else ""


def _judged(raw: bytes) -> bytes:
    """Return some of the bytes: those around the first one beyond ASCII."""
    first = re.search(rb"[\x80-\xff]", raw)
    at = 0 if first is None else max(0, first.start() - _MOST_JUDGED_BYTES // 2)
    return raw[at : at + _MOST_JUDGED_BYTES]


def _perhaps(some: bytes) -> str:
    """Return what a text in no encoding that is read may be in, for the message."""
    if len(re.findall(_IN_LATIN_WORD, some)) > _HALF * len(re.findall(rb"[\x80-\xff]", some)):
        return "; it may be in the code page 1250, 1254, 1257 or 850, in ISO 8859-2 or Mac Roman"
    names = ["GB18030"] if _is_paired(some) and _of_level_1(some) else []
    for codec, (name, there, frequent, least) in _SCRIPTS.items():
        try:
            text = codecs.getincrementaldecoder(codec)().decode(some)  # it may end within a sign
            beyond = "".join(sign for sign in text if sign >= "\x80")
        except UnicodeDecodeError:
            continue
        n = max(len(beyond), 1)
        fits = len(re.findall(there, beyond)) / n
        often = _japanese(beyond) if frequent == _JAPANESE else len(re.findall(frequent, beyond))
        if fits >= _MOSTLY and often / n >= least:
            names.append(name)
    return f"; it may be in {' or '.join(names)}" if names else ""


def _japanese(beyond: str) -> int:
    """Return how many signs are kana, marks, or kanji of the first level of JIS."""
    leads = np.frombuffer(beyond.encode("euc_jp", "ignore"), np.uint8)[::2]
    return int(((leads < _JIS_2) & (leads > _HIGH)).sum())


def _leads(raw: bytes) -> UInt8Array:
    """Return the first of each two bytes above ASCII."""
    runs = re.findall(rb"[\x80-\xff]+", raw)
    return np.concatenate([np.zeros(0, np.uint8), *(np.frombuffer(r, np.uint8)[::2] for r in runs)])


def _is_paired(raw: bytes) -> bool:
    runs = re.findall(rb"[\x80-\xff]+", raw)
    return bool(runs) and sum(len(run) % 2 == 0 for run in runs) >= _MOSTLY * len(runs)


def _of_level_1(raw: bytes) -> bool:
    """Return whether most pairs are signs or frequent characters of GB 2312, in order of sound."""
    leads = _leads(raw)
    return bool(((leads >= _GB_LEAD) & (leads < _GB_2)).mean() > _MOSTLY)


def _looks_chinese(raw: bytes) -> bool:
    """Return whether bytes above ASCII are pairs as in Chinese, and not in Korean or Japanese.

    A quarter of Chinese characters sound like x, y or z, where JIS has its rare second level; no
    letters of one byte each come in pairs that begin with frequent characters alone.
    """
    if not _is_paired(raw) or not _of_level_1(raw):
        return False
    leads = _leads(raw)
    if np.isin(leads, _KANA_LEADS).mean() > _FEW / 2:  # of kana, as in EUC-JP
        return False
    if "EUC-JP" in _perhaps(raw) and not _is_rather_chinese(raw):
        return False
    korean = (leads >= _GB_COMMON) & (leads <= _HANGUL_END)
    return len(leads) <= _LEAST_PAIRS or not korean.all()


def _is_rather_chinese(raw: bytes) -> bool:
    """Return whether the different characters of a text are Chinese, and not those of EUC-JP."""
    runs = re.findall(rb"[\x80-\xff]+", raw)
    pairs = {each for run in runs for each in re.findall(rb"(?s)..", run)}
    chinese, japanese = (
        np.mean([pair.decode(codec, "replace") in often for pair in pairs])
        for codec, often in (("gb18030", _CHINESE), ("euc_jp", _KANJI))
    )
    rare_in_japanese = np.mean([pair[0] >= _JIS_2 for pair in pairs])
    return bool(chinese > japanese and (chinese >= _OFTEN or rare_in_japanese >= _SOME))


def _looks_western(raw: bytes) -> bool:
    """Return whether few letters are beyond ASCII, and all are such as Western languages have."""
    within = re.findall(rb"[A-Za-z]([\x80-\xff])(?=[A-Za-z])", raw)
    if sum(sign in _NOT_WITHIN for sign in within) > _FEW / 2 * len(within):
        return False  # as where others have letters: the code page 850, that of Central Europe
    byte = np.frombuffer(raw, np.uint8)
    times = np.bincount(byte, minlength=256)
    n_letters = int(times[_LETTERS_FROM:].sum())
    if times[_MAC_LETTERS].sum() > n_letters:
        return False
    if times[_OF_ICELAND].any() and (times[_BESIDE_THEM] > 0).sum() < len(_BESIDE_THEM) - 1:
        return False
    n_high = int((byte >= _HIGH).sum())
    n_ascii = int((((byte | 32) >= ord("a")) & ((byte | 32) <= ord("z"))).sum())
    return n_high <= _FEW * (n_high + n_ascii)
