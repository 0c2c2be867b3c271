"""The search: every configuration of a grid, on every core."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal

from anonymizer.app.tuning.bench import Bench
from anonymizer.app.tuning.figures import Trial
from anonymizer.app.tuning.journal import Journal
from anonymizer.app.tuning.space import Configuration
from anonymizer.app.tuning.trial import Row, try_row
from anonymizer.errors import InputError


def search(
    bench: Bench,
    configurations: Sequence[Configuration],
    journal: Journal,
    *,
    max_deletion: float = 1.0,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _n: None,
) -> list[Trial]:
    """Return what comes of each configuration, in the order given.

    Parameters
    ----------
    journal
        What it knows is not tried again; what is found is written down at once.
    max_deletion
        Configurations that suppress more are pruned early.
    jobs
        Processes. What is found is the same for any number of them.
    progress
        Told now and then how many configurations are done.

    Raises
    ------
    GuaranteeError
        As `try_row`.
    InputError
        If the journal cannot be written, or a process was ended from outside.
    """
    found = {
        each: trial
        for each in configurations
        if (trial := journal.known.get(each)) is not None
        and not (trial.state == "pruned" and trial.deletion <= max_deletion)
    }
    progress(len(found))
    rows = _rows(each for each in configurations if each not in found)
    for trials in _tried(bench, rows, max_deletion, min(jobs, len(rows))):
        journal.add(trials)
        found |= {trial.configuration: trial for trial in trials}
        progress(len(found))
    return [_pruned(found[each], max_deletion) for each in configurations]


def _pruned(trial: Trial, max_deletion: float) -> Trial:
    """Return a trial as it were if it had been found under this bound."""
    if trial.state != "tried" or trial.deletion <= max_deletion:
        return trial
    unknown = {"score": None, "linked": None, "homogeneous": None}
    return trial.model_copy(update={"state": "pruned"} | unknown)


def _rows(configurations: Iterable[Configuration]) -> list[Row]:
    together: dict[tuple[str, int, int, tuple[str, ...]], list[int]] = {}
    for each in configurations:
        together.setdefault((each.model, each.k, each.d, each.without), []).append(each.l)
    return [Row(*of, l=tuple(diverse)) for of, diverse in together.items()]


def _tried(
    bench: Bench, rows: Sequence[Row], max_deletion: float, jobs: int
) -> Iterator[list[Trial]]:
    """Yield what comes of each row, as it comes."""
    if jobs <= 1:
        for row in rows:
            yield try_row(bench, row, max_deletion=max_deletion)
        return
    # Not forked: the libraries have threads of their own.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_hold, initargs=(bench,)
    )
    try:
        waiting = [pool.submit(_try_held, row, max_deletion) for row in rows]
        for done in as_completed(waiting):
            yield done.result()
    except BrokenProcessPool:
        raise InputError(
            "a process of the search was ended from outside, for want of memory perhaps: "
            "started once more it goes on, with fewer --jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_held: list[Bench] = []
"""In a process of the pool, the bench: sent once and not with every row."""


def _hold(bench: Bench) -> None:
    signal(SIGINT, SIG_IGN)  # of Ctrl-C the process that waits for us takes care
    _held[:] = [bench]


def _try_held(row: Row, max_deletion: float) -> list[Trial]:
    return try_row(_held[0], row, max_deletion=max_deletion)
