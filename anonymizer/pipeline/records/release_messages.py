"""Releases as bytes, for the processes that answer queries about them.

A window comes in several messages, in any order: its published classes, from each stage that made
some, and the window itself, which says how many classes there are. It can be shown when all are
there.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from anonymizer.pipeline.records.store_port import PublishedWindow

_CLASSES, _WINDOW = b"P", b"Q"
_Window = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]


class ReleasedClasses(NamedTuple):
    """Classes of a window, as they are published."""

    stream: str
    window: int
    payloads: Sequence[bytes]

    def __repr__(self) -> str:
        """Reveal no content."""
        return f"ReleasedClasses({self.stream!r}, {self.window}, {len(self.payloads)} classes)"


class _Classes(msgspec.Struct, array_like=True, frozen=True):
    stream: str
    window: _Window
    payloads: list[bytes]


class _Head(msgspec.Struct, array_like=True, frozen=True):
    stream: str
    window: _Window
    start: float
    end: float
    closed_at: float
    summary: dict[str, float]


_ENCODER = msgspec.msgpack.Encoder()
_READ_CLASSES = msgspec.msgpack.Decoder(_Classes)
_READ_HEAD = msgspec.msgpack.Decoder(_Head)


def encode_classes(classes: ReleasedClasses) -> bytes:
    """Return classes as bytes."""
    return _CLASSES + _ENCODER.encode(_Classes(*classes[:2], list(classes.payloads)))


def encode_window(release: PublishedWindow) -> bytes:
    """Return a closed window as bytes; `summary["classes"]` is the number of its classes."""
    return _WINDOW + _ENCODER.encode(
        _Head(
            release.stream,
            release.window,
            release.start,
            release.end,
            release.closed_at,
            dict(release.summary),
        )
    )


def decode_release(value: bytes) -> ReleasedClasses | PublishedWindow:
    """Return what was encoded.

    Raises
    ------
    ValueError
        If the bytes are neither.
    """
    rest = memoryview(value)[1:]
    try:
        if value[:1] == _CLASSES:
            classes = _READ_CLASSES.decode(rest)
            return ReleasedClasses(classes.stream, classes.window, classes.payloads)
        if value[:1] == _WINDOW:
            head = _READ_HEAD.decode(rest)
            return PublishedWindow(
                head.stream, head.window, head.start, head.end, head.closed_at, head.summary
            )
    except (ValueError, msgspec.MsgspecError):
        pass
    raise ValueError("these bytes are no part of a release") from None
