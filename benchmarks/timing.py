"""Timing: the best of several runs, after one run that is not counted."""

import gc
import itertools
import json
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_POSITION = b'{"ts":1800000000.123,"lat":52.5200066,"lon":13.4049540}'
_MESSAGES = 20_000
_RUNS = range(5, 50)
_RECORDS = 100_000


def runs_for(n_records: int) -> int:
    """Return the number of runs for this many records: more for fewer records."""
    return min(max(_RECORDS // n_records, _RUNS.start), _RUNS.stop)


def best_of(work: Callable[[T], object], inputs: Iterable[T]) -> float:
    """Return the shortest time of `work` over the inputs, in seconds, without the first one.

    Parameters
    ----------
    work
        Called once with each input; may keep state from one to the next.
    inputs
        At least two. They are drawn one by one, outside of the measured time.

    Notes
    -----
    The first run compiles kernels and fills caches: a service has done so long before. The
    least time, because whatever else runs on the machine only ever adds. The garbage collector
    stays on, as in the service.
    """
    pending = iter(inputs)
    work(next(pending))
    gc.collect()
    return min(_seconds(work, each) for each in pending)


def best_us(work: Callable[[T], object], given: T, *, n_records: int, runs: int = 3) -> float:
    """Return the best time over the same input, in microseconds a record."""
    return best_of(work, itertools.repeat(given, runs + 1)) / n_records * 1e6


def json_us() -> float:
    """Return the CPU time of `json.loads` on one position, in microseconds: the unit of ratios.

    Other programs on the machine lengthen CPU time less than the time by the clock.
    """
    payloads = [_POSITION] * _MESSAGES
    return min(_cpu_seconds(_load_all, payloads) for _ in range(_RUNS.start)) / _MESSAGES * 1e6


def agree(ours: object, twins: object) -> None:
    """Raise if a peer gives another answer, because its time would then not be comparable.

    Raises
    ------
    RuntimeError
        If the two are not equal.
    """
    if ours != twins:
        raise RuntimeError("the peer answers otherwise; their times cannot be compared")


def _seconds(work: Callable[[T], object], given: T) -> float:
    began = time.perf_counter()
    work(given)
    return time.perf_counter() - began


def _load_all(payloads: Iterable[bytes]) -> list[object]:
    return [json.loads(payload) for payload in payloads]


def _cpu_seconds(work: Callable[[T], object], given: T) -> float:
    began = time.process_time()
    work(given)
    return time.process_time() - began
