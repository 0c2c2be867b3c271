"""Command `anonymizer experiment`: the published experiments, with their tables and plots."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import require
from experiments.result_tables import (
    Row,
    print_by_k,
    print_multisource,
    print_rows,
    print_runs,
    print_target,
    print_users,
)

if TYPE_CHECKING:
    from anonymizer.domain.network import RoadNetwork
    from anonymizer.domain.trace import Trace


T = TypeVar("T")


class PlotFormat(StrEnum):
    """Kinds of files that plots are written to."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"
    NONE = "none"
    """No plots: drawing them takes most of the time of small experiments."""


class AdkaTargets(StrEnum):
    """What targets of ADKA's experiment are drawn from."""

    USERS = "users"
    NODES = "nodes"


class LearnedAttack(StrEnum):
    """Attacks of `experiment adversaries`."""

    HABITS = "habits"
    TAXIS = "taxis"
    PATHS = "paths"
    MEMBERSHIP = "membership"
    MOMENTS = "moments"
    AUDIT = "audit"


Formats = Annotated[
    list[PlotFormat] | None,
    typer.Option("--format", help="Kind of the plots; may be repeated.", show_default="png"),
]

Columns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Names of the trace's columns; see `anonymizer cloak`."),
]
Out = Annotated[Path, typer.Option(help="Folder for tables and plots; made if missing.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed; equal seeds give equal results.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Located = Annotated[str, typer.Option(help="As in `adka`; it needs coordinates.")]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        help="csv or parquet with device_id, ts, lat, lon.", show_default="simulated devices"
    ),
]
TickS = Annotated[float, typer.Option(min=0.001, help="Length of a tick in seconds.")]
Repeats = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="Tables or splits.", show_default="3; with --full 10"),
]

_SAY_EVERY_S = 10.0
"""Seconds between two lines of progress, where there is no bar."""
_LEAST_ATTACKED = 2
"""Fewest devices whose regions are attacked."""
_RANGE = "LO:HI[:STEP]"
_FOUR, _FURTHER = "The four methods, beside their sources", "Attacks, and other ways to publish"
_USERS_PER_NODE = 6 / 5
"""30 users on the 25 nodes of the published grid."""

app = typer.Typer(help="Repeat the published experiments, with plots.", no_args_is_help=True)


@app.command(rich_help_panel=_FOUR)
def adka(
    out: Out,
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
            show_default="6 for every 5 nodes",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="Number of random targets.")] = 20,
    targets: Annotated[
        AdkaTargets,
        typer.Option(help="What targets are drawn from: nodes, as published, or users."),
    ] = AdkaTargets.NODES,
    seed: Seed = 1,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Settings file (TOML)."),
    ] = None,
    attacks: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option(help="Attack regions of every mode. Needs coordinates and two users.")
    ] = True,
    formats: Formats = None,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Grow ADKA's regions for random targets among random users, and plot them.

    As published: 30 users on a 5x5 grid and 20 targets. One draw of so few says little, so the
    share of each k over all draws stands beside it.

    Writes runs.csv, summary.json, manifest.json, density_k.png, k_region_size.png,
    adaptive_fixed.png (beside one k for all) and region.png; and attacks.csv and attacks.png, the
    success of the centre and root attacks against region size in every mode, for several simulated
    fleets of at most 500 devices, with intervals over groups. steps.jsonl keeps each fleet: when
    interrupted, the same command goes on from there. A minute of CPU, nearly all of it for attacks.

    [bold]Examples[/bold]

        anonymizer experiment adka --out adka

        anonymizer experiment adka --network city:10000 --runs 200 --out adka-city
    """
    require("plots")
    from anonymizer.networks import load_network
    from anonymizer.settings import load_settings
    from experiments.adka_attacks import MOST_DEVICES, AttackPoint, attack_modes
    from experiments.adka_experiment import Targets, run_experiment
    from experiments.adka_results import run_rows, summary, write_results
    from experiments.kept_steps import KeptSteps
    from experiments.result_files import manifest, network_files

    settings = load_settings(config)
    _make(out)
    roads = load_network(network, max_spacing_m=0)
    experiment = run_experiment(
        roads,
        settings,
        n_users=round(roads.n_nodes * _USERS_PER_NODE) if users is None else users,
        n_runs=runs,
        seed=seed,
        targets=Targets(targets.value),
    )
    report, rows = summary(experiment, source=network, seed=seed), run_rows(experiment)
    n_devices = min(experiment.users.n_devices, MOST_DEVICES)
    inputs = [*network_files(network), *([] if config is None else [config])]

    def write(points: list[AttackPoint]) -> list[Path]:
        kinds = _kinds(formats)
        return write_results(experiment, report, out, attacks=points, inputs=inputs, formats=kinds)

    paths = write([])
    if attacks and roads.has_coordinates and n_devices >= _LEAST_ATTACKED:
        of_files = manifest({}, inputs)["input"]
        kept = KeptSteps(out, {"network": network, "input": of_files, "of": [n_devices, seed]})
        run = partial(attack_modes, roads, settings, n_devices=n_devices, seed=seed, kept=kept)
        _, paths = _run(run, write)
    with _told({**report, "runs": rows}, paths, as_json=as_json) as console:
        print_users(console, roads.node_id.tolist(), experiment.users.n_at.tolist())
        print_target(console, rows[0])
        print_runs(console, rows)
        print_by_k(console, report)


@app.command(rich_help_panel=_FOUR)
def multisource(
    out: Out,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            "--adult",
            help="csv or parquet, such as Adult of the UCI repository.",
            show_default="a generated table in the shape of Adult",
        ),
    ] = None,
    taxonomy: Annotated[
        Path | None, typer.Option(help="JSON: {attribute: {group: [values]}}.")
    ] = None,
    order: Annotated[
        Path | None, typer.Option(help=r"JSON: {attribute: \[values in their order]}.")
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
        int | None,
        typer.Option(
            min=0,
            max=10_000_000,
            help="Records of a second, generated table in the shape of the Census of 1990; "
            "0: none.",
            show_default="50000; with --full 2458285",
        ),
    ] = None,
    census: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The Census of 1990 of the UCI repository as it is distributed "
            "(USCensus1990.data.txt), also .csv, .gz or .parquet, in place of the generated one.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="The sizes of the paper: hours.")] = False,  # noqa: FBT002  typer's
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Runs of each trial, all but one in random order.",
            show_default="3; with --full 10",
        ),
    ] = None,
    best_s: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="CPU time of each search, in seconds; 0: no search.",
            show_default="0.5; with --full 2",
        ),
    ] = None,
    k: Annotated[
        str, typer.Option("-k", "--k", metavar=_RANGE, help="k to try; where it is fixed, 20.")
    ] = "10:50:10",
    census_k: Annotated[
        str, typer.Option(metavar=_RANGE, help="k of the Census; where it is fixed, 200.")
    ] = "100:200:25",
    d: Annotated[
        str, typer.Option("-d", "--d", metavar=_RANGE, help="d to try; where it is fixed, 2.")
    ] = "1:5",
    l: Annotated[  # noqa: E741  the field's name for it
        str, typer.Option("-l", "--l", metavar=_RANGE, help="l to try; where it is fixed, 3.")
    ] = "2:5",
    share: Annotated[
        list[float] | None,
        typer.Option(
            min=0.001,
            max=1,
            help="Share of the records; give the option repeatedly.",
            show_default="0.25, 0.5, 0.75, 1",
        ),
    ] = None,
    formats: Formats = None,
    seed: Seed = 1,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Repeat the experiments of the multi-source paper: leaks, utility and time, with rivals.

    Writes runs.csv and times.csv (over k, d, l, quasi-identifiers and records), leaks.csv and
    leaks.tex (tables 4 to 7 of the paper beside ours), inferences.csv (every value that the
    adversary of Algorithm 1 learns), summary.json, manifest.json and the plots, time and again
    while it runs. steps.jsonl keeps each step: when interrupted, the same command goes on from
    there, also with more repeats. The defaults take some minutes of CPU.

    [bold]Examples[/bold]

        anonymizer experiment multisource --out multisource

        anonymizer experiment multisource --adult adult.csv --taxonomy taxonomy.json
            --order order.json --format svg --out multisource-adult
    """
    require("tables", "plots")
    from experiments.kept_steps import KeptSteps
    from experiments.multisource_experiment import (
        SHARES,
        Multisource,
        Plan,
        Ranges,
        run_multisource,
    )
    from experiments.multisource_results import summary, time_rows, write_results
    from experiments.multisource_tables import (
        CENSUS_ROWS,
        StudyFiles,
        made_census,
        made_study,
        read_census,
        read_study,
    )
    from experiments.printed_figures import ADULT, CENSUS
    from experiments.result_files import manifest

    n_census = census_rows if census_rows is not None else CENSUS_ROWS if full else 50_000
    ranges = Ranges(
        ks={ADULT: _from("k", k, 2), CENSUS: _from("census-k", census_k, 2)},
        ds=_from("d", d, 1),
        ls=_from("l", l, 2),
        shares=sorted(set(share or SHARES)),
    )
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
    studies = {ADULT: study}
    if census is not None:
        studies[CENSUS] = read_census(census)
    elif n_census:
        studies[CENSUS] = made_census(n_census, seed=seed)
    plan = Plan(
        repeats=repeats or (10 if full else 3),
        best_s=best_s if best_s is not None else 2.0 if full else 0.5,
        seed=seed,
        ranges=ranges,
    )
    inputs = [file for file in (table, taxonomy, order, census) if file is not None]
    depends_on = {
        "best_s": plan.best_s,
        "seed": seed,
        "tables": [[each.name, each.n, each.is_made] for each in studies.values()],
        "declared": [source, sa],
        "input": manifest({}, inputs)["input"],
    }

    def write(found: Multisource) -> list[Path]:
        return write_results(found, summary(found), out, inputs=inputs, formats=_kinds(formats))

    kept = KeptSteps(out, depends_on)
    experiment, paths = _run(partial(run_multisource, studies, plan, kept=kept), write)
    report, times = summary(experiment), time_rows(experiment)
    with _told({**report, "times": times}, paths, as_json=as_json) as console:
        print_multisource(console, report, times)


@app.command(rich_help_panel=_FOUR)
def kaca(
    out: Out,
    records: Annotated[
        list[int] | None,
        typer.Option(
            min=10,
            max=100_000,
            help="Size of a generated table; give the option repeatedly.",
            show_default="500, 1000, 2000, 4000, 8000",
        ),
    ] = None,
    k: Annotated[
        str, typer.Option("-k", "--k", metavar=_RANGE, help="k to try; over the records, it is 5.")
    ] = "2,5,10,20,50",
    full: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option("--full", help="Ten tables of each size.")
    ] = False,
    repeats: Repeats = None,
    formats: Formats = None,
    seed: Seed = 1,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Form classes of generated toll exits by K-Means, as published, and by the fast method.

    Over k, with 2,000 records, and over records, with k = 5. Writes runs.csv, summary.json,
    manifest.json, over_k.png and over_records.png, time and again while it runs. steps.jsonl keeps
    each table: when interrupted, the same command goes on from there, also with more repeats. A
    minute and a half of CPU.

    [bold]Example[/bold]

        anonymizer experiment kaca --records 500 --records 1000 --repeats 2 --out kaca
    """
    require("learn", "plots")
    from experiments.kaca_experiment import RECORDS, KacaRun, mean_rows, run_kaca, write_kaca
    from experiments.kept_steps import KeptSteps

    asked: Row = {"ks": _from("k", k, 2), "records": records or list(RECORDS)}
    _make(out)
    options: Row = {"repeats": repeats or (10 if full else 3), "seed": seed}

    def write(runs: list[KacaRun]) -> list[Path]:
        report = {**options, "means": mean_rows(runs)}
        return write_kaca(runs, report, out, options=options | asked, formats=_kinds(formats))

    run = partial(run_kaca, **asked, **options, kept=KeptSteps(out, {"seed": seed}))
    columns = ("method", "k", "records", "classes", "gcp", "squares", "seconds")
    found, paths = _run(run, write)
    means = mean_rows(found)
    with _told({**options, "means": means}, paths, as_json=as_json) as console:
        print_rows(console, "K-Means and the fast method, means", means, columns)


@app.command(rich_help_panel=_FOUR)
def cells(
    out: Out,
    k: Annotated[str, typer.Option("-k", "--k", metavar=_RANGE, help="k to try.")] = "2:20",
    l: Annotated[str, typer.Option("-l", "--l", metavar=_RANGE, help="l to try.")] = "1:4",  # noqa: E741
    full: Annotated[bool, typer.Option("--full", help="Ten splits of the table.")] = False,  # noqa: FBT002  typer's
    repeats: Repeats = None,
    formats: Formats = None,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Cut a table of tumours into the cells of a tree, as published and ours, and minimize rows.

    Over k and l: the accuracy of a model that learns from the cells, and the share of rows that are
    deleted. Then the minimizer, over the share of a model's score that it is to keep. Writes
    runs.csv, minimizer.csv, summary.json, manifest.json, over_k.png, search.png and minimizer.png,
    time and again while it runs. steps.jsonl keeps each step: when interrupted, the same command
    goes on from there, also with more repeats. Two and a half minutes of CPU.

    [bold]Example[/bold]

        anonymizer experiment cells --out cells
    """
    require("learn", "plots")
    from experiments.cells_experiment import CellsResults, mean_rows, run_cells, write_cells
    from experiments.kept_steps import KeptSteps

    asked = {"ks": _from("k", k, 1), "ls": _from("l", l, 1)}
    _make(out)
    options: Row = {**asked, "repeats": repeats or (10 if full else 3)}

    def write(found: CellsResults) -> list[Path]:
        return write_cells(found, out, options=options, formats=_kinds(formats))

    run = partial(run_cells, **options, kept=KeptSteps(out, {}))
    columns = ("method", "k", "l", "cells", "deleted", "score", "original", "seconds")
    found, paths = _run(run, write)
    means = mean_rows(found)
    with _told({**options, "means": means}, paths, as_json=as_json) as console:
        print_rows(console, "Cells as published and ours, means", means, columns)


@app.command(rich_help_panel=_FURTHER)
def tracking(
    out: Out,
    network: Located = "city:10000",
    devices: Annotated[
        list[int] | None,
        typer.Option(min=20, max=100_000, help="Devices of a fleet; give the option repeatedly."),
    ] = None,
    fleets: Annotated[int, typer.Option(min=1, max=100, help="Fleets of each size.")] = 1,
    seconds: Annotated[int, typer.Option(min=400, help="Length of each trace.")] = 600,
    seed: Seed = 1,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Cloak simulated fleets with several settings of the regions, and track devices in them.

    Shows what a smaller region costs: the belief of the audit's strongest tracking adversary after
    five minutes, against nodes per region. Writes points.csv, summary.json, tracking.png and
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
    report: Row = {"network": network, "fleets": fleets, "seconds": seconds, "seed": seed}
    report |= {"points": rows}
    columns = ("devices", "mode", "place_devices", "min_nodes", "nodes")
    beliefs = ("belief_none", "belief_raw", "belief_strongest")
    with _told(report, write_results(points, report, out), as_json=as_json) as console:
        print_rows(console, "Belief in the true place", rows, (*columns, *beliefs))


@app.command(rich_help_panel=_FURTHER)
def frontier(
    out: Out,
    trace: TraceFile = None,
    network: Located = "city:10000",
    devices: Annotated[
        int, typer.Option(min=20, max=100_000, help="Simulated devices, without --trace.")
    ] = 500,
    seconds: Annotated[
        int, typer.Option(min=480, help="Length of the simulated trace in seconds.")
    ] = 600,
    tick: TickS = 1.0,
    seed: Seed = 1,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            help="Settings of a gateway to compare, as with a region.cloak of your own; repeat it."
        ),
    ] = None,
    columns: Columns = None,
    formats: Formats = None,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Draw privacy against utility: all modes of the gateway beside other ways to publish.

    Publishes one trace in the modes session, snapshot and adka, as safe counts, with planar Laplace
    noise, as counts with a threshold, with central differential privacy, and with the public
    schemes of `blur`, but for counts by the hour. One attack tracks a device from one known
    position, another finds the name of a device by four; an analyst reads the density. Writes
    points.csv, manifest.json and the picture, frontier.png, first of what is found so far. A second
    run in the folder goes on where the first one ended.

    [bold]Examples[/bold]

        anonymizer experiment frontier --out frontier

        anonymizer experiment frontier --trace taxis.parquet --network sf --format svg --out taxis
    """
    require("plots", "tables")
    from anonymizer.settings import load_settings
    from experiments.frontier_experiment import Point, run_frontier
    from experiments.frontier_results import rows_of, write_results
    from experiments.kept_steps import KeptSteps
    from experiments.result_files import manifest
    from experiments.tracking_experiment import drive

    _make(out)
    roads = _located(network, max_spacing_m=0)  # ADKA knows junctions alone
    options: Row = {"network": network, "tick_s": tick, "seed": seed}
    if trace is None:
        options |= {"devices": devices, "seconds": seconds}
        moving = drive(roads, devices, seconds=seconds, seed=seed)
    else:
        moving = _read(trace, columns)
    own = {path.stem: load_settings(path) for path in config or ()}
    if len(own) < len(config or ()):
        raise SettingsError("--config: two files have the same name")
    inputs = [*([] if trace is None else [trace]), *(config or ())]

    def write(points: list[Point]) -> list[Path]:
        return write_results(points, options, out, inputs=inputs, formats=_kinds(formats))

    of_files = manifest({}, inputs)["input"]
    kept = KeptSteps(out, options | {"input": of_files, "columns": columns})
    run = partial(run_frontier, moving, roads, tick_s=tick, seed=seed, own=own, kept=kept)
    points, paths = _run(run, write)
    rows = rows_of(points)
    with _told({**options, "points": rows}, paths, as_json=as_json) as console:
        print_rows(console, "Privacy and utility", rows, tuple(rows[0]))


@app.command(rich_help_panel=_FURTHER)
def adversaries(
    out: Out,
    attack: Annotated[
        list[LearnedAttack] | None,
        typer.Option(help="Which attack; give the option repeatedly.", show_default="all"),
    ] = None,
    network: Located = "city:3000",
    people: Annotated[
        int,
        typer.Option(
            min=40,
            max=100_000,
            help="People whose weeks are simulated; other fleets are smaller.",
        ),
    ] = 600,
    shadows: Annotated[
        int, typer.Option(min=8, max=10_000, help="Shadow releases for membership.")
    ] = 60,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with the taxis of San Francisco.", show_default="no taxis"),
    ] = None,
    seed: Seed = 1,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Mount attacks that learn people, and whole releases, each beside its control.

    Writes scores.csv and manifest.json: success with its interval of 95 %, control, worst tenth and
    CPU time of each attack on each way to publish, each row as it is found. `--attack audit` mounts
    every attack of `anonymizer audit stream`. All attacks take some nine minutes of CPU.

    [bold]Example[/bold]

        anonymizer experiment adversaries --attack habits --out adversaries
    """
    require("tables", "plots", "learn")
    from experiments.adversaries_experiment import Plan, run_adversaries, write_results

    _make(out)
    roads = _located(network)
    chosen = [each.value for each in attack or LearnedAttack]
    options: Row = {"network": network, "people": people, "shadows": shadows, "seed": seed}
    options["attacks"] = chosen
    with _progress() as progress:
        found = run_adversaries(Plan(roads, people, shadows, data, seed), chosen, progress)
        rows, paths = write_results(found, options, out)
    columns = ("attack", "release", "success", "low", "high", "control", "promised", "tenth",
               "tenth_control", "victims", "cpu_s")  # fmt: skip
    shown = [{name: row.get(name) for name in columns} for row in rows]
    with _told({**options, "scores": rows}, paths, as_json=as_json) as console:
        print_rows(console, "Attacks that learn", shown, columns)


@app.command(rich_help_panel=_FURTHER)
def blur(
    out: Out,
    trace: TraceFile = None,
    network: Located = "city:2000",
    people: Annotated[
        int, typer.Option(min=20, max=10_000, help="Simulated people, without --trace.")
    ] = 100,
    days: Annotated[int, typer.Option(min=2, max=100, help="Simulated days.")] = 14,
    tick: Annotated[
        float, typer.Option(min=1, help="Seconds of a tick, and between simulated reports.")
    ] = 10.0,
    seed: Seed = 1,
    columns: Columns = None,
    formats: Formats = None,
    as_json: AsJson = False,  # noqa: FBT002  typer's
) -> None:
    """Attack eleven public ways to blur positions, and this project's regions.

    Writes blur.md with a picture of each, blur.csv, blur.json and manifest.json. Some five minutes
    of CPU.

    [bold]Example[/bold]

        anonymizer experiment blur --out blur
    """
    require("plots", "tables")
    from experiments.blur_experiment import run_blur
    from experiments.blur_results import PICTURES, rows_of, write_results
    from experiments.commuter_weeks import commuter_weeks

    _make(out)
    roads = _located(network)
    options: Row = {"network": network, "tick_s": tick, "seed": seed}
    if trace is None:
        options |= {"people": people, "days": days}
        moving = commuter_weeks(roads, people, n_days=days, every_s=tick, seed=seed).trace
    else:
        moving = _read(trace, columns)
    with _progress() as progress:
        found = list(run_blur(moving, roads, tick_s=tick, seed=seed, progress=progress))
    kinds = _kinds(formats) if formats else (PICTURES,)
    paths = write_results(found, options, out, formats=kinds)
    with _told({**options, "rows": list(rows_of(found))}, paths, as_json=as_json) as console:
        for each in found:
            console.print(f"{each.scheme}: {each.headline}", soft_wrap=True)


@app.command(rich_help_panel=_FURTHER)
def rivals(
    out: Out,
    trace: TraceFile = None,
    network: Annotated[
        str, typer.Option(help="As in `adka`, with coordinates; or `lattice`, made of the trace.")
    ] = "city:10000",
    runs: Annotated[int, typer.Option(min=1, max=100, help="Runs with different noise.")] = 5,
    tick: TickS = 1.0,
    seed: Seed = 1,
    columns: Columns = None,
    formats: Formats = None,
) -> None:
    """Publish one trace as published systems do, and as the gateway does, and compare the errors.

    Synthesis with local differential privacy (RetraSyn, LBD, LBA, LPD, LPA), counts with w-event
    privacy, geo-indistinguishability, CASTLE and FADS; densities, queries, hotspots, moves,
    patterns, trips and lengths as their papers measure them. All rivals are written anew from the
    papers. Writes rivals.csv, manifest.json and the picture, rivals.png.

    [bold]Examples[/bold]

        anonymizer experiment rivals --out rivals

        anonymizer experiment rivals --trace taxis.parquet --network sf --format svg --out taxis
    """
    require("plots", "tables", "dp")
    from experiments.rivals_experiment import lattice, run_rivals
    from experiments.rivals_results import MEASURES, rows_of, write_results
    from experiments.tracking_experiment import drive

    _make(out)
    given = None if trace is None else _read(trace, columns)
    roads = lattice(given) if network == "lattice" and given else _located(network)
    moving = given or drive(roads, 500, seconds=2400, seed=seed)
    with _progress() as progress:
        found = run_rivals(moving, roads, tick_s=tick, runs=runs, seed=seed, progress=progress)
    options: Row = {"network": network, "tick_s": tick, "runs": runs, "seed": seed}
    inputs = [] if trace is None else [trace]
    paths = write_results(found, options, out, inputs=inputs, formats=_kinds(formats))
    with _told({}, paths) as console:
        print_rows(console, "Errors", rows_of(found), ("method", *MEASURES))


def _from(option: str, text: str, least: int) -> list[int]:
    """Return the numbers of an option, none of which may be below the least one."""
    from anonymizer.app.tuning.space import numbers

    found = numbers(option, text)
    if found[0] < least:
        raise SettingsError(f"{option}: must be {least} or more")
    return found


def _kinds(formats: list[PlotFormat] | None) -> list[str]:
    kinds = formats or [PlotFormat.PNG]
    return [each.value for each in kinds if each is not PlotFormat.NONE]


def _make(folder: Path) -> None:
    """Make the folder for the results before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}") from None


def _located(network: str, **how: float) -> "RoadNetwork":
    """Return a network, which must have coordinates."""
    from anonymizer.networks import load_network

    roads = load_network(network, **how)
    if not roads.has_coordinates:
        raise InputError(f"{network}: has no coordinates")
    return roads


def _read(trace: Path, columns: str | None) -> "Trace":
    from anonymizer.files.trace_columns import named_columns
    from anonymizer.files.traces import read_trace

    return read_trace(trace, columns=named_columns(columns))


def _run(run: Callable[..., T], write: Callable[[T], list[Path]]) -> tuple[T, list[Path]]:
    """Return what an experiment found, and the files that told of it meanwhile, too."""
    from experiments.kept_steps import PartialResults

    with _progress() as progress, PartialResults(write) as partial_results:
        found = run(progress=progress, partial_results=partial_results)
    return found, write(found)


@contextmanager
def _told(report: Row, paths: Sequence[Path], *, as_json: bool = False) -> Iterator[Console]:
    """Print a report as JSON, or what the block prints and which files were written."""
    # Names of nodes are free text, not markup.
    console = Console(markup=False, highlight=False, quiet=as_json)
    yield console
    if as_json:
        typer.echo(json.dumps(report))
    console.print("\nWritten: " + ", ".join(map(str, paths)), soft_wrap=True)


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """Show a progress bar on standard error, and yield the function that advances it.

    Where nobody sees a bar, such as in a log, there is a line now and then.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task, said_s = bar.add_task("", total=1.0), -_SAY_EVERY_S

        def advance(done: float, what: str) -> None:
            nonlocal said_s
            bar.update(task, completed=done, description=what)
            if not console.is_terminal and monotonic() >= said_s + _SAY_EVERY_S:
                said_s = monotonic()
                console.print(f"{done:4.0%}  {what}", markup=False, highlight=False)

        yield advance
