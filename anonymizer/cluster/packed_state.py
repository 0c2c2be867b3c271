"""Columns as bytes: what moves between stages, and what is stored of them.

Anything of msgpack, and one-dimensional arrays of numbers.
"""

from typing import Any

import msgspec
import numpy as np

_ARRAY = 1
"""Code of an array among the extensions of msgpack."""


def _to_extension(value: Any) -> Any:  # noqa: ANN401  any array
    if isinstance(value, np.ndarray):
        head = value.dtype.str.encode()
        return msgspec.msgpack.Ext(_ARRAY, bytes([len(head)]) + head + value.tobytes())
    raise TypeError(f"{type(value)} cannot be packed")


def _from_extension(code: int, data: memoryview) -> Any:  # noqa: ANN401  any array
    if code != _ARRAY:
        raise ValueError("these bytes were packed by something else")
    head = 1 + data[0]
    return np.frombuffer(bytearray(data[head:]), np.dtype(bytes(data[1:head]).decode()))


def pack_state(of: str, state: dict[str, Any]) -> bytes:
    """Return a state as bytes that name what it is of."""
    return pack({"of": of} | state)


def unpack_state(of: str, snapshot: bytes) -> dict[str, Any]:
    """Return the state that was packed.

    Raises `ValueError` if the bytes hold none of the same kind.
    """
    try:
        state = unpack(snapshot)
    except (ValueError, TypeError, IndexError, RecursionError):
        state = None
    if not isinstance(state, dict) or state.get("of") != of:
        raise ValueError(f"these bytes are no snapshot of {of}") from None
    return state


pack = msgspec.msgpack.Encoder(enc_hook=_to_extension).encode
unpack = msgspec.msgpack.Decoder(ext_hook=_from_extension).decode
