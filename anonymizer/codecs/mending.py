"""Text that is nearly JSON, as small devices write it: mended once the strict reader refused it.

What is mended can only be in fields that nobody reads, or is no number anyway:

- the text ends at its first NUL, as strings of C do, and a byte-order mark before it (UTF-8 or
  UTF-16) is no part of it;
- words that JSON does not have: `nan`, `inf` and others that say that there is no value are null;
  `+1`, `.5` and `007` are numbers; `True` is true; all others are text, so that a time as
  `1800000000L` is refused where it is read, and not taken for none;
- control characters in texts are spaces, a backslash that escapes nothing stands for itself, and
  bytes that are no UTF-8 and halves of surrogate pairs are U+FFFD, of which no device id may
  consist (`_fields.device_id`).

Nothing is added: what is cut off stays malformed. About 20 ns a byte, and 1 µs a word.
"""

import re
import zlib
from math import isfinite

from anonymizer.domain.outcomes import Outcome

_MOST_BYTES = 1 << 16
"""Longer texts are not mended."""
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\x00" + _UTF8_MARK + b"".join(_UTF16_MARKS)
_WHOLE = ((b"{", b"}"), (b"[", b"]"))
"""Begin and end of a message that is not cut off, and no other format."""
_AS_SPACE = bytes(max(byte, 32) for byte in range(256))

_WORD = re.compile(
    rb"""
    (?<! [^\s\[\]{},:\3])  # a word begins here
    (?! (?: -?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+ | true | false | null )
        (?! [^\s\[\]{},:\3]) )  # and is none of JSON
    [^\s\[\]{},:\3]++
    """,
    re.VERBOSE,
)
_MOST_WORDS = 4_000
_BACKSLASH, _QUOTE, _TEXT = b"\1", b"\2", b"\3"
"""Stand for an escaped backslash, an escaped quote, and a text: there are no control characters."""

NO_VALUE = frozenset({
    "", "nan", "-nan", "inf", "-inf", "infinity", "-infinity", "null", "none", "nil", "n/a", "na",
    "undefined", "unknown", "unavailable", "-", "--", "---",
})  # fmt: skip
"""Words and texts that say that there is no value, in lower case."""
_NO_NUMBER = ("nan", "inf", "1.#")
"""Begin of what C writes: `-nan(ind)`, `1.#QNAN`."""
_FLAGS = frozenset({"true", "false"})
_NO_ESCAPE = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_PAIR = re.compile(rb"(\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\u[dD][89a-fA-F]..")
"""Escapes of surrogates: a pair, or a half."""
_NO_TEXT = rb"\ufffd"

_MAGIC = (
    b"\x1f\x8b",  # gzip
    b"\x28\xb5\x2f\xfd",  # zstandard
    b"BZh",  # bzip2
    b"\xfd7zXZ\x00",  # xz
    b"\x04\x22\x4d\x18",  # lz4
    b"\xff\x06\x00\x00sNaPpY",  # snappy
    b"PK\x03\x04",  # zip
)
_SAMPLE_BYTES = 64


def starts_array(payload: bytes) -> bool:
    """Return whether a text is a JSON array, by its first character."""
    return payload[:1] == b"[" or payload.lstrip(_BLANK)[:1] == b"["


def mended(payload: bytes) -> bytes | None:
    """Return a refused text as JSON, None if there is nothing to mend."""
    if len(payload) > _MOST_BYTES:
        return None
    text = payload
    if text.startswith(_UTF16_MARKS):
        text = text.decode("utf-16", "replace").encode("utf-8", "replace")
    else:
        text = text.removeprefix(_UTF8_MARK)
    text = text.partition(b"\0")[0].translate(_AS_SPACE)
    if not text.isascii():
        text = text.decode("utf-8", "replace").encode()
    text = text.strip()
    if (text[:1], text[-1:]) not in _WHOLE:
        return None
    text = _with_words_of_json(text)
    return None if text == payload else text


def _with_words_of_json(text: bytes) -> bytes:
    """Return a text without control characters, in which words outside of texts are those of JSON.

    It is cut at the quotes, so that nearly all of the work is done by compiled code.
    """
    has_escapes = b"\\" in text
    if has_escapes:
        text = text.replace(rb"\\", _BACKSLASH).replace(rb"\"", _QUOTE)
        text = _NO_ESCAPE.sub(_BACKSLASH, text, count=_MOST_WORDS)
        text = _PAIR.sub(lambda found: found[1] or _NO_TEXT, text, count=_MOST_WORDS)
    parts = text.split(b'"')
    words = _WORD.sub(_json_of, _TEXT.join(parts[::2]), count=_MOST_WORDS)
    parts[::2] = words.split(_TEXT)
    text = b'"'.join(parts)
    if has_escapes:
        text = text.replace(_QUOTE, rb"\"").replace(_BACKSLASH, rb"\\")
    return text


def unreadable(payload: bytes) -> Outcome:
    """Return why a payload cannot be read as its format: it is compressed, or malformed."""
    return Outcome.INVALID__COMPRESSED if _is_compressed(payload) else Outcome.INVALID__MALFORMED


def _json_of(found: "re.Match[bytes]") -> bytes:
    """Return the number that a word spells in a way that JSON does not have, or the word."""
    word = found[0]
    try:
        value = float(word)
    except ValueError:
        return _as_text(word)
    return repr(value).encode() if isfinite(value) and b"_" not in word else _as_text(word)


def _as_text(word: bytes) -> bytes:
    """Return a word that is no number as null, a flag, or text."""
    plain = word.decode("utf-8", "replace").lower()
    if plain in NO_VALUE or plain.lstrip("+-").startswith(_NO_NUMBER):
        return b"null"
    if plain[0] == "'":  # another notation, not a word
        return word
    return plain.encode() if plain in _FLAGS else b'"%b"' % word


def _is_compressed(payload: bytes) -> bool:
    if payload.startswith(_MAGIC):
        return True
    # A header of zlib is a multiple of 31; raw deflate has none, so it is tried.
    is_zlib = payload[:1] == b"\x78" and int.from_bytes(payload[:2], "big") % 31 == 0
    return is_zlib or _begins(payload, -zlib.MAX_WBITS)


def _begins(payload: bytes, window_bits: int) -> bool:
    """Return whether a payload unpacks to what begins as JSON does."""
    try:
        sample = zlib.decompressobj(window_bits).decompress(payload, _SAMPLE_BYTES)
    except zlib.error:
        return False
    return sample.lstrip()[:1] in (b"{", b"[")
