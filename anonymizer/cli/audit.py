"""Commands `anonymizer audit stream`, `counts`, `table` and `windows`: attack a release."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from anonymizer.app.table_options import AuditOptions, names_of
from anonymizer.cli.audit_tables import (
    columns_table,
    findings_table,
    grouped_table,
    rows_table,
    stream_summary,
    table_summary,
    utility_table,
)
from anonymizer.cli.columns import takes_options
from anonymizer.cli.completion import mode_names
from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.cli.terminal import Terminal
from anonymizer.cli.trace_options import TraceColumns, columns_of, recorded_trace
from anonymizer.errors import GuaranteeError, SettingsError
from anonymizer.extras import require
from anonymizer.files.atomic_write import check_distinct, whole_file

if TYPE_CHECKING:
    from anonymizer.audit import Mode
    from anonymizer.audit.utility import UtilityFigures
    from anonymizer.files.tables import TextTable


app = typer.Typer(
    help="Attack a release, to check whether it keeps its promise.", no_args_is_help=True
)


PageFile = Annotated[
    Path | None,
    typer.Option(
        metavar="PAGE.html",
        help="Also write the page of `anonymizer report` about this audit, and the same as JSON "
        "beside it.",
    ),
]


@app.callback()
def _audits() -> None:
    """Attack a release, to check whether it keeps its promise."""


@app.command()
def stream(
    trace: Annotated[
        Path,
        typer.Argument(
            help="True positions: csv or parquet with device_id, ts, lat, lon, and a column for "
            "each declared reading that the release contains per pseudonym."
        ),
    ],
    release: Annotated[
        Path, typer.Argument(metavar="PUB", help="The release: PUB.jsonl of `cloak`.")
    ],
    network: Annotated[str, typer.Option(help="Road network of both; see `anonymizer cloak`.")],
    auditor_map: Annotated[
        Path | None,
        typer.Option(
            help="Auditor's map of `cloak`. Without it, attacks that need the devices of "
            "pseudonyms are left out."
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="Mode whose promises are required, adka, snapshot or session; everything else is "
            "reported.",
            autocompletion=mode_names,
        ),
    ] = "session",
    tick: Annotated[float, typer.Option(min=0.001, help="Length of a tick in seconds.")] = 1.0,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the report as JSON; -: print it.")
    ] = None,
    page: PageFile = None,
    sample: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of pseudonyms for the centre, prefix and velocity attacks; 0: all.",
        ),
    ] = 1000,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed; equal input and seed give equal reports.")
    ] = 0,
    earlier: Annotated[
        Path | None,
        typer.Option(
            metavar="PUB",
            help="A release from before the zones of the settings were declared: the attack on "
            "zones compares the two.",
        ),
    ] = None,
    placebo: Annotated[
        Path | None,
        typer.Option(
            metavar="PUB",
            help="A release of other devices on the same network, as long as this one: the "
            "tracking attack is mounted with it, too, and shows what it finds by chance.",
        ),
    ] = None,
    utility: Annotated[  # noqa: FBT002  typer's
        bool,
        typer.Option(
            "--utility",
            help="Also measure how close counts made from the release are to the true ones.",
        ),
    ] = False,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="READING",
            help="With --utility: the declared reading that is a speed in m/s.",
            show_default="speeds are measured between positions",
        ),
    ] = None,
    every_attack: Annotated[  # noqa: FBT002  typer's
        bool,
        typer.Option(
            "--all",
            help="Mount every attack, also those that the mode does not promise to resist, and "
            "print all their figures: several times as long. --page does so, too.",
        ),
    ] = False,
    columns: TraceColumns = None,
    config: ConfigFile = None,
) -> None:
    """Attack a release of cloaked positions; exit 1 if a promise of the mode is broken.

    Prints a summary: each promise, who and where, beside guessing, with intervals of 95 %.

    [bold]Example[/bold]

        anonymizer audit stream taxis.parquet cloaked.jsonl --network sf --auditor-map map.jsonl
    """
    require("tables")
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from anonymizer.api.cloaking import audit_stream, measure_utility
    from anonymizer.audit.attack import Subject
    from anonymizer.audit.judged_files import judging
    from anonymizer.audit.registry import ATTACKS
    from anonymizer.audit.stream_summary import summary_rows

    settings = settings_of(config)
    _check_reports(json_out, page, read=[trace, release, auditor_map, earlier, config])
    every_attack = every_attack or page is not None
    console = Terminal(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*parts, console=console, transient=True)
    with judging("release", release) as judged, bar:
        task = bar.add_task("", total=len(ATTACKS[Subject.POSITIONS]) + 3)
        report = audit_stream(
            release,
            trace,
            network,
            auditor_map=auditor_map,
            settings=settings,
            mode=cast("Mode", mode),
            tick_s=tick,
            sample=sample,
            seed=seed,
            earlier=earlier,
            placebo=placebo,
            every_attack=every_attack,
            progress=lambda name: bar.update(task, description=name, advance=1),
            columns=columns_of(columns),
        )
    report = report.model_copy(update={"judged": judged})
    figures: tuple[UtilityFigures, ...] = ()
    if utility:
        with console.status("measuring utility"):
            figures = measure_utility(
                release,
                trace,
                network,
                tick_s=tick,
                seed=seed,
                settings=settings,
                mode=cast("Mode", mode),
                speed=speed,
                columns=columns_of(columns),
            )
    measured = {"utility": [each.model_dump() for each in figures]} if utility else {}
    as_json = json.dumps(report.model_dump(mode="json") | measured, indent=2) + "\n"
    beside = write_json(as_json, json_out, page=page, of=release if any(judged.values()) else None)
    reason = "no auditor's map" if auditor_map is None else "readings that are not declared"
    rows = rows_table(summary_rows(report), str(release))
    beside.print(rows, stream_summary(report, "", why_left_out=reason))
    # What fails is told whole: not every promise has a row in the summary.
    if shown := report.findings if every_attack else report.failures:
        beside.print(findings_table(shown, width=beside.width))
    if figures:
        beside.print(utility_table(figures))
    if not report.holds:
        failed = ", ".join(dict.fromkeys(finding.attack for finding in report.failures))
        raise GuaranteeError(f"{release}: does not keep the promise of {report.mode}: {failed}")
    if report.failed:
        raise GuaranteeError(f"{release}: not shown, as attacks failed: {'; '.join(report.failed)}")


@app.command()
def counts(
    trace: Annotated[
        Path, typer.Argument(help="True positions: csv or parquet with device_id, ts, lat, lon.")
    ],
    network: Annotated[str, typer.Option(help="Road network; see `anonymizer cloak`.")],
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the findings as JSON; -: print them.")
    ] = None,
    page: PageFile = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed; equal input and seed give equal findings.")
    ] = 0,
    columns: TraceColumns = None,
    config: ConfigFile = None,
) -> None:
    r"""Attack the counts that `\[counts]` would publish about recorded positions.

    Recovers trajectories from them, and guesses whether a device is in them, beside the same
    attacks on exact counts. Both are reported: safe counts do not promise to resist them. How long
    trips take (`counts.trip_durations`) is attacked, counts of trips are not. Traffic
    by street and hour (`anonymizer traffic`) with k is attacked as well; exit 1 if it reveals
    fewer than k devices.

    [bold]Example[/bold]

        anonymizer audit counts taxis.parquet --network sf
    """
    require("tables")
    from anonymizer.audit.counts_audit import audit_counts
    from anonymizer.networks import load_network
    from anonymizer.outputs.windows import promised_k

    settings = settings_of(config)
    _check_reports(json_out, page, read=[trace, config])
    recorded = recorded_trace(trace, columns, settings=settings)
    with Terminal(stderr=True).status("attacking counts"):
        roads = load_network(network)
        findings = audit_counts(recorded, roads, settings, seed=seed)
    as_json = json.dumps([each.model_dump(mode="json") for each in findings], indent=2) + "\n"
    beside = write_json(as_json, json_out, page=page)
    beside.print(findings_table(findings, width=beside.width))
    if settings.counts.has_noise and settings.counts.trip_areas:
        beside.print("Counts of trips were not attacked.")
    if any(each.fails for each in findings):
        raise GuaranteeError(
            f"{trace}: traffic by street and hour reveals fewer than {promised_k(settings)} devices"
        )


@app.command()
@takes_options(
    AuditOptions,
    order="original release qi auditor_map ... bands keep keep_anyway measures",
)
def table(
    original: Annotated[
        Path, typer.Argument(metavar="TABLE", help="The table that `anonymize` read.")
    ],
    release: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="The release that it published.")
    ],
    auditor_map: Annotated[Path, typer.Option(help="Auditor's map of `anonymize`.")],
    options: AuditOptions,
    population: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|N",
            help="The people of whom those of the table are a part: a table with the same "
            "quasi-identifiers, one row a person, or their number. For the journalist's risk, "
            "k-map and presence.",
        ),
    ] = None,
    with_: Annotated[
        tuple[Path, Path, Path] | None,
        typer.Option(
            "--with",
            metavar="TABLE RELEASE MAP",
            help="The same people at a later time: also attack both releases together. It needs "
            "--id.",
        ),
    ] = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the report as JSON; -: print it.")
    ] = None,
    page: PageFile = None,
) -> None:
    """Check a release of a table against its original and attack it; exit 1 if it fails.

    The criteria given (-k, -d, ...) are required; everything else is reported. With -d 2, the
    linkability attack must find nothing between sources; with -l 2, nothing sensitive. A column
    that is neither named here nor made by `anonymize` fails, and so does one that holds e-mail
    addresses or the like, or says again what a label hides, unless --keep-anyway says why.

    [bold]Example[/bold]

        anonymizer audit table people.csv out.csv --auditor-map map.csv --qi age,job,zip
        --sa illness --id name --source age,job --source zip -k 20 -d 2
    """
    from anonymizer.app.anonymize.plan import declared_of, make_promise
    from anonymizer.audit.grouped_findings import grouped_findings
    from anonymizer.audit.judged_files import judging
    from anonymizer.audit.table_audit import audit_table
    from anonymizer.audit.table_case import Day
    from anonymizer.files.tables import read_table

    _check_reports(json_out, page, read=[original, release, auditor_map, *(with_ or ())])
    declared = declared_of(options)
    measures = names_of(options.measures)
    console = Terminal(stderr=True)
    with judging("release", release) as judged, console.status("auditing"):
        read = read_table(original, [*declared.columns, *measures])
        report = audit_table(
            read,
            release,
            declared,
            make_promise(options),
            auditor_map=auditor_map,
            bands=options.bands or {},
            labels=options.labels,
            measures=measures,
            n_own=options.own,
            seed=options.seed,
            population=_population(population, declared.qis),
            at_risk=options.at_risk,
            target=options.target,
            reasons=options.keep_anyway,
            days=None if with_ is None else (Day(original, release, auditor_map), Day(*with_)),
        )
    report = report.model_copy(update={"judged": judged})
    as_json = report.model_dump_json(indent=2) + "\n"
    beside = write_json(as_json, json_out, page=page, of=release if any(judged.values()) else None)
    beside.print(
        table_summary(report, str(release)),
        grouped_table(grouped_findings(report.findings)),
        columns_table(report.columns),
    )
    if not report.holds:
        failed = ", ".join(dict.fromkeys(finding.attack for finding in report.failures))
        raise GuaranteeError(f"{release}: does not meet the criteria: {failed}")


def _population(given: str | None, qis: Sequence[str]) -> "TextTable | int | None":
    from anonymizer.files.tables import read_table

    if given is None:
        return None
    return int(given) if given.isdecimal() else read_table(given, qis)


@app.command()
def windows(
    published: Annotated[
        Path,
        typer.Argument(
            metavar="PUBLISHED",
            help="Recording of the topic that the stream publishes on: JSON lines of topic and "
            "payload, or a table of the two.",
        ),
    ],
    truth: Annotated[
        Path,
        typer.Argument(
            metavar="TRUTH",
            help="Recording of the topics of its sources, likewise. It may be the same file.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--stream", help="Name of the stream.", show_default="the only one"),
    ] = None,
    with_: Annotated[
        str | None,
        typer.Option(
            "--with",
            metavar="STREAM",
            help="Instead attack this stream and that of --stream together: both read one topic.",
        ),
    ] = None,
    with_positions: Annotated[  # noqa: FBT002  typer's
        bool,
        typer.Option(
            "--with-positions",
            help="Instead attack this stream and the published regions together; the recordings "
            "have both.",
        ),
    ] = False,
    own: Annotated[
        int,
        typer.Option(
            min=0,
            help="Also attack as the owner of this many of the vehicles, drawn by the seed; the "
            "attack must find nothing if k_extra is at least as large.",
        ),
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(min=0, help="Seed of the vehicles of --own, and of the control of --with."),
    ] = 0,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the report as JSON; -: print it.")
    ] = None,
    page: PageFile = None,
    config: ConfigFile = None,
) -> None:
    """Check and intersect the published windows of a stream of records; exit 1 if one fails.

    Every class is checked against the promise and what was received. The adversary knows, for
    every window, what all sources but one reported about a vehicle, and deduces which values the
    lasting attributes of the remaining source can have. If the stream enforces its promise over
    windows, at least d values must be left for each attribute of each vehicle, l of a sensitive
    one. A second adversary also knows what is left for all vehicles, and who was present in each
    window.

    With --with, two streams that read one topic are attacked together, and each alone. The control
    uses the second release of another vehicle. With --with-positions, a stream and the regions of
    the same vehicles are attacked together. That adversary knows where a vehicle is in the middle
    of a window and where each value occurs, and wants to learn what the vehicle reported and where
    it goes. The network is that of the settings.

    [bold]Examples[/bold]

        anonymizer audit windows recorded.jsonl recorded.jsonl --config gateway.toml

        anonymizer audit windows all.jsonl all.jsonl --stream fleet --with health -c gateway.toml
    """
    from anonymizer.app.gateway.declared_streams import declared_streams
    from anonymizer.audit.grouped_findings import grouped_findings
    from anonymizer.audit.joint_audit import audit_positions, audit_releases
    from anonymizer.audit.judged_files import judging
    from anonymizer.audit.windows_audit import audit_windows

    settings = settings_of(config)
    _check_reports(json_out, page, read=[published, truth, config])
    streams = {each.settings.name: each for each in declared_streams(settings)}
    if name is None and len(streams) == 1:
        (name,) = streams
    if name not in streams or (with_ is not None and with_ not in {*streams} - {name}):
        raise SettingsError(f"stream: must be one of {', '.join(streams) or 'those declared'}")
    files = {"published": published, "truth": truth}
    with judging("published", published, truth=truth) as judged:
        if with_positions:
            if with_ is not None:
                raise SettingsError("--with-positions: cannot be combined with --with")
            from anonymizer.networks import load_network

            network = load_network(settings.network.source)
            report = audit_positions(streams[name], settings, network, **files, seed=seed)
        elif with_ is None:
            report = audit_windows(
                streams[name], **files, limits=settings.limits, n_owned=own, seed=seed
            )
        else:
            report = audit_releases(
                streams[name], streams[with_], **files, limits=settings.limits, seed=seed
            )
    report = report.model_copy(update={"judged": judged})
    as_json = report.model_dump_json(indent=2) + "\n"
    beside = write_json(
        as_json, json_out, page=page, of=published if any(judged.values()) else None
    )
    shown = Table(title=f"{report.stream}: {report.n_windows} windows", show_header=False)
    shown.add_row("classes", f"{report.n_classes:,}")
    beside.print(shown, grouped_table(grouped_findings(report.findings)))
    if not report.holds:
        failed = ", ".join(
            f"{each.attack} of {each.attribute}" if each.attribute else each.attack
            for each in report.failures
        )
        raise GuaranteeError(
            f"{published}: the windows of {report.stream} do not keep its promise: {failed}"
        )


def _check_reports(
    json_out: Path | None, page: Path | None, *, read: Sequence[Path | None]
) -> None:
    """Check, before the attacks, that no report would be written over a file that is read."""
    beside = None if page is None else page.with_suffix(".json")
    check_distinct([json_out, page, beside], read=read)


def write_json(
    text: str, path: Path | None, *, page: Path | None = None, of: Path | None = None
) -> Terminal:
    """Write a report as JSON; return the console for its tables, standard error beside the JSON.

    `page`, `of`: where the page of `anonymizer report` is written, too, and the file that was
    attacked, whose hash it states; None: no page.

    Raises `InputError` if the file cannot be written.
    """
    if page is not None:
        _write_page(text, page, [] if of is None else [of], json_out=path)
    if path == Path("-"):
        typer.echo(text, nl=False)
        return Terminal(stderr=True)
    if path is not None:
        with whole_file(path) as file:
            file.write(text.encode())
    return Terminal()


def _write_page(text: str, page: Path, files: Sequence[Path], *, json_out: Path | None) -> None:
    from anonymizer.audit.evidence import evidence_from
    from anonymizer.audit.evidence import page as page_of
    from anonymizer.files.atomic_write import of_content, write_whole

    as_json = page.with_suffix(".json")
    made = datetime.now(UTC).isoformat(timespec="seconds")
    source = Path("audit") if json_out is None or json_out == Path("-") else json_out
    evidence = evidence_from([(source, text.encode())], made=made, files=files)
    texts = {page: page_of(evidence), as_json: evidence.model_dump_json(indent=2) + "\n"}

    write_whole({path: of_content(content) for path, content in texts.items()})
