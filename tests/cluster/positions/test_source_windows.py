"""What all sources state of windows: joined once, whole, and without what is half said."""

from anonymizer.cluster.positions.source_windows import SourceWindows, WindowPiece


def windows() -> SourceWindows[str]:
    return SourceWindows(2, most_waiting=3)


def say(
    joined: SourceWindows[str], source: int, window: int, *pieces: str, of: int | None = None
) -> list[tuple[int, list[str]]]:
    """State the first pieces of a window, of so many."""
    n = len(pieces) if of is None else of
    found = []
    for piece, content in enumerate(pieces):
        found += joined.take(WindowPiece(source, window, piece, piece == n - 1, content))
    return found


def test_a_window_of_which_a_source_said_half_is_not_mixed_with_a_later_one() -> None:
    joined = windows()
    say(joined, 0, 7, "a", "b", of=3)
    say(joined, 1, 9, "y")
    # It has lost its state, and goes on with the next window that it watches whole.
    assert say(joined, 0, 9, "c", "d") == [(9, ["c", "d", "y"])]
    say(joined, 0, 10, "e", "f", of=3)
    say(joined, 1, 11, "z")
    assert say(joined, 0, 11, "g", "h", "i") == [(11, ["g", "h", "i", "z"])]


def test_what_is_said_again_holds_up_nothing() -> None:
    joined = windows()
    for window in (7, 8, 7):
        assert say(joined, 0, window, f"a{window}") == []
    assert say(joined, 1, 7, "b7") == [(7, ["a7", "b7"])]
    assert say(joined, 1, 8, "b8") == [(8, ["a8", "b8"])]
    assert say(joined, 0, 8, "a8") == say(joined, 1, 8, "b8") == []
    assert joined.n_suppressed == 0
