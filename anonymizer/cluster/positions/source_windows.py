"""Windows that all sources state: joined when each has stated one, left out if one of them cannot.

What a source knows of a window comes in pieces that Kafka takes. Of a window that a source has not
watched it states nothing, and later ones all the same. A source that stands still holds up some
windows; then they are left out.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.arrays import IntArray

_PIECE_BYTES = 512 * 1024
"""Of what is in one `WindowPiece`, unless one thing is larger: Kafka takes 1 MiB by default."""
_NEVER = -(1 << 62)
_T = TypeVar("_T")
_Content = TypeVar("_Content")


class WindowPiece(NamedTuple, Generic[_T]):
    """Some of what a source states of a window.

    Attributes
    ----------
    source, window
        Number of the source and of the window.
    piece
        Number of this among the pieces of the same, from 0.
    is_last
        Whether no other piece of the same follows.
    content
        What is stated.
    """

    source: int
    window: int
    piece: int
    is_last: bool
    content: _T

    def __repr__(self) -> str:
        """Show no content."""
        return f"WindowPiece({self.source}, {self.window}, {self.piece})"


def cut(n_bytes: Sequence[int] | IntArray) -> Iterator[tuple[int, int, int, bool]]:
    """Yield number, bounds and whether it is the last of pieces of things of these sizes.

    At least one.
    """
    piece = np.cumsum([0, *n_bytes])[:-1] // _PIECE_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(n_bytes)]
    for number, (first, end) in enumerate(pairwise(cuts)):
        yield number, first, end, end == len(n_bytes)


def _same(content: Any) -> Any:  # noqa: ANN401  of any kind that can be packed
    return content


def encode_piece(
    kind: bytes, stated: WindowPiece[_T], pack_content: Callable[[_T], Any] = _same
) -> bytes:
    """Return a piece as bytes; the first says what it is of."""
    return kind + pack([*stated[:-1], pack_content(stated.content)])


def decode_piece(
    value: bytes, unpack_content: Callable[[Any], _T] = _same, *, n_sources: int
) -> WindowPiece[_T]:
    """Return the piece that was encoded.

    Raises
    ------
    ValueError
        If it is not of one of so many sources.
    """
    source, window, piece, is_last, packed = unpack(value[1:])
    if source not in range(n_sources) or not all(isinstance(each, int) for each in (window, piece)):
        raise ValueError("this is no piece of a window")
    return WindowPiece(source, window, piece, bool(is_last), unpack_content(packed))


class SourceWindows(Generic[_Content]):
    """Joins what all sources state.

    Parameters
    ----------
    n_sources
        How many there are.
    most_waiting
        Windows that wait for a source.
    packed, unpacked
        Turn a content into something that can be packed, and back.

    Attributes
    ----------
    n_suppressed
        Windows so far that were left out.
    """

    def __init__(
        self,
        n_sources: int,
        *,
        most_waiting: int,
        packed: Callable[[_Content], Any] = _same,
        unpacked: Callable[[Any], _Content] = _same,
    ) -> None:
        self._most_waiting, self._packed, self._unpacked = most_waiting, packed, unpacked
        self._coming: list[tuple[int, list[_Content]]] = [(_NEVER, []) for _ in range(n_sources)]
        """A window of each source that is not complete, and its pieces."""
        self._stated: list[dict[int, list[_Content]]] = [{} for _ in range(n_sources)]
        """The pieces of what each source has stated, by window."""
        self._newest = [_NEVER] * n_sources
        """The last window that each has stated."""
        self._settled = _NEVER
        """The last window that is not waited for any more."""
        self.n_suppressed = 0

    def take(self, stated: WindowPiece[_Content]) -> list[tuple[int, list[_Content]]]:
        """Take in a piece; return all pieces of each window that every source has stated by now.

        Those of a source come in order, and some again.
        """
        source, window, piece, is_last, content = stated
        before, pieces = self._coming[source]
        pieces = pieces if window == before else []
        if window <= self._newest[source] or piece != len(pieces):
            return []
        self._coming[source] = window, [*pieces, content]
        if not is_last:
            return []
        if window > self._settled:
            self._stated[source][window] = self._coming[source][1]
        self._coming[source], self._newest[source] = (_NEVER, []), window
        last = max(min(self._newest), max(self._newest) - self._most_waiting, self._settled)
        found = []
        for each in sorted({each for of in self._stated for each in of if each <= last}):
            said = [of.pop(each, []) for of in self._stated]
            if all(said):
                found.append((each, [one for of_source in said for one in of_source]))
            else:
                self.n_suppressed += 1
        self._settled = last
        return found

    def state(self) -> dict[str, Any]:
        """Return what changes with each piece."""
        return {
            "coming": [[window, list(map(self._packed, of))] for window, of in self._coming],
            "stated": [
                [[window, list(map(self._packed, pieces))] for window, pieces in of.items()]
                for of in self._stated
            ],
            "newest": self._newest,
            "counts": [self._settled, self.n_suppressed],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._coming = [(window, list(map(self._unpacked, of))) for window, of in state["coming"]]
        self._stated = [
            {window: list(map(self._unpacked, pieces)) for window, pieces in of}
            for of in state["stated"]
        ]
        self._newest = state["newest"]
        self._settled, self.n_suppressed = state["counts"]
