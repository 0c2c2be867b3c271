"""The search: every configuration of a grid, on every core.

A search from its bench to its files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal

from anonymizer.app.tuning.bench import Bench
from anonymizer.app.tuning.journal import Journal
from anonymizer.app.tuning.proposal import proposal_for_stream, proposal_for_table
from anonymizer.app.tuning.space import Configuration, Space
from anonymizer.app.tuning.trial import Row, Trial, try_row, without
from anonymizer.app.tuning.tune_files import JOURNAL, folder, write_results
from anonymizer.app.tuning.tune_report import Sort, TuneReport, report_of
from anonymizer.errors import InputError, SettingsError
from anonymizer.settings import StreamSettings


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is searched for, and where.

    Attributes
    ----------
    name
        File name of the table, or name of the stream.
    space
        What is tried.
    target
        Name of what is learned.
    min_score, max_deletion, sort
        See `TuneReport`.
    jobs
        Processes.
    stream
        The stream that the setting is for; None: a table.
    left_out
        See `TuneReport`.
    banded
        Sensitive numbers that are counted by their bands.
    """

    name: str
    space: Space
    target: str | None
    min_score: float | None = None
    max_deletion: float
    sort: Sort
    jobs: int = 1
    stream: StreamSettings | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    banded: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.target is None and self.min_score is not None:
            raise SettingsError("min-score: needs a target")
        if self.target is None and self.sort == "score":
            raise SettingsError("sort: by score needs a target")


@dataclass(frozen=True, slots=True)
class Tuned:
    """The report, the files, and why no setting was written though one is recommended."""

    report: TuneReport
    files: list[Path]
    why_no_setting: str | None


def tune(
    bench: Bench,
    asked: Search,
    out: Path,
    *,
    progress: Callable[[int, int], None] = lambda _done, _n: None,
) -> Tuned:
    """Search, and write what is found to a folder; one that was ended goes on.

    Parameters
    ----------
    progress
        Told how many configurations are done, and of how many.

    Raises
    ------
    GuaranteeError, InputError, SettingsError
        As `search`, `Space.configurations` and `write_results`.
    """
    configurations = asked.space.configurations(sensitive=bool(bench.schema.sensitive))
    _known(bench, configurations)
    journal = Journal(folder(out) / JOURNAL, bench.digest())
    trials = search(
        bench,
        configurations,
        journal,
        max_deletion=asked.max_deletion,
        jobs=asked.jobs,
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


def _known(bench: Bench, configurations: Sequence[Configuration]) -> None:
    """Refuse to leave out what is not there, or everything."""
    names = {qi.name for qi in bench.schema.qis}
    for left_out in {each.without for each in configurations}:
        if astray := [name for name in left_out if name not in names]:
            raise SettingsError(f"leave-out: {astray[0]} is no quasi-identifier")
        if names <= set(left_out):
            raise SettingsError("leave-out: at least one quasi-identifier must be left")


def _proposal(bench: Bench, asked: Search, report: TuneReport) -> tuple[str | None, str | None]:
    """Return the recommended setting, and why there is none though one is recommended."""
    if report.recommended is None:
        return None, None
    configuration = report.recommended.configuration
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
        return None, str(error)
    return text, None
