"""Command `anonymizer experiment`: the published experiments, with their tables and plots."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.box import SIMPLE
from rich.columns import Columns
from rich.console import Console
from rich.table import Table

from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import require

Row: TypeAlias = dict[str, Any]
_UTILITY = ("classes", "suppressed", "gcp_range", "gcp_set", "gcp_taxonomy", "dm")
_PAPER = ("paper_classes", "paper_gcp_range", "paper_gcp_set", "paper_gcp_taxonomy")
_LEAKS = ("cells_1_to_2", "people_1_to_2", "cells_2_to_1", "people_2_to_1")
_TIMES = ("records", "method", "k", "d", "l", "classes", "seconds", "paper_seconds")

_USERS_PER_NODE = 5 / 3
"""With this density, the published grid shows every k."""

_MOST_LISTED = 100
"""Largest network whose nodes are listed one by one; of larger ones, nodes are counted by users."""
_MOST_NAMED = 12
"""Largest number of nodes of a region in a row of the table of runs."""

app = typer.Typer(help="Repeat the published experiments, with plots.", no_args_is_help=True)


@app.command()
def adka(
    out: Annotated[Path, typer.Option(help="Folder for the tables and plots; made if missing.")],
    network: Annotated[
        str,
        typer.Option(
            help="GraphML, OSM pbf or XML, SUMO .net.xml, PREFIX of PREFIX_nodes/PREFIX_edges, "
            "grid:ROWSxCOLUMNS or city:NODES."
        ),
    ] = "grid:5x5",
    users: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=10_000_000,
            help="Number of users on random nodes.",
            show_default="5 for every 3 nodes",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="Number of random targets.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed; equal seeds give equal files.")] = 1,
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all runs as JSON.")] = False,  # noqa: FBT002  typer's
) -> None:
    """Grow ADKA's regions for random targets among random users, and plot them.

    Writes runs.csv, summary.json, density_k.png, k_region_size.png and region.png.

    [bold]Examples[/bold]

        anonymizer experiment adka --out adka

        anonymizer experiment adka --network city:10000 --runs 200 --out adka-city
    """
    require("plots")
    from anonymizer.networks import load_network
    from experiments.adka_experiment import run_experiment
    from experiments.adka_results import run_rows, summary, write_results

    settings = settings_of(config)
    _make(out)
    roads = load_network(network, max_spacing_m=settings.network.max_spacing_m)
    experiment = run_experiment(
        roads,
        settings,
        n_users=round(roads.n_nodes * _USERS_PER_NODE) if users is None else users,
        n_runs=runs,
        seed=seed,
    )
    report, rows = summary(experiment, source=network, seed=seed), run_rows(experiment)
    paths = write_results(experiment, report, out)
    if as_json:
        typer.echo(json.dumps({**report, "runs": rows}))
    else:
        # Names of nodes are free text, not markup.
        console = Console(markup=False, highlight=False)
        _print_users(console, roads.node_id.tolist(), experiment.users.n_at.tolist())
        _print_target(console, rows[0])
        _print_runs(console, rows)
        _print_by_k(console, report)
        console.print("\nWritten: " + ", ".join(str(path) for path in paths), soft_wrap=True)


@app.command()
def multisource(
    out: Annotated[Path, typer.Option(help="Folder for the tables and plots; made if missing.")],
    table: Annotated[
        Path | None,
        typer.Option(
            help="csv or parquet, such as Adult of the UCI repository.",
            show_default="a generated table in the shape of Adult",
        ),
    ] = None,
    taxonomy: Annotated[
        Path | None, typer.Option(help="JSON: {attribute: {group: [values]}}.")
    ] = None,
    order: Annotated[
        Path | None, typer.Option(help="JSON: {attribute: [values in their order]}.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Quasi-identifiers of one source; give the option twice.",
            show_default="those of the paper on Adult",
        ),
    ] = None,
    sa: Annotated[
        str | None, typer.Option(help="Sensitive attribute.", show_default="race, of Adult")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Records of the generated table.")
    ] = 32_561,
    census_rows: Annotated[
        int,
        typer.Option(
            min=0,
            max=10_000_000,
            help="Records of the generated table that is timed, in the shape of the Census of "
            "1990; 0: none.",
        ),
    ] = 2_458_285,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed; equal seeds give equal files but times.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print all runs as JSON.")] = False,  # noqa: FBT002  typer's
) -> None:
    """Anonymize a table of two sources as in the paper, over k, d and l, and compare Mondrian.

    Writes runs.csv, times.csv, summary.json, over_k.png, over_d.png, over_l.png, leaks.png and
    times.png. Leaks are what Algorithm 1 of the paper finds.

    [bold]Examples[/bold]

        anonymizer experiment multisource --out multisource

        anonymizer experiment multisource --table adult.csv --taxonomy taxonomy.json
            --order order.json --out multisource-adult
    """
    require("tables", "plots")
    from experiments.multisource_experiment import (
        StudyFiles,
        made_study,
        read_study,
        run_multisource,
    )
    from experiments.multisource_results import summary, time_rows, write_results

    _make(out)
    if table is None:
        if taxonomy or order or source or sa:
            raise SettingsError("--taxonomy, --order, --source and --sa need a --table")
        study = made_study(rows, seed=seed)
    elif source is None:
        adult = StudyFiles(table=table, taxonomy=taxonomy, order=order)
        study = read_study(adult if sa is None else replace(adult, sensitive=sa))
    else:
        sources = [[name.strip() for name in each.split(",")] for each in source]
        study = read_study(
            StudyFiles(table=table, taxonomy=taxonomy, order=order, sources=sources, sensitive=sa)
        )
    with _progress() as progress:
        experiment = run_multisource(study, census_rows=census_rows, seed=seed, progress=progress)
    report, times = summary(experiment, seed=seed), time_rows(experiment)
    paths = write_results(experiment, report, out)
    if as_json:
        typer.echo(json.dumps({**report, "times": times}))
        return
    console = Console(markup=False, highlight=False)
    print_multisource(console, report, times)
    console.print("\nWritten: " + ", ".join(str(path) for path in paths), soft_wrap=True)


@app.command()
def tracking(
    out: Annotated[Path, typer.Option(help="Folder for the table and charts; made if missing.")],
    network: Annotated[
        str, typer.Option(help="As in `adka`; it needs coordinates.")
    ] = "city:10000",
    devices: Annotated[
        list[int] | None,
        typer.Option(min=20, max=100_000, help="Devices of a fleet; give the option repeatedly."),
    ] = None,
    fleets: Annotated[int, typer.Option(min=1, max=100, help="Fleets of each size.")] = 1,
    seconds: Annotated[int, typer.Option(min=400, help="Length of each trace.")] = 600,
    seed: Annotated[int, typer.Option(min=0, help="Seed; equal seeds give equal files.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print all points as JSON.")] = False,  # noqa: FBT002  typer's
) -> None:
    """Cloak simulated fleets with several settings of the regions, and track devices in them.

    Shows what a smaller region costs: the belief of the audit's strongest tracking adversary after
    five minutes, against nodes a region. Writes points.csv, summary.json, tracking.png and
    tracking.svg. A point of 1,000 devices takes about a minute.

    [bold]Example[/bold]

        anonymizer experiment tracking --devices 200 --devices 1000 --out tracking
    """
    require("plots")
    from anonymizer.networks import load_network
    from experiments.tracking_experiment import run_tracking
    from experiments.tracking_results import rows_of, write_results

    _make(out)
    with _progress() as progress:
        points = run_tracking(
            load_network(network),
            sizes=devices or [200, 1000],
            n_fleets=fleets,
            seconds=seconds,
            seed=seed,
            progress=progress,
        )
    rows = rows_of(points)
    report = {"network": network, "fleets": fleets, "seconds": seconds, "seed": seed}
    paths = write_results(points, {**report, "points": rows}, out)
    if as_json:
        typer.echo(json.dumps({**report, "points": rows}))
        return
    console = Console(markup=False, highlight=False)
    columns = ("devices", "mode", "place_devices", "area_devices", "min_nodes", "nodes")
    beliefs = ("belief_none", "belief_raw", "belief_strongest")
    _print(console, "Belief in the true place", rows, (*columns, *beliefs))
    console.print("\nWritten: " + ", ".join(str(path) for path in paths), soft_wrap=True)


def _make(folder: Path) -> None:
    """Make the folder for the results before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """Show a progress bar on standard error, and yield the function that advances it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda done, what: bar.update(task, completed=done, description=what)


def _print_users(console: Console, names: list[int | str], n_at: list[int]) -> None:
    console.print(f"{sum(n_at):,} users on {len(names):,} nodes", style="bold")
    if len(names) <= _MOST_LISTED:
        cells = [f"{name}: {n}" for name, n in zip(names, n_at, strict=True)]
        width = max(map(len, cells))
        console.print(Columns([cell.rjust(width) for cell in cells], padding=(0, 3)))
        return
    for users, nodes in sorted(Counter(n_at).items()):
        console.print(f"  {users:,} at {nodes:,} nodes")


def _print_target(console: Console, first: Row) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("target", str(first["target"]))
    table.add_row("density", str(first["density"]))
    table.add_row("selected k", str(first["k"]))
    table.add_row("region", _named(first, at_most=_MOST_LISTED))
    console.print()
    console.print(table)


def _print_runs(console: Console, rows: list[Row]) -> None:
    table = Table(title="Runs", title_justify="left", box=SIMPLE)
    for heading in ("run", "target", "density", "k", "nodes", "users"):
        table.add_column(heading, justify="right")
    table.add_column("region", overflow="fold")
    for row in rows:
        numbers = (
            row[name]
            for name in ("run", "target", "density", "k", "region_size", "users_in_region")
        )
        table.add_row(*map(str, numbers), _named(row, at_most=_MOST_NAMED))
    console.print(table)


def _print_by_k(console: Console, report: Row) -> None:
    table = Table(title="Regions by k", title_justify="left", box=SIMPLE)
    for heading in ("targets", "k", "number", "suppressed", "mean nodes", "mean users"):
        table.add_column(heading, justify="left" if heading == "targets" else "right")
    for series, targets in (("over_runs", "runs"), ("over_nodes", "nodes")):
        for row in report[series]["by_k"]:
            table.add_row(
                f"{report[series]['n']:,} {targets}",
                f"{row['k']}",
                f"{row['n']:,}",
                f"{row['n'] - row['n_cloaked']:,}",
                *(_decimal(row[name]) for name in ("mean_region_size", "mean_users_in_region")),
            )
    console.print(table)


def _named(row: Row, *, at_most: int) -> str:
    """Return the nodes of a run's region, or the reason why it has none."""
    if row["outcome"] != "cloaked":
        return f"suppressed: {row['outcome'].replace('_', ' ')}"
    names = " ".join(map(str, row["region"][:at_most]))
    more = len(row["region"]) - at_most
    return f"{names} and {more:,} more" if more > 0 else names


def _decimal(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.1f}"


def print_multisource(console: Console, report: Row, times: Sequence[Row]) -> None:
    """Print the utility over k, d and l, the leaks, and the times."""
    runs = report["runs"]
    usual = runs[0]["reading"]

    def some(test: Callable[[Row], bool]) -> list[Row]:
        return [row for row in runs if test(row)]

    def over_k(row: Row) -> bool:
        return (row["reading"], row["l"]) == (usual, 1) and row["d"] in {1, 2}

    console.print(f"{report['table']}: {report['records']:,} records", style="bold")
    _print(console, "Over k", some(over_k), ("method", "k", "d", *_UTILITY))
    over_d = some(lambda row: row["k"] == 20 and row["l"] == 1)
    _print(console, "Over d, k = 20", over_d, ("reading", "method", "d", *_UTILITY))
    known = [row for row in over_d if any(row[name] is not None for name in _PAPER)]
    _print(console, "Known of the paper, k = 20", known, ("method", "d", *_PAPER))
    over_l = some(lambda row: row["l"] > 1)
    _print(console, "Over l, k = 20, d = 2", over_l, ("method", "l", *_UTILITY))
    title = "Leaks of one source to the other, by Algorithm 1"
    _print(console, title, some(over_k), ("method", "k", "d", *_LEAKS))
    _print(console, "Times", times, _TIMES)
    console.print(report["note"])


def _print(console: Console, title: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Print a table without the columns that are empty in all rows; print nothing if all are."""
    filled = [name for name in columns if any(row[name] is not None for row in rows)]
    if not filled:
        return
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for name in filled:
        left = isinstance(rows[0][name], str)
        table.add_column(name.replace("_", " "), justify="left" if left else "right")
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in filled))
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
