"""Command `anonymizer cloak`: a recorded trace becomes a release, without MQTT."""

import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.cli.completion import mode_names
from anonymizer.cli.serve import ConfigFile, settings_of
from anonymizer.cli.trace_options import TraceColumns, recorded_trace
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import GuaranteeError, InputError
from anonymizer.extras import require

if TYPE_CHECKING:
    from rich.table import Table

    from anonymizer.app.cloak import CloakSummary


def cloak(
    trace: Annotated[
        Path,
        typer.Argument(
            help="csv or parquet with device_id, ts, lat, lon (or node), and a column for "
            "each reading that the settings declare; or what mosquitto_sub -v or -F %j printed of "
            "the inputs of the settings."
        ),
    ],
    network: Annotated[
        str,
        typer.Option(
            metavar="NET",
            help="GraphML, OSM pbf or XML, SUMO .net.xml, PREFIX of PREFIX_nodes/PREFIX_edges, "
            "walk:FILE and the like, h3:RESOLUTION:AREA, grid:ROWSxCOLUMNS or city:NODES.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The release: a JSON line for each pseudonym and tick. -: print it."),
    ],
    region: Annotated[
        str | None,
        typer.Option(
            help="Mode of the regions: adka, snapshot or session.",
            show_default="the settings' mode",
            autocompletion=mode_names,
        ),
    ] = None,
    auditor_map: Annotated[
        Path | None,
        typer.Option(help="Map from pseudonyms to devices, to write; for the auditor alone."),
    ] = None,
    tick: Annotated[float, typer.Option(min=0.001, help="Length of a tick in seconds.")] = 1.0,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed for tests: equal input and seed give equal files, and whoever knows the "
            "seed can compute the pseudonyms of a known device.",
            show_default="a secret one, not kept",
        ),
    ] = None,
    ids_change: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option(
            "--ids-change",
            help="Vehicles change ids in this trace: the former id of a vehicle does not count as"
            " another device.",
            show_default="as inputs.ids_change_s of the settings says",
        ),
    ] = False,
    columns: TraceColumns = None,
    config: ConfigFile = None,
) -> None:
    """Cloak a recorded trace with the operators of the live service, without MQTT.

    Exit 2 if nothing of it was published, and say why.

    [bold]Examples[/bold]

        anonymizer cloak taxis.parquet --network sf --region adka --out cloaked.jsonl

        anonymizer cloak ais.csv --columns id=MMSI,time=BaseDateTime,lat=LAT,lon=LON
        --network water:harbour.osm.pbf --out cloaked.jsonl
    """
    require("tables")
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from anonymizer.app.cloak import cloak_trace
    from anonymizer.cli.terminal import Terminal
    from anonymizer.files.atomic_write import check_distinct
    from anonymizer.networks import load_network
    from anonymizer.networks.as_loaded import network_for

    settings = settings_of(config, {} if region is None else {"region": {"mode": region}})
    check_distinct([out, auditor_map], read=[trace, config])
    console = Terminal(stderr=True)
    if seed is not None:
        console.print("--seed: this release is reproducible; it is for tests, not for publishing")
    readings = [each.name for each in settings.readings]
    with console.status("reading the trace"):
        recorded = recorded_trace(trace, columns, readings=readings, settings=settings)
    with console.status("reading the network"):
        roads = network_for(settings.region.mode, load_network(network))
    if roads.account:
        console.print(f"{network}: {roads.account}")
    shown = (TextColumn("cloaking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*shown, console=console) as bar:
        task = bar.add_task("", total=recorded.n_rows)
        summary = cloak_trace(
            recorded,
            roads,
            settings,
            tick_s=tick,
            seed=secrets.randbits(128) if seed is None else seed,
            ids_change=ids_change,
            out=sys.stdout.buffer if out == Path("-") else out,
            auditor_map=auditor_map,
            progress=lambda rows: bar.advance(task, rows),
        )
    console.print(_table(summary, title=str(out), seconds=time.monotonic() - began))
    if summary.warning:
        console.print(summary.warning)
    if summary.ids_change:
        console.print(
            "new ids begin where others ended: if vehicles change their ids, use --ids-change, or "
            "groups have fewer than k vehicles"
        )
    if summary.ledger.n(Outcome.SUPPRESSED__UNVERIFIED):
        raise GuaranteeError("verification failed for some groups; they were suppressed")
    if why := summary.nothing_published:
        raise InputError(f"{trace}: {why}")


def _table(summary: "CloakSummary", *, title: str, seconds: float) -> "Table":
    import numpy as np
    from rich.markup import escape
    from rich.table import Table

    ledger = summary.ledger
    table = Table(title=title, show_header=False, box=None, title_justify="left")
    table.add_column(justify="left", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_row("positions received", f"{ledger.n_received:,}")
    for outcome, n in ledger.counts().items():
        if n:
            table.add_row("  " + " ".join(filter(None, outcome.label)).replace("_", " "), f"{n:,}")
    table.add_row("  unaccounted for", f"{ledger.n_received - ledger.n_settled:,}")
    sizes = np.concatenate([np.zeros(0, np.int64), *summary.region_nodes])
    if len(sizes):
        table.add_row("nodes per region, median", f"{np.median(sizes):,.0f}")
        table.add_row("nodes per region, mean", f"{sizes.mean():,.1f}")
    if summary.age_s.n:
        p95 = summary.age_s.quantile(0.95)
        table.add_row("age of information, mean", f"{summary.age_s.mean:,.1f} s")
        table.add_row("age of information, 95 % below", f"{p95:,.1f} s")
    for name, n in summary.n_clamped.items():
        table.add_row(f"clamped, {escape(name)}", f"{n:,}")
        table.add_row("  groups published without it", f"{summary.n_left_out[name]:,}")
    table.add_row("positions per second", f"{ledger.n_received / seconds:,.0f}")
    table.add_row("time", f"{seconds:.1f} s")
    return table
