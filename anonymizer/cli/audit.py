"""`anonymizer audit`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from anonymizer.cli.audit_table import table
from anonymizer.cli.findings import findings_table, write_text
from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.errors import GuaranteeError

if TYPE_CHECKING:
    from anonymizer.app.audit import AuditReport

app = typer.Typer(
    help="Attack a release, and see whether it keeps its promise.", no_args_is_help=True
)


class _Mode(StrEnum):
    BFS = "bfs"
    SNAPSHOT = "snapshot"
    SESSION = "session"


@app.callback()
def _audits() -> None:
    """Attack a release, and see whether it keeps its promise."""


@app.command()
def stream(
    trace: Annotated[
        Path,
        typer.Argument(
            help="True positions: csv or parquet with device_id, ts, lat, lon, and a column for "
            "each declared reading that the release tells per pseudonym."
        ),
    ],
    release: Annotated[
        Path, typer.Argument(metavar="PUB", help="What was published: PUB.jsonl of `cloak`.")
    ],
    network: Annotated[str, typer.Option(help="The road network of both; see `cloak`.")],
    auditor_map: Annotated[
        Path | None,
        typer.Option(
            help="MAP.jsonl of `cloak`. Without it, what needs to know who a pseudonym is is "
            "left out."
        ),
    ] = None,
    mode: Annotated[
        _Mode, typer.Option(help="Whose promises are required; the rest is reported.")
    ] = _Mode.SESSION,
    tick: Annotated[float, typer.Option(min=0.001, help="Seconds of a tick.")] = 1.0,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="Where the report goes as JSON; -: print it.")
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            min=0,
            help="Pseudonyms that the centre, prefix and velocity attacks look at; 0: all.",
        ),
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Equal input and seed give equal reports.")] = 0,
    config: ConfigFile = None,
) -> None:
    """Attack a release of cloaked positions; exit 1 if a promise of the mode is broken.

    [bold]Example[/bold]

        anonymizer audit stream taxis.parquet cloaked.jsonl --network sf --auditor-map map.jsonl
    """
    from anonymizer.app.audit import ATTACKS, audit_release
    from anonymizer.files.release_lines import read_auditor_map, read_release
    from anonymizer.files.traces import read_trace
    from anonymizer.networks import load_network

    settings = settings_of(config)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the network and the release", total=len(ATTACKS) + 3)

        def step(name: str) -> None:
            bar.update(task, description=name, advance=1)

        roads = load_network(network)
        released = read_release(release, roads)
        step("reading the trace")
        told = [each.name for each in settings.readings if each.name in released.values]
        recorded = read_trace(trace, readings=told)
        device_of = None
        if auditor_map is not None:
            device_of = read_auditor_map(
                auditor_map, pseudonym=released.pseudonym, device_id=recorded.device_id
            )
        report = audit_release(
            recorded,
            released,
            roads,
            settings,
            device_of=device_of,
            mode=mode.value,
            tick_s=tick,
            sample=sample,
            seed=seed,
            progress=step,
        )
    as_json = report.model_dump_json(indent=2) + "\n"
    printed = json_out == Path("-")
    if printed:
        typer.echo(as_json, nl=False)
    elif json_out is not None:
        write_text(json_out, as_json)
    why = "no auditor's map" if auditor_map is None else "readings that are not declared"
    (console if printed else Console()).print(
        _summary(report, str(release), why_left_out=why), findings_table(report.findings)
    )
    if not report.holds:
        failed = ", ".join(dict.fromkeys(finding.attack for finding in report.failures))
        raise GuaranteeError(f"{release}: does not keep the promise of {mode.value}: {failed}")


def _summary(report: "AuditReport", title: str, *, why_left_out: str) -> Table:
    regions = report.regions
    table = Table(title=title, show_header=False)
    table.add_row("mode", report.mode)
    table.add_row("records", f"{report.n_records:,}, {report.suppressed_share:.1%} suppressed")
    table.add_row("pseudonyms, devices", f"{report.n_pseudonyms:,}, {report.n_devices:,}")
    table.add_row("ticks", f"{report.n_ticks:,}")
    table.add_row(
        "nodes a region",
        f"mean {regions.nodes_mean:.1f}, median {regions.nodes_median:g}, max {regions.nodes_max}",
    )
    if regions.extent_m_mean is not None:
        table.add_row(
            "metres across",
            f"mean {regions.extent_m_mean:,.0f}, median {regions.extent_m_median:,.0f}, "
            f"max {regions.extent_m_max:,.0f}",
        )
    if report.left_out:
        table.add_row(f"left out, {why_left_out}", escape(", ".join(report.left_out)))
    return table


app.command()(table)
