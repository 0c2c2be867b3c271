"""Payloads of packed fields, as a struct of C: `struct <iiI lat lon time` reads twelve bytes.

The form is that of Python's `struct`, with its byte order; then a name for each value.

References
----------
.. [1] https://docs.python.org/3/library/struct.html#format-strings
"""

import struct
from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

WORD = "struct"
_MOST_BYTES = 4096


def fields_reader(declared: str) -> Callable[[bytes], bytes | None]:
    """Return what reads a payload as a JSON object; None if it has another size.

    Numbers that are not finite are null; texts (`8s`) end before a NUL.

    Raises `ValueError` if the form is none, has other values than names, or is of more than 4,096
    bytes.
    """
    _, form, *names = declared.split(" ")
    try:
        packed = struct.Struct(form)
    except struct.error as error:
        raise ValueError(f"{form}: {error}") from None
    if packed.size > _MOST_BYTES:
        raise ValueError(f"{form}: is of more than {_MOST_BYTES} bytes")
    values = packed.unpack(bytes(packed.size))
    if len(values) != len(names) or len(set(names)) != len(names):
        raise ValueError(f"{form}: needs {len(values)} different names, one for each value")

    def read(payload: bytes) -> bytes | None:
        if len(payload) != packed.size:
            return None
        stated = map(_stated, packed.unpack(payload))
        return msgspec.json.encode(dict(zip(names, stated, strict=True)))

    return read


def _stated(value: Any) -> Any:  # noqa: ANN401  a number, a truth or bytes
    if isinstance(value, bytes):
        return value.partition(b"\0")[0].decode("utf-8", "replace")
    return value if isfinite(value) else None
