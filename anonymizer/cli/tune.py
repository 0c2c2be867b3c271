"""Command `anonymizer tune`: search for an affordable k and l."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anonymizer.app.table_options import ColumnOptions, Names, Option, names_of
from anonymizer.app.tuning.time_shares import TUNE_TIME_BUDGET_S
from anonymizer.cli.columns import names, takes_options
from anonymizer.cli.serve import errors_naming, settings_of
from anonymizer.errors import SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.app.tuning.bench import Bench, Trained
    from anonymizer.app.tuning.own_model import OwnModel
    from anonymizer.app.tuning.recording import RecordedMessage
    from anonymizer.app.tuning.search import SearchSettings
    from anonymizer.cli.terminal import Terminal
    from anonymizer.files.tables import TextTable
    from anonymizer.pipeline.records.declaration import Stream
    from anonymizer.settings import Settings


@contextmanager
def _progress(console: "Terminal", budget_s: float) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows the configurations that are done, and the time that is left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{max(budget_s - (task.elapsed or 0.0), 0.0):.0f} s left")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeLeft() if budget_s else TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("configurations", total=None)

        def report(done: int, n: int) -> None:
            bar.update(task, completed=done, total=n)

        yield report


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions(ColumnOptions):
    """What `tune` tries, and which settings it recommends."""

    qi: Annotated[Names, Option("Quasi-identifiers.", metavar="A,B")] = ()
    target: Annotated[
        str | None,
        Option("Classes or numbers that a model will learn from the release.", metavar="COLUMN"),
    ] = None
    target_kind: Annotated[
        Literal["class", "number"] | None,
        Option(
            "What the target of a table is.",
            shown="number if it has more than 10 numbers and nothing else; with --estimator, what "
            "that predicts",
        ),
    ] = None
    k: Annotated[
        str, Option("k to try, or a list: 5,10,20.", flag="-k --k", metavar="LO:HI[:STEP]")
    ] = "2:20"
    l: Annotated[  # noqa: E741  the field's name for it
        str | None,
        Option("l to try, likewise.", flag="-l --l", metavar="LO:HI[:STEP]", shown="from 1 to k"),
    ] = None
    d: Annotated[
        str | None,
        Option(
            "d to try, likewise.", flag="-d --d", metavar="LO:HI[:STEP]", shown="1, kd and kld 2"
        ),
    ] = None
    model: Annotated[
        str | None,
        Option(
            "One or more of cells, kd, kld, kaca; with --estimator also minimizer.",
            metavar="A,B",
            shown="cells; for a stream its own",
        ),
    ] = None
    leave_out: Annotated[
        list[str] | None,
        Option(
            "Also try a release without these quasi-identifiers; may be repeated.", metavar="A,B"
        ),
    ] = None
    min_score: Annotated[
        float | None,
        Option(
            "Lowest score of a recommendation.",
            shown="0.02 below the score with the original records",
            least=0,
            most=1,
        ),
    ] = None
    max_deletion: Annotated[
        float, Option("Largest share of suppressed records.", least=0, most=1)
    ] = 0.05
    sort: Annotated[
        Literal["score", "deletion"] | None,
        Option(
            "By score, highest first, or by deletion, lowest first.",
            shown="score; deletion without a target",
        ),
    ] = None
    learner: Annotated[
        Literal["tree", "forest"], Option("The model: a decision tree, or a random forest.")
    ] = "tree"
    held_out: Annotated[
        float, Option("Share of persons or windows that test the model.", least=0.01, most=0.9)
    ] = 0.25
    estimator: Annotated[
        Path | None,
        Option(
            "Your own classifier or regressor of scikit-learn, for a table.", metavar="FILE.skops"
        ),
    ] = None
    trust: Annotated[
        list[str] | None,
        Option(
            "Load this type, too, from the estimator's file; may be repeated. Loading runs "
            "its code.",
            metavar="TYPE",
        ),
    ] = None
    folds: Annotated[
        int | None,
        Option(
            "Folds of a stratified cross-validation of a table; 0: hold out once.",
            shown="5 of a table with fewer than 625 rows held out, with --estimator, and "
            "for a target of numbers; otherwise 0",
            least=0,
            most=100,
        ),
    ] = None
    repeats: Annotated[
        int, Option("Times that the records are divided into folds.", least=1, most=1000)
    ] = 2
    stream: Annotated[str | None, Option("Tune this stream of the settings.", metavar="NAME")] = (
        None
    )
    config: Annotated[
        Path | None, Option("Settings of the stream.", flag="--config -c", metavar="FILE")
    ] = None
    tap: Annotated[
        float | None,
        Option(
            "Listen to its topics for this long, instead of a file.", metavar="SECONDS", least=1
        ),
    ] = None
    jobs: Annotated[int | None, Option("Processes.", shown="one per core", least=1)] = None
    time_budget_s: Annotated[
        float,
        Option(
            "Time for all configurations together; 0: no limit.",
            flag="--time-budget",
            metavar="SECONDS",
            least=0,
        ),
    ] = TUNE_TIME_BUDGET_S
    seed: Annotated[int, Option("Seed of everything random.", least=0)] = 0


@takes_options(
    TuneOptions,
    order="out table qi sa target target_kind k l d model leave_out bands min_score max_deletion"
    " sort learner held_out estimator trust folds repeats ...",
    without="as_published keep labels measures",
)
def tune(
    out: Annotated[Path, typer.Option(help="Folder of the results; a search in it is continued.")],
    options: TuneOptions,
    table: Annotated[
        Path | None,
        typer.Argument(
            help="csv, csv.gz or parquet. For a stream: recorded messages, as JSON lines or "
            "a table of topic and payload."
        ),
    ] = None,
) -> None:
    r"""Search for an affordable k and l, and propose settings.

    Tries every configuration: what share of the records it deletes, how much information it loses,
    what a model still learns from it, and what an attack finds. Configurations outside the bounds
    are listed but never recommended. Of the others, the one with the largest k times l is
    recommended. Writes results.csv, results.json, front.png, recommended.toml (settings for
    `anonymizer serve`), and journal.jsonl.

    The time budget is shared by all configurations. One that had no time is listed as such, and is
    tried when the command is started again with the same folder.

    [bold]Examples[/bold]

        anonymizer tune people.csv --qi age,zip,job --sa illness --target income --out tuned

        anonymizer tune people.csv --qi age,zip,job --target income --estimator mine.skops
            --model cells,minimizer --out tuned

        anonymizer tune records.jsonl --stream fleet --config gateway.toml --out tuned

        anonymizer tune --tap 600 --stream fleet --config gateway.toml --out tuned
    """
    require("learn", "plots")
    from anonymizer.app.tuning.bench import Trained
    from anonymizer.app.tuning.search import tune as run
    from anonymizer.cli.terminal import Terminal
    from anonymizer.cli.tune_tables import print_results

    _check(options, table)
    trained = Trained(
        target=options.target,
        learner=options.learner,
        held_out=options.held_out,
        own=_own_model(options.estimator, options.trust or [], options.seed),
        kind=options.target_kind,
    )
    settings, declared = _declared(options.stream, options.config)
    asked = _search(options, table, declared)
    console = Terminal(stderr=True)
    if settings is not None and declared is not None:
        if options.qi or options.sa or options.bands:
            raise SettingsError("qi, sa, bands: not allowed, a stream declares its attributes")
        # Before the user listens for an hour.
        asked.space.configurations(sensitive=bool(declared.schema.sensitive))
        bench, left_out = _stream_bench(
            settings, declared, table, options.tap, trained, seed=options.seed, console=console
        )
        asked = replace(asked, left_out=left_out)
    else:
        assert table is not None  # noqa: S101  otherwise there is a stream, with --tap
        bench = _table_bench(options, table, trained, console)
    with _progress(console, options.time_budget_s) as report_progress:
        tuned = run(bench, asked, out, progress=report_progress)
    print_results(console, tuned)


def _check(options: TuneOptions, table: Path | None) -> None:
    """Check that options fit each other."""
    of_table = options.estimator is not None or bool(options.folds)
    if options.folds == 1:
        raise SettingsError("folds: must be 2 or more, or 0")
    if options.stream is not None and of_table:
        raise SettingsError("estimator, folds: only for a table")
    if options.target is None and of_table:
        raise SettingsError("estimator, folds: require a target")
    if options.target_kind is not None and (options.stream is not None or options.target is None):
        raise SettingsError("target-kind: requires a target, and a table")
    if (options.stream is None) is not (options.config is None):
        raise SettingsError("stream and config belong together")
    if options.tap is not None and options.stream is None:
        raise SettingsError("tap: requires a stream")
    if (table is None) is (options.tap is None):
        raise SettingsError("there must be either a file or, for a stream, --tap")


def _search(options: TuneOptions, table: Path | None, stream: "Stream | None") -> "SearchSettings":
    from anonymizer.algorithms.models.cells import MODEL as CELLS
    from anonymizer.app.tuning.search import SearchSettings
    from anonymizer.app.tuning.space import Space, numbers

    usual: Literal["score", "deletion"] = "deletion" if options.target is None else "score"
    return SearchSettings(
        name=options.stream or (table.name if table else ""),
        space=Space(
            models=names(options.model or (stream.settings.model if stream else CELLS.name)),
            k=numbers("k", options.k),
            l=numbers("l", options.l) if options.l else (),
            d=numbers("d", options.d) if options.d else (),
            without=[(), *(tuple(names(each)) for each in options.leave_out or ())],
            least_d=2 if stream and stream.in_cohorts and stream.settings.enforces else 1,
        ),
        target=options.target,
        min_score=options.min_score,
        max_deletion=options.max_deletion,
        sort=options.sort or usual,
        jobs=options.jobs or os.cpu_count() or 1,
        time_budget_s=options.time_budget_s,
        stream=stream.settings if stream else None,
        banded=tuple(options.bands or ()),
    )


def _table_bench(
    options: TuneOptions, table: Path, trained: "Trained", console: "Terminal"
) -> "Bench":
    from anonymizer.app.anonymize.plan import declared_of
    from anonymizer.app.tuning.bench import bench_of_table
    from anonymizer.files.tables import read_table

    target = options.target
    kept = () if target is None or target in names_of(options.sa) else (target,)
    columns = declared_of(replace(options, keep=kept))
    with console.status("reading the table"):
        read = read_table(table, columns.columns)
        trained = _validated(trained, read, options.folds, options.repeats)
        return bench_of_table(read, columns, trained, bands=options.bands or {}, seed=options.seed)


def _validated(
    trained: "Trained", table: "TextTable", folds: int | None, repeats: int
) -> "Trained":
    """Return the training with its folds; None: as many as are usual for the table."""
    from anonymizer.app.tuning.bench import predicts_numbers
    from anonymizer.app.tuning.cross_validation import CrossValidation, usual_folds

    if trained.target is None:
        return trained
    if folds is None:
        required = bool(trained.own) or predicts_numbers(table, trained)
        folds = usual_folds(len(table), trained.held_out, always=required)
    return replace(trained, validation=CrossValidation(folds, repeats) if folds else None)


def _own_model(path: Path | None, trusted: list[str], seed: int) -> "OwnModel | None":
    if path is None:
        return None
    require("skops")
    from anonymizer.app.tuning.own_model import read_own_model

    return read_own_model(path, trusted=trusted, seed=seed)


def _declared(
    stream: str | None, config: Path | None
) -> "tuple[Settings, Stream] | tuple[None, None]":
    """Return the settings and the stream that are requested, or None."""
    if stream is None or config is None:
        return None, None
    settings = settings_of(config)
    with errors_naming(config):
        return settings, _stream(settings, stream)


def _stream(settings: "Settings", name: str) -> "Stream":
    from anonymizer.app.gateway.declared_streams import declared_streams

    for stream in declared_streams(settings):
        if stream.settings.name == name:
            return stream
    raise SettingsError("streams: there is none of the requested name")


def _stream_bench(
    settings: "Settings",
    stream: "Stream",
    path: Path | None,
    tap_s: float | None,
    trained: "Trained",
    *,
    seed: int,
    console: "Terminal",
) -> "tuple[Bench, Mapping[str, int]]":
    from anonymizer.app.tuning.recording import (
        bench_of_stream,
        joined_windows,
        read_messages,
        target_column,
    )

    target_column(stream, trained.target)
    messages: Iterator[RecordedMessage] | list[RecordedMessage]
    if path is not None:
        messages = read_messages(path)
    else:
        import asyncio

        from anonymizer.app.tuning.recording import tap

        assert tap_s is not None  # noqa: S101  the caller checked it
        with console.status(f"listening for {tap_s:g} s"):
            messages = asyncio.run(tap(settings.broker, stream, seconds=tap_s))
    with console.status("joining the records"):
        recorded = joined_windows(stream, messages, limits=settings.limits)
        recorded = recorded if tap_s is None else recorded.without_ends()
        return bench_of_stream(stream, recorded, trained, seed=seed), recorded.left_out
