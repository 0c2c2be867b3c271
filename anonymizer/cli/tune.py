"""Command `anonymizer tune`: search for an affordable k and l."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.app.tuning.time_shares import TUNE_TIME_BUDGET_S
from anonymizer.cli.columns import (
    Bands,
    Categories,
    Domains,
    Hierarchies,
    Id,
    Many,
    Markers,
    Orders,
    Sensitive,
    Sources,
    bands_of,
    declared_columns,
    names,
)
from anonymizer.cli.serve import errors_naming, settings_of
from anonymizer.errors import SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    from rich.console import Console

    from anonymizer.app.tuning.bench import Bench, Trained
    from anonymizer.app.tuning.own_model import OwnModel
    from anonymizer.app.tuning.recording import Message
    from anonymizer.pipeline.records.declaration import Stream
    from anonymizer.settings import Settings

_MOST_TRIED = 100_000
"""Most numbers in a range."""


@contextmanager
def _progress(console: "Console", budget_s: float) -> Iterator[Callable[[int, int], None]]:
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


class _Sort(StrEnum):
    SCORE = "score"
    DELETION = "deletion"


class _Learner(StrEnum):
    TREE = "tree"
    FOREST = "forest"


def tune(
    out: Annotated[Path, typer.Option(help="Folder of the results; a search in it is continued.")],
    table: Annotated[
        Path | None,
        typer.Argument(
            help="csv, csv.gz or parquet. For a stream: recorded messages, as JSON lines or "
            "a table of topic and payload."
        ),
    ] = None,
    qi: Annotated[str, typer.Option("--qi", metavar="A,B", help="Quasi-identifiers.")] = "",
    sa: Sensitive = "",
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Classes that a model will learn from the release."),
    ] = None,
    k: Annotated[
        str, typer.Option("-k", "--k", metavar="LO:HI[:STEP]", help="k to try, or a list: 5,10,20.")
    ] = "2:20",
    l: Annotated[  # noqa: E741  the field's name for it
        str | None,
        typer.Option("-l", "--l", metavar="LO:HI[:STEP]", show_default="from 1 to k"),
    ] = None,
    d: Annotated[
        str | None,
        typer.Option("-d", "--d", metavar="LO:HI[:STEP]", show_default="1, kd and kld 2"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="One or more of cells, kd, kld, kaca; with --estimator also minimizer.",
            show_default="cells; for a stream its own",
        ),
    ] = None,
    leave_out: Annotated[
        Many,
        typer.Option(
            "--leave-out",
            metavar="A,B",
            help="Also try a release without these quasi-identifiers; may be repeated.",
        ),
    ] = None,
    bands: Bands = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Lowest score of a recommendation.",
            show_default="0.02 below the score with the original records",
        ),
    ] = None,
    max_deletion: Annotated[
        float, typer.Option(min=0, max=1, help="Largest share of suppressed records.")
    ] = 0.05,
    sort: Annotated[
        _Sort | None,
        typer.Option(
            help="By score, highest first, or by deletion, lowest first.",
            show_default="score; deletion without a target",
        ),
    ] = None,
    learner: Annotated[
        _Learner, typer.Option(help="The model: a decision tree, or a random forest.")
    ] = _Learner.TREE,
    held_out: Annotated[
        float,
        typer.Option(min=0.01, max=0.9, help="Share of persons or windows that test the model."),
    ] = 0.25,
    estimator: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.skops", help="Your own classifier of scikit-learn, for a table."
        ),
    ] = None,
    trust: Annotated[
        Many,
        typer.Option(
            metavar="TYPE",
            help="Load this type, too, from the estimator's file; may be repeated. Loading runs "
            "its code.",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100,
            help="Folds of a stratified cross-validation of a table; 0: hold out once.",
            show_default="5 with --estimator, otherwise 0",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Times that the records are divided into folds.")
    ] = 2,
    id_: Id = None,
    source: Sources = None,
    hierarchy: Hierarchies = None,
    order: Orders = None,
    domain: Domains = None,
    category: Categories = None,
    missing: Markers = None,
    stream: Annotated[
        str | None, typer.Option(metavar="NAME", help="Tune this stream of the settings.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Settings of the stream.")
    ] = None,
    tap: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="SECONDS", help="Listen to its topics for this long, instead of a file."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes.", show_default="one per core")
    ] = None,
    time_budget: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Time for all configurations together; 0: no limit.",
        ),
    ] = TUNE_TIME_BUDGET_S,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
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
    require("tables", "learn", "plots")
    from rich.console import Console

    from anonymizer.app.tuning.bench import Trained, bench_of_table
    from anonymizer.app.tuning.cross_validation import CrossValidation
    from anonymizer.app.tuning.search import Search
    from anonymizer.app.tuning.search import tune as run
    from anonymizer.app.tuning.space import Space
    from anonymizer.cli.tune_tables import print_results
    from anonymizer.files.tables import read_table

    n_folds = (0 if estimator is None else 5) if folds is None else folds
    if n_folds == 1:
        raise SettingsError("folds: must be 2 or more, or 0")
    if stream is not None and (estimator is not None or n_folds):
        raise SettingsError("estimator, folds: only for a table")
    if target is None and (estimator is not None or n_folds):
        raise SettingsError("estimator, folds: require a target")
    trained = Trained(
        target=target,
        learner=learner.value,
        held_out=held_out,
        validation=CrossValidation(n_folds, repeats) if n_folds else None,
        own=_own_model(estimator, trust or [], seed),
    )
    if (stream is None) is not (config is None):
        raise SettingsError("stream and config belong together")
    if tap is not None and stream is None:
        raise SettingsError("tap: requires a stream")
    if (table is None) is (tap is None):
        raise SettingsError("there must be either a file or, for a stream, --tap")
    settings, declared = _declared(stream, config)
    asked = Search(
        name=stream or (table.name if table else ""),
        space=Space(
            models=names(model or (declared.settings.model if declared else "cells")),
            k=numbers("k", k),
            l=numbers("l", l) if l else (),
            d=numbers("d", d) if d else (),
            without=[(), *(tuple(names(each)) for each in leave_out or ())],
            least_d=2 if declared and declared.in_cohorts and declared.settings.enforces else 1,
        ),
        target=target,
        min_score=min_score,
        max_deletion=max_deletion,
        sort=("deletion" if target is None else "score") if sort is None else sort.value,
        jobs=jobs or os.cpu_count() or 1,
        time_budget_s=time_budget,
        stream=declared.settings if declared else None,
        banded=tuple(bands_of(bands)),
    )
    console = Console(stderr=True)
    if settings is not None and declared is not None:
        if qi or sa or bands:
            raise SettingsError("qi, sa, bands: not allowed, a stream declares its attributes")
        # Before the user listens for an hour.
        asked.space.configurations(sensitive=bool(declared.schema.sensitive))
        bench, left_out = _stream_bench(
            settings, declared, table, tap, trained, seed=seed, console=console
        )
        asked = replace(asked, left_out=left_out)
    else:
        assert table is not None  # noqa: S101  otherwise there is a stream, with --tap
        columns = declared_columns(
            qi=qi,
            sa=sa,
            id_=id_,
            source=source,
            hierarchy=hierarchy,
            order=order,
            domain=domain,
            category=category,
            missing=missing,
            keep=[] if target is None or target in names(sa) else [target],
        )
        with console.status("reading the table"):
            read = read_table(table, columns.columns)
            bench = bench_of_table(read, columns, trained, bands=bands_of(bands), seed=seed)
    with _progress(console, time_budget) as report_progress:
        tuned = run(bench, asked, out, progress=report_progress)
    print_results(console, tuned)


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
    from anonymizer.app.gateway.recorder import declared_streams

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
    console: "Console",
) -> "tuple[Bench, Mapping[str, int]]":
    from anonymizer.app.tuning.recording import (
        bench_of_stream,
        joined_windows,
        read_messages,
        target_column,
    )

    target_column(stream, trained.target)
    messages: Iterator[Message] | list[Message]
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


def numbers(option: str, text: str) -> list[int]:
    """Return the numbers of LO:HI, LO:HI:STEP or A,B,C, rising.

    Raises
    ------
    SettingsError
        Naming the option, if the text is none of these or has too many numbers.
    """
    try:
        if ":" not in text:
            return sorted({int(each) for each in text.split(",")})
        parts = [int(each) for each in text.split(":")]
    except ValueError:
        parts = []
    if not 2 <= len(parts) <= 3 or parts[0] > parts[1] or (parts[2:] and parts[2] < 1):
        raise SettingsError(f"{option}: must be LO:HI, LO:HI:STEP, or numbers separated by commas")
    found = range(parts[0], parts[1] + 1, *parts[2:])
    if len(found) > _MOST_TRIED:
        raise SettingsError(f"{option}: more than {_MOST_TRIED:,} numbers")
    return list(found)
