"""Command `anonymizer attack`: whether somebody's blur holds."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.cli.terminal import printable
from anonymizer.cli.trace_options import columns_of
from anonymizer.errors import InputError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.audit.foreign.forms.form import OpenQuestion
    from anonymizer.domain.trace import Trace

_RIDES = {".gpx", ".fit"}
_OWN_KEYS = ("cell", "area", "count")
"""Of `--columns`, besides those of a trace."""


def attack(
    release: Annotated[
        list[Path],
        typer.Argument(
            help="What was published, in one or more files of a kind: csv or parquet, GeoJSON, GPX,"
            " FIT, JSON (also lines, as of MQTT), snapshots of GTFS-realtime or GBFS.",
        ),
    ],
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE",
            help="Where its people really were: a trace as of `anonymizer cloak`, GPX or FIT. "
            "Without it, the release is judged by what it betrays about itself.",
        ),
    ] = None,
    truth_columns: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The truth's columns, as `--columns` of `cloak`."),
    ] = None,
    network: Annotated[
        str | None, typer.Option(metavar="NET", help="The roads; see `anonymizer cloak`.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="What its columns are, where their names do not say it: id=user,time=at,lat=y,"
            "lon=x; cell= of geohashes; area= and count= of counts.",
        ),
    ] = None,
    near: Annotated[
        float, typer.Option(min=1, help="A place is found within so many metres.")
    ] = 200.0,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal findings.")] = 0,
    page: Annotated[
        Path | None, typer.Option(metavar="PAGE.html", help="Also write a page with a picture.")
    ] = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the findings as JSON; -: print them.")
    ] = None,
) -> None:
    """Attack a release of anybody's, and say what it gives away.

    Its form is recognized: points, also rounded, geohashes, H3 cells or regions, with ids or
    without; tables of trips; counts by area and time. What applies is mounted, each attack beside
    what chance would find.

    [bold]Examples[/bold]

        anonymizer attack blurred.csv

        anonymizer attack rides/*.gpx --columns id=_track --truth true.csv --page found.html
    """
    require("tables")
    from anonymizer.audit.foreign.foreign_report import attacked, text
    from anonymizer.audit.foreign.foreign_report import page as page_of
    from anonymizer.audit.foreign.registry import read_foreign
    from anonymizer.audit.foreign.release import ForeignCase
    from anonymizer.files.atomic_write import check_distinct, of_content, write_whole
    from anonymizer.networks import load_network

    out = [each for each in (page, json_out) if each is not None and each != Path("-")]
    check_distinct(out, read=[*release, truth])
    roads = None if network is None else load_network(network)
    stated = stated_columns(columns)
    asked = _ask if sys.stdin.isatty() else None
    found = read_foreign(release, stated=stated, network=roads, answer=asked)
    true = None if truth is None else _read_truth(truth, truth_columns)
    report = attacked(ForeignCase(found, true, roads, near, seed))
    files = {}
    if page is not None:
        files[page] = of_content(page_of(report))
    as_json = json.dumps(report.json(), indent=2) + "\n"
    if json_out is not None and json_out != Path("-"):
        files[json_out] = of_content(as_json)
    write_whole(files)
    typer.echo(as_json if json_out == Path("-") else printable(text(report)), nl=False)


def _read_truth(path: Path, columns: str | None) -> "Trace":
    from anonymizer.audit.foreign.forms.form import trace_in
    from anonymizer.audit.foreign.registry import read_files
    from anonymizer.files.traces import read_trace

    try:
        if path.suffix.lower() in _RIDES:
            return trace_in(path, read_files([path]), columns_of(columns))
        return read_trace(path, columns=columns_of(columns))
    except InputError as error:  # it names the option of commands that read a trace alone
        raise InputError(str(error).replace("--columns", "--truth-columns")) from None


def stated_columns(columns: str | None) -> dict[str, str]:
    """Return what `--columns` names: what a trace has, and columns of cells, areas and counts."""
    own, others = {}, []
    for each in (columns or "").split(","):
        key, _, name = each.partition("=")
        if key.strip() in _OWN_KEYS and name.strip():
            own[key.strip()] = name.strip()
        elif each.strip():
            others.append(each)
    return {**own, **columns_of(",".join(others) or None)}


def _ask(question: "OpenQuestion") -> str:
    typer.echo(question.words, err=True)
    for name, means in question.choices.items():
        typer.echo(printable(f"  {name}: {means}"), err=True)
    while (answer := str(typer.prompt("", err=True))) not in question.choices:
        typer.echo("one of these, please", err=True)
    return answer
