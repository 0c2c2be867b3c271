"""Search over the configurations of a grid, on every core and within a time budget."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from math import inf
from multiprocessing import get_context
from pathlib import Path

from anonymizer.app.tuning.bench import Bench
from anonymizer.app.tuning.forming import has_search, prepare
from anonymizer.app.tuning.journal import TrialJournal
from anonymizer.app.tuning.proposal import proposal_for_stream, proposal_for_table
from anonymizer.app.tuning.space import MINIMIZER, Configuration, Space
from anonymizer.app.tuning.time_shares import TUNE_TIME_BUDGET_S, RowTime, TimeShares
from anonymizer.app.tuning.trial import Row, Trial, no_time, scored, try_row, without
from anonymizer.app.tuning.tune_files import JOURNAL, folder, write_results
from anonymizer.app.tuning.tune_report import Sort, TuneReport, report_of
from anonymizer.child_processes import end_with_parent, starting_deaf
from anonymizer.errors import InputError, SettingsError
from anonymizer.settings import StreamSettings

_OF_SEARCHES = 0.5
"""Share of the time budget that is their work; the rest is for training and attacks."""


def search(
    bench: Bench,
    configurations: Sequence[Configuration],
    journal: TrialJournal,
    *,
    max_deletion: float = 1.0,
    jobs: int = 1,
    deadline_s: float = inf,
    time_budget_s: float = inf,
    progress: Callable[[int], None] = lambda _n: None,
) -> list[Trial]:
    """Return the trial of each configuration, in the order given.

    Parameters
    ----------
    journal
        Configurations in it are not tried again; new trials are added at once.
    max_deletion
        Configurations that suppress a larger share are pruned early.
    jobs
        Number of processes. Trials of a table do not depend on it.
    deadline_s
        No configuration begins after it, by `time.monotonic`. Those that remain have the state
        `no_time` and are not written to the journal.
    time_budget_s
        Half of it is the work of all searches of a table together, which have equal shares.
    progress
        Called with the number of configurations that are done.

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
    rows = _rows(bench, [each for each in configurations if each not in found])
    n_searches = sum(has_search(bench, each.model) for each in configurations)
    n_searches *= len(bench.windows) + len(bench.folds)
    search_s = _OF_SEARCHES * time_budget_s / n_searches if n_searches else inf
    for trials in _tried(bench, rows, max_deletion, jobs, (deadline_s, search_s)):
        tried = [trial for trial in trials if trial.state != "no_time"]
        journal.add(tried)
        found |= {trial.configuration: trial for trial in tried}
        progress(len(found))
    return [
        _pruned(found[each], max_deletion) if each in found else no_time(each)
        for each in configurations
    ]


def _pruned(trial: Trial, max_deletion: float) -> Trial:
    """Return a trial as it would be under this bound."""
    if trial.state != "tried" or trial.deletion <= max_deletion:
        return trial
    unknown = {**scored(None), "linked": None, "homogeneous": None}
    return trial.model_copy(update={"state": "pruned"} | unknown)


def _rows(bench: Bench, configurations: Sequence[Configuration]) -> list[Row]:
    """Return rows of configurations, those that search last: only they use any time that is left.

    A configuration that searches is a row of its own.
    """
    long = {each.model: has_search(bench, each.model) for each in configurations}
    together: dict[tuple[str, int, int, tuple[str, ...], int], list[int]] = {}
    for each in sorted(configurations, key=lambda each: long[each.model]):
        row = each.model, each.k, each.d, each.without, each.l if long[each.model] else 0
        together.setdefault(row, []).append(each.l)
    return [Row(*of[:4], l=tuple(ls)) for of, ls in together.items()]


def _tried(
    bench: Bench, rows: Sequence[Row], max_deletion: float, jobs: int, times: tuple[float, float]
) -> Iterator[list[Trial]]:
    """Yield the trials of each row when they are done."""
    models = sorted({row.model for row in rows})
    jobs = min(jobs, len(rows))
    deadline_s, search_s = times
    n_waiting = sum(len(row.l) for row in rows)
    shares = TimeShares(deadline_s, n_waiting=n_waiting, n_processes=jobs, search_s=search_s)
    if jobs > 1:
        yield from _tried_by_processes(bench, rows, max_deletion, shares, (jobs, models))
        return
    prepare(bench, models)
    rest_s = 0.0
    for i, row in enumerate(rows):
        row_time = shares.begin(i, len(row.l), rest_s=rest_s)
        trials, took_s = _try_row(bench, row, max_deletion, row_time)
        rest_s = max(rest_s, took_s)
        shares.end(i)
        yield trials


def _tried_by_processes(
    bench: Bench,
    rows: Sequence[Row],
    max_deletion: float,
    shares: TimeShares,
    processes: tuple[int, Sequence[str]],
) -> Iterator[list[Trial]]:
    jobs, models = processes
    # Not forked: the libraries have threads of their own.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_hold, initargs=(bench, models)
    )
    try:
        with starting_deaf():
            started = [pool.submit(_ready) for _ in range(jobs)]
        wait(started)  # its time is no configuration's
        running: dict[Future[tuple[list[Trial], float]], int] = {}
        rest_s, waiting = 0.0, iter(enumerate(rows))
        while True:
            while len(running) < jobs and (following := next(waiting, None)) is not None:
                i, row = following
                row_time = shares.begin(i, len(row.l), rest_s=rest_s)
                running[pool.submit(_try_held, row, max_deletion, row_time)] = i
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                shares.end(running.pop(done))
                trials, took_s = done.result()
                rest_s = max(rest_s, took_s)
                yield trials
    except BrokenProcessPool:
        raise InputError(
            "a process of the search was ended from outside, perhaps for lack of memory: "
            "start the command again to continue, with fewer --jobs"
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # results are in: no need to wait for exits


_held: list[Bench] = []
"""In a process of the pool, the bench: sent once instead of with every row."""


def _hold(bench: Bench, models: Sequence[str]) -> None:
    end_with_parent()
    _held[:] = [bench]
    prepare(bench, models)


def _ready() -> None:
    """Return once the process has started."""


def _try_held(row: Row, max_deletion: float, row_time: RowTime) -> tuple[list[Trial], float]:
    return _try_row(_held[0], row, max_deletion, row_time)


def _try_row(
    bench: Bench, row: Row, max_deletion: float, row_time: RowTime
) -> tuple[list[Trial], float]:
    """Return the trials of a row, and the time of each apart from its searches."""
    began_s = time.monotonic()
    trials = try_row(bench, row, max_deletion=max_deletion, row_time=row_time)
    rest_s = time.monotonic() - began_s - row_time.searched_s
    return trials, max(rest_s, 0.0) / len(trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Settings of a search."""

    name: str
    """File name of the table, or name of the stream."""
    space: Space
    """The configurations to try."""
    target: str | None
    """Name of the target, or None."""
    min_score: float | None = None
    max_deletion: float
    sort: Sort
    """`min_score`, `max_deletion`, `sort`: see `TuneReport`."""
    jobs: int = 1
    """Number of processes."""
    time_budget_s: float = TUNE_TIME_BUDGET_S
    """Time for all configurations together; 0: no limit."""
    stream: StreamSettings | None = None
    """The stream that the proposal is for; None: a table."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """See `TuneReport`."""
    banded: Sequence[str] = ()
    """Sensitive numbers that are counted by their bands."""

    def __post_init__(self) -> None:
        if self.target is None and self.min_score is not None:
            raise SettingsError("min-score: requires a target")
        if self.target is None and self.sort == "score":
            raise SettingsError("sort: score requires a target")


@dataclass(frozen=True, slots=True)
class Tuned:
    """The report, the files, and why no settings were written for a recommendation."""

    report: TuneReport
    files: list[Path]
    why_no_setting: str | None


def tune(
    bench: Bench,
    asked: SearchSettings,
    out: Path,
    *,
    progress: Callable[[int, int], None] = lambda _done, _n: None,
) -> Tuned:
    """Search, and write the results to a folder; an earlier search in it is continued.

    `progress`: called with the number of configurations that are done, and the number of all.

    Raises `GuaranteeError` or `InputError` or `SettingsError` as `search`, `Space.configurations`
    and `write_results`.
    """
    deadline_s = time.monotonic() + (asked.time_budget_s or inf)
    configurations = asked.space.configurations(sensitive=bool(bench.schema.sensitive))
    _check_left_out(bench, configurations)
    if MINIMIZER in asked.space.models and bench.own is None:
        raise SettingsError(f"model: {MINIMIZER} requires --estimator")
    journal = TrialJournal(folder(out) / JOURNAL, bench.digest())
    trials = search(
        bench,
        configurations,
        journal,
        max_deletion=asked.max_deletion,
        jobs=asked.jobs,
        deadline_s=deadline_s,
        time_budget_s=asked.time_budget_s or inf,
        progress=lambda done: progress(done, len(configurations)),
    )
    report = report_of(
        bench,
        trials,
        name=asked.name,
        target=asked.target,
        min_score=asked.min_score,
        max_deletion=asked.max_deletion,
        sort=asked.sort,
        left_out=dict(asked.left_out),
    )
    proposal, why = _proposal(bench, asked, report)
    return Tuned(report, write_results(report, proposal, out), why)


def _check_left_out(bench: Bench, configurations: Sequence[Configuration]) -> None:
    """Raise `SettingsError` for unknown quasi-identifiers, or if all are left out."""
    names = {qi.name for qi in bench.schema.qis}
    for left_out in {each.without for each in configurations}:
        if astray := [name for name in left_out if name not in names]:
            raise SettingsError(f"leave-out: {astray[0]} is not a quasi-identifier")
        if names <= set(left_out):
            raise SettingsError("leave-out: at least one quasi-identifier must remain")


def _proposal(
    bench: Bench, asked: SearchSettings, report: TuneReport
) -> tuple[str | None, str | None]:
    """Return the settings of the recommended configuration, or why they cannot be written."""
    if report.recommended is None:
        return None, None
    configuration = report.recommended.configuration
    if configuration.model == MINIMIZER:
        return None, "minimized rows are no release"
    shown = without(bench, configuration.without)
    promise = shown.promise(
        k=configuration.k,
        d=configuration.d,
        l=configuration.l,
        qis=[qi.name for qi in shown.schema.qis],
    )
    try:
        if asked.stream is not None:
            text = proposal_for_stream(asked.stream, configuration, promise, target=asked.target)
            return text, None
        text = proposal_for_table(
            shown.schema,
            name=asked.name.partition(".")[0],
            configuration=configuration,
            promise=promise,
            target=asked.target,
            banded=asked.banded,
        )
    except SettingsError as error:
        return None, f"no stream can have such attributes: {error}"
    return text, None
