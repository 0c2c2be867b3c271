"""Windows that all sources state: joined when each has stated one, left out if one of them cannot.

What a source knows of a window comes in pieces that Kafka takes. Of a window that a source has not
watched it states nothing, and later ones all the same. A source that stands still holds up some
windows; then they are left out.
"""

from typing import Any, Generic, NamedTuple, TypeVar

from anonymizer.domain.discreet import discreet

_NEVER = -(1 << 62)
_T = TypeVar("_T")
_Content = TypeVar("_Content")


@discreet
class WindowPiece(NamedTuple, Generic[_T]):
    """Some of what a source states of a window."""

    source: int
    window: int
    """`source`, `window`: number of the source and of the window."""
    piece: int
    """Number of this among the pieces of the same, from 0."""
    is_last: bool
    """Whether no other piece of the same follows."""
    content: _T
    """What is stated."""


class SourceWindows(Generic[_Content]):
    """Joins what all sources state.

    `most_waiting`: windows that wait for a source.
    """

    def __init__(self, n_sources: int, *, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._coming: list[tuple[int, list[_Content]]] = [(_NEVER, []) for _ in range(n_sources)]
        """A window of each source that is not complete, and its pieces."""
        self._stated: list[dict[int, list[_Content]]] = [{} for _ in range(n_sources)]
        """The pieces of what each source has stated, by window."""
        self._newest = [_NEVER] * n_sources
        """The last window that each has stated."""
        self._settled = _NEVER
        """The last window that is not waited for any more."""
        self.n_suppressed = 0
        """Windows so far that were left out."""

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
        """Return what changes with each piece; contents as they are."""
        return {
            "coming": [[window, pieces] for window, pieces in self._coming],
            "stated": [[[window, pieces] for window, pieces in of.items()] for of in self._stated],
            "newest": self._newest,
            "counts": [self._settled, self.n_suppressed],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._coming = [(window, pieces) for window, pieces in state["coming"]]
        self._stated = [dict(of) for of in state["stated"]]
        self._newest = state["newest"]
        self._settled, self.n_suppressed = state["counts"]
