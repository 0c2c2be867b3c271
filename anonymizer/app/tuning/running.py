"""A search from its bench to its files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anonymizer.app.tuning.bench import Bench
from anonymizer.app.tuning.journal import Journal
from anonymizer.app.tuning.proposal import proposal_for_stream, proposal_for_table
from anonymizer.app.tuning.search import search
from anonymizer.app.tuning.space import Configuration, Space
from anonymizer.app.tuning.trial import without
from anonymizer.app.tuning.tune_files import JOURNAL, folder, write_results
from anonymizer.app.tuning.tune_report import Sort, TuneReport, report_of
from anonymizer.errors import SettingsError
from anonymizer.settings import StreamSettings


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
