"""What a window costs the store, in steps of SQLite: it grows with no stream and no history."""

from contextlib import closing
from pathlib import Path

import pytest

from anonymizer.store import RecordStore
from tests.store.kept import closed, part, taken

_STEPS = 10
"""Of SQLite's machine, between two looks."""


def steps(path: Path, *, n_streams: int, n_windows: int) -> int:
    """Return the steps for a further window of one stream, after some of every stream."""
    n = 0

    def look() -> int:
        nonlocal n
        n += 1
        return 0

    with closing(RecordStore(path, keep_published_s=1e9)) as store:
        streams = [f"s{i}" for i in range(n_streams)]
        with store.at_once():
            for stream in streams:
                store.recall(stream, shape="a", n_sources=1)
        for window in range(n_windows + 1):
            last = window == n_windows
            if last:
                store._db.set_progress_handler(look, _STEPS)
            some = streams[:1] if last else streams
            store.take([taken(part(1, window=window), stream=stream) for stream in some])
            with store.at_once():
                for stream in some:
                    start = 10.0 * window
                    store.close_window(
                        closed(b"1", stream=stream, window=window, start=start, end=start + 10.0)
                    )
        store._db.set_progress_handler(None, 0)
    return n * _STEPS


@pytest.mark.parametrize(("n_streams", "n_windows"), [(300, 2), (1, 600)])
def test_a_window_costs_as_much_after_many_windows_and_beside_many_streams(
    tmp_path: Path, n_streams: int, n_windows: int
) -> None:
    few = steps(tmp_path / "few.sqlite", n_streams=2, n_windows=2)
    many = steps(tmp_path / "many.sqlite", n_streams=n_streams, n_windows=n_windows)
    assert many <= 1.3 * few + 100
