"""Payloads that are packed: compressed, base64, in a text or in lines, or not JSON at all.

An input declares it; nothing is guessed, because whoever may publish could choose the way that
costs most. What a payload may unpack to is bounded while it is unpacked.

References
----------
.. [1] RFC 8949, "Concise Binary Object Representation (CBOR)".
"""

import zlib
from base64 import b64decode
from collections.abc import Callable, Sequence
from math import isfinite
from struct import unpack_from
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import Codec, read_part, too_many
from anonymizer.codecs.packed_fields import WORD, fields_reader
from anonymizer.codecs.paths import JsonPath, PathReader
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_WINDOW_BITS = {
    "gzip": 16 + zlib.MAX_WBITS,
    "zlib": zlib.MAX_WBITS,
    "deflate": -zlib.MAX_WBITS,
}
LINES = "lines"
_INSIDE = "in "
_BYTES_OF_LINE = 20
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_TEXT_DECODER = Decoder(str)
_MOST_DEPTH = 64
_MOST_MEMBERS = 64
_MANY_ITEMS, _BYTES_OF_ITEM = 3500, 100
"""A payload of CBOR has at most these items, and one for so many of its bytes: 2 µs each."""
_FLOATS = {25: (">e", 2), 26: (">f", 4), 27: (">d", 8)}
_SIMPLE = {20: False, 21: True, 22: None, 23: None}
_BREAK = 31
_DECIMAL, _MOST_EXPONENT = 4, 300
_UINT, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _OTHER = range(8)


class _UnpackingError(Exception):
    """A payload cannot be unpacked; it says nothing of what is in it."""

    def __init__(self, why: Outcome) -> None:
        super().__init__(why.name)
        self.why = why


def unpacked(codec: Codec, packings: Sequence[str], *, max_bytes: int) -> Codec:
    """Return a codec of packed payloads.

    Parameters
    ----------
    codec
        That of what is inside.
    packings
        How it is packed, the outermost first.
    max_bytes
        A payload that unpacks to more is too large.
    """
    steps = [_step(packing, max_bytes) for packing in packings if packing != LINES]

    in_lines = packings[-1] == LINES

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        if not payload:
            return [Outcome.INVALID__EMPTY]
        try:
            for step in steps:
                payload = step(payload)
        except _UnpackingError as error:
            return [error.why]
        return _of_lines(codec, payload) if in_lines else codec(payload)

    return decode


def stands_for_json(packing: str) -> bool:
    """Return whether what is packed so is no text that something else may pack."""
    return packing in {"cbor", LINES} or packing.startswith(WORD)


def _of_lines(codec: Codec, payload: bytes) -> Sequence[Fix | Outcome]:
    """Return what is on each line; a bad one spoils no other."""
    lines = [line for line in payload.split(b"\n") if line.strip()]
    if too_many(len(lines), len(payload), least=_BYTES_OF_LINE):
        return [Outcome.INVALID__SCHEMA]
    return [found for line in lines for found in codec(line)] or [Outcome.INVALID__EMPTY]


def _step(packing: str, max_bytes: int) -> Callable[[bytes], bytes]:
    if packing.startswith(WORD):
        return _of_fields(packing)
    if packing.startswith(_INSIDE):
        return _inside(packing.removeprefix(_INSIDE))
    if packing == "base64":
        return _of_base64
    if packing == "cbor":
        return lambda payload: _json_of_cbor(payload, max_bytes)
    return lambda payload: _inflated(payload, _WINDOW_BITS[packing], max_bytes)


def _of_base64(payload: bytes) -> bytes:
    """Return what base64 stands for, in either alphabet, with or without its padding."""
    plain = payload.strip(b' \t\r\n\0"=').translate(_URL_SAFE)
    try:
        return b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except ValueError:
        raise _UnpackingError(Outcome.INVALID__MALFORMED) from None


def _inside(path: str) -> Callable[[bytes], bytes]:
    """Return what takes the message out of another one: its text, or its object as it stands."""
    reader = PathReader([(JsonPath.of(path), Raw)])

    def step(payload: bytes) -> bytes:
        values = reader.read(payload)
        part = values if isinstance(values, Outcome) else values[0]
        if not isinstance(part, Raw):
            raise _UnpackingError(part if isinstance(part, Outcome) else Outcome.INVALID__SCHEMA)
        text = bytes(part)
        if text[:1] != b'"':
            return text
        inner = read_part(_TEXT_DECODER, part)
        if isinstance(inner, Outcome):
            raise _UnpackingError(inner)
        return inner.encode("utf-8", "replace")

    return step


def _of_fields(packing: str) -> Callable[[bytes], bytes]:
    read = fields_reader(packing)

    def step(payload: bytes) -> bytes:
        text = read(payload)
        if text is None:
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        return text

    return step


def _inflated(payload: bytes, window_bits: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    n_bytes = 0
    while payload:  # a gzip file may have several members
        if len(parts) == _MOST_MEMBERS:
            raise _UnpackingError(Outcome.INVALID__TOO_LARGE)
        stream = zlib.decompressobj(window_bits)
        try:
            part = stream.decompress(payload, max_bytes + 1 - n_bytes)
        except zlib.error:
            raise _UnpackingError(Outcome.INVALID__MALFORMED) from None
        n_bytes += len(part)
        if n_bytes > max_bytes:
            raise _UnpackingError(Outcome.INVALID__TOO_LARGE)
        if not stream.eof:
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        parts.append(part)
        payload = stream.unused_data.lstrip(b"\0\r\n")
    return b"".join(parts)


def _json_of_cbor(payload: bytes, max_bytes: int) -> bytes:
    """Return a CBOR item as JSON. No value has more bytes than the payload, so little can grow."""
    item, end = _Cbor(payload).item(0, 0)
    if end != len(payload):
        raise _UnpackingError(Outcome.INVALID__MALFORMED)
    try:
        text = msgspec.json.encode(item)
    except (TypeError, ValueError, OverflowError, RecursionError):  # a key or a text JSON has not
        raise _UnpackingError(Outcome.INVALID__SCHEMA) from None
    if len(text) > max_bytes:
        raise _UnpackingError(Outcome.INVALID__TOO_LARGE)
    return text


class _Cbor:
    """Reader of CBOR: every part is taken from the bytes, so none is larger than they are."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._n_left = _MANY_ITEMS + len(content) // _BYTES_OF_ITEM

    def item(self, at: int, depth: int) -> tuple[Any, int]:
        """Return the item at a place, and where it ends.

        Tags are ignored, but that of decimal fractions: what others say of a time or a number is
        stated by the input. Numbers that are not finite are null, as in JSON.
        """
        if depth > _MOST_DEPTH:
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        self._n_left -= 1
        if self._n_left < 0:
            raise _UnpackingError(Outcome.INVALID__TOO_LARGE)
        kind, size, at = self._head(at)
        if kind == _OTHER:
            return self._other(size, at)
        if kind == _TAG:
            tag, at = self._number(size, at)
            found, at = self.item(at, depth + 1)
            return (_decimal(found) if tag == _DECIMAL else found), at
        if kind in {_UINT, _NEGATIVE}:
            number, at = self._number(size, at)
            return (number if kind == _UINT else -1 - number), at
        if kind in {_BYTES, _TEXT}:
            text, at = self._string(kind, size, at)
            return (text.decode("utf-8", "replace") if kind == _TEXT else text), at
        return self._items(kind, size, at, depth)

    def _head(self, at: int) -> tuple[int, int, int]:
        if at >= len(self._content):
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        head = self._content[at]
        return head >> 5, head & 31, at + 1

    def _number(self, size: int, at: int) -> tuple[int, int]:
        if size < 24:
            return size, at
        end = at + (1 << (size - 24))
        if size > 27 or end > len(self._content):
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        return int.from_bytes(self._content[at:end], "big"), end

    def _other(self, size: int, at: int) -> tuple[Any, int]:
        if size in _FLOATS:
            form, n_bytes = _FLOATS[size]
            if at + n_bytes > len(self._content):
                raise _UnpackingError(Outcome.INVALID__MALFORMED)
            (value,) = unpack_from(form, self._content, at)
            return (value if isfinite(value) else None), at + n_bytes
        if size == _BREAK:
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        number, at = self._number(size, at)
        return _SIMPLE.get(number), at

    def _string(self, kind: int, size: int, at: int) -> tuple[bytes, int]:
        if size != _BREAK:
            n_bytes, at = self._number(size, at)
            if at + n_bytes > len(self._content):
                raise _UnpackingError(Outcome.INVALID__MALFORMED)
            return self._content[at : at + n_bytes], at + n_bytes
        parts = []
        while not self._is_break(at):
            self._n_left -= 1
            if self._n_left < 0:
                raise _UnpackingError(Outcome.INVALID__TOO_LARGE)
            part_kind, size, at = self._head(at)
            if part_kind != kind or size == _BREAK:
                raise _UnpackingError(Outcome.INVALID__MALFORMED)
            part, at = self._string(kind, size, at)
            parts.append(part)
        return b"".join(parts), at + 1

    def _items(self, kind: int, size: int, at: int, depth: int) -> tuple[Any, int]:
        n: float = float("inf")
        if size != _BREAK:
            n, at = self._number(size, at)
            n *= 1 + (kind == _MAP)
        found: list[Any] = []
        while len(found) < n and not (size == _BREAK and self._is_break(at)):
            each, at = self.item(at, depth + 1)
            found.append(each)
        at += size == _BREAK
        if kind == _ARRAY:
            return found, at
        if len(found) % 2:
            raise _UnpackingError(Outcome.INVALID__MALFORMED)
        keys = [key if isinstance(key, str) else _text_of_key(key) for key in found[::2]]
        return dict(zip(keys, found[1::2], strict=True)), at

    def _is_break(self, at: int) -> bool:
        return self._head(at)[:2] == (_OTHER, _BREAK)


def _decimal(found: object) -> object:
    """Return the number of an exponent and a mantissa (section 3.4.4), null where there is none."""
    match found:
        case [int(exponent), int(mantissa)] if abs(exponent) <= _MOST_EXPONENT:
            return float(f"{mantissa:d}e{exponent:d}")  # of flags, too
        case _:
            return None


def _text_of_key(key: object) -> str:
    if type(key) is not int:
        raise _UnpackingError(Outcome.INVALID__SCHEMA)
    return str(key)
