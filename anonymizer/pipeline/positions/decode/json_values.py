"""Texts and numbers of JSON, read by compiled kernels.

Every function takes where a value begins and where the bytes end, and returns where the value ends,
-1 if it is anything unusual: escapes, text that is not ASCII, exponents, more than 18 digits.

References
----------
.. [1] W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990.
.. [2] RFC 8259, "The JavaScript Object Notation (JSON) Data Interchange Format".
"""

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, inner_kernel
from anonymizer.pipeline.name_hashes import Bytes

MAX_CODE_BYTES = 14
"""Longest text that a code stands for."""
SPACE, QUOTE, COMMA, MINUS, POINT, ZERO, NINE, COLON, BACKSLASH, LOWER_E, LOWER_N = b' ",-.09:\\en'
_TAB, _LINE_FEED, _RETURN = b"\t\n\r"
OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT = b"[]{}"

_NOT_ASCII = 0x80
_LOWER = 0x20
"""Set in a small letter."""
_HALF = MAX_CODE_BYTES // 2
_MOST_DIGITS = 18
_EXACT = 1 << 53
"""Integers up to here are floats."""
_POWERS = 10 ** np.arange(_MOST_DIGITS + 1, dtype=np.int64)
_FLOAT_POWERS = _POWERS.astype(np.float64)
_LITERALS = np.array([[4, *b"null\0"], [4, *b"true\0"], [5, *b"false"]], np.int64)
_NAN = float("nan")


def code(text: str) -> tuple[int, int]:
    """Return two numbers that stand for a short text, seven bytes in each behind a 1.

    Without the 1, a text and the same one behind bytes of zero would have one code.
    """
    encoded = text.encode()
    halves = encoded[:_HALF], encoded[_HALF:MAX_CODE_BYTES]
    return int.from_bytes(b"\1" + halves[0]), int.from_bytes(b"\1" + halves[1])


@inlined_kernel
def space_end(stream: Bytes, at: int, end: int) -> int:
    """Return where whitespace ends."""
    while at < end:
        char = stream[at]
        if char > SPACE or char not in (SPACE, _TAB, _LINE_FEED, _RETURN):
            break
        at += 1
    return at


@inlined_kernel
def short_text(stream: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the code of the text at `at`, -1, -1 if it is longer, and its end as `text_end`."""
    if at >= end or stream[at] != QUOTE:
        return -1, -1, -1
    low, at = _half(stream, at + 1, end)
    high, at = _half(stream, at, end)
    stop = _closing(stream, at, end)
    return (low, high, stop) if stop == at + 1 else (-1, -1, stop)


@inlined_kernel
def _half(stream: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number of the code of a text, and where the rest of the text begins."""
    half, end = 1, min(end, at + _HALF)
    while at < end and _is_plain(stream[at]):
        half = half << 8 | _byte(stream, at)
        at += 1
    return half, at


@inlined_kernel
def text_end(stream: Bytes, at: int, end: int) -> int:
    """Return the end of the text at `at`, -1 if it is left."""
    return _closing(stream, at + 1, end) if at < end and stream[at] == QUOTE else -1


@inlined_kernel
def _closing(stream: Bytes, at: int, end: int) -> int:
    """Return the end of a text of which the rest begins at `at`, -1 if it is left."""
    while at < end and _is_plain(stream[at]):
        at += 1
    return at + 1 if at < end and stream[at] == QUOTE else -1


@inlined_kernel
def _is_plain(char: int) -> bool:
    """Return whether this stands for itself within a text."""
    return SPACE <= char < _NOT_ASCII and char not in (QUOTE, BACKSLASH)


@inlined_kernel
def text_code(stream: Bytes, start: int, end: int) -> tuple[int, int]:
    """Return what `code` does for a text in the bytes; -1, -1 if it is longer."""
    if end - start > MAX_CODE_BYTES:
        return -1, -1
    low = high = 1
    for at in range(start, min(end, start + _HALF)):
        low = low << 8 | _byte(stream, at)
    for at in range(start + _HALF, end):
        high = high << 8 | _byte(stream, at)
    return low, high


@inlined_kernel
def after_colon(stream: Bytes, at: int, end: int) -> int:
    """Return where the value behind a colon begins, -1 if `at` is -1 or there is no colon."""
    at = space_end(stream, at, end) if at >= 0 else end
    return space_end(stream, at + 1, end) if at < end and stream[at] == COLON else -1


@inner_kernel
def device(
    stream: Bytes,
    at: int,
    end: int,
    may_be_number: bool,  # noqa: FBT001  a kernel has no keyword-only arguments
) -> tuple[int, int, int]:
    """Return where a stated id ends, -1 if it is left, and where its text starts and ends."""
    start = at
    if at < end and stream[at] == QUOTE:
        at = text_end(stream, at, end)
        return at if at > start + 2 else -1, start + 1, at - 1
    while at < end and _is_digit(stream[at]):
        at += 1
    n_digits = at - start
    is_id = may_be_number and 0 < n_digits <= _MOST_DIGITS
    is_id &= not (n_digits > 1 and stream[start] == ZERO)
    return at if is_id else -1, start, at


@inlined_kernel
def skipped(stream: Bytes, at: int, end: int) -> int:
    """Return where a text, a number, true, false or null ends; -1 for anything else."""
    char = stream[at] if at < end else SPACE
    if char == QUOTE:
        return text_end(stream, at, end)
    if starts_number(char):
        return number(stream, at, end)[1]
    for j in range(len(_LITERALS)):
        size = int(_LITERALS[j, 0])
        if at + size <= end:
            i = 0
            while i < size and stream[at + i] == _LITERALS[j, 1 + i]:
                i += 1
            if i == size:
                return at + size
    return -1


@inlined_kernel
def number(stream: Bytes, at: int, end: int) -> tuple[float, int]:
    """Return the number at `at` and where it ends; -1 if it is none or cannot be read exactly."""
    if at < 0:
        return _NAN, -1
    is_negative = at < end and stream[at] == MINUS
    start = at + is_negative
    digits, at = _digits(stream, start, end, 0)
    n_digits, n_decimals = at - start, 0
    if n_digits == 0 or (n_digits > 1 and stream[start] == ZERO):
        return _NAN, -1
    if at < end and stream[at] == POINT:
        point = at
        digits, at = _digits(stream, point + 1, end, digits)
        n_decimals = at - point - 1
        if n_decimals == 0:
            return _NAN, -1
    elif is_negative and digits == 0:  # the integer -0, which is 0
        return _NAN, -1
    if n_digits + n_decimals > _MOST_DIGITS or (at < end and stream[at] | _LOWER == LOWER_E):
        return _NAN, -1
    if digits <= _EXACT:  # both are exact floats, so their quotient is correctly rounded [1]_
        absolute = float(digits) / float(_FLOAT_POWERS[n_decimals])
    else:
        absolute = _quotient(digits, n_decimals)
    return -absolute if is_negative else absolute, at


@inlined_kernel
def _digits(stream: Bytes, at: int, end: int, before: int) -> tuple[int, int]:
    """Return the number of `before` and these digits, wrong if they are too many; and their end."""
    value = before
    while at < end and _is_digit(stream[at]):
        value = 10 * value + (_byte(stream, at) - ZERO)
        at += 1
    return value, at


@inner_kernel
def _quotient(digits: int, n_decimals: int) -> float:
    """Return digits / 10**n_decimals, correctly rounded, for 18 digits at most.

    Integers are divided until more than the 53 bits of a float are known, and these are rounded
    half to even.
    """
    divisor = int(_POWERS[n_decimals])
    bits, rest, n_shifted = digits // divisor, digits % divisor, 0
    while bits < _EXACT << 1:
        rest <<= 3  # below 8 * 10**18, so below 2**63
        bits = bits << 3 | rest // divisor
        rest %= divisor
        n_shifted += 3
    n_extra = 0
    while bits >> n_extra >= _EXACT:
        n_extra += 1
    cut, half = bits & ((1 << n_extra) - 1), 1 << (n_extra - 1)
    bits >>= n_extra
    if cut > half or (cut == half and (rest > 0 or bits & 1)):
        bits += 1
    return float(bits) * 2.0 ** (n_extra - n_shifted)


@inlined_kernel
def _byte(stream: Bytes, at: int) -> int:
    return int(np.int64(stream[at]))


@inlined_kernel
def _is_digit(char: int) -> bool:
    return ZERO <= char <= NINE


@inlined_kernel
def starts_number(char: int) -> bool:
    """Return whether a number may begin with this."""
    return _is_digit(char) or char == MINUS
