"""Releases as bytes, for the processes that answer queries about them.

A window comes in several messages, in any order: its published classes, from each stage that made
some, and the window itself, which says how many classes there are. It can be shown when all are
there.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.records.store_port import PublishedWindow

_CLASSES, _WINDOW = b"P", b"Q"
_Window = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]


@discreet
class ReleasedClasses(NamedTuple):
    """Classes of a window, as they are published."""

    stream: str
    window: _Window
    payloads: Sequence[bytes]


_ENCODER = msgspec.msgpack.Encoder()
_READ_CLASSES = msgspec.msgpack.Decoder(ReleasedClasses)
_READ_HEAD = msgspec.msgpack.Decoder(tuple[str, _Window, float, float, float, dict[str, float]])


def encode_classes(classes: ReleasedClasses) -> bytes:
    """Return classes as bytes."""
    return _CLASSES + _ENCODER.encode(classes)


def encode_window(release: PublishedWindow) -> bytes:
    """Return a closed window as bytes; `summary["classes"]` is the number of its classes."""
    of = release
    said = of.stream, of.window, of.start, of.end, of.closed_at, dict(of.summary)
    return _WINDOW + _ENCODER.encode(said)


def decode_release(value: bytes) -> ReleasedClasses | PublishedWindow:
    """Return what was encoded.

    Raises `ValueError` if the bytes are neither.
    """
    rest = memoryview(value)[1:]
    try:
        if value[:1] == _CLASSES:
            return _READ_CLASSES.decode(rest)
        if value[:1] == _WINDOW:
            return PublishedWindow(*_READ_HEAD.decode(rest))
    except (ValueError, msgspec.MsgspecError):
        pass
    raise ValueError("these bytes are no part of a release") from None
