"""Commands `anonymizer serve`, `check`, `mcp`, `backup` and `clock`, which take a settings file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anonymizer.cli.trace_options import TraceColumns, recorded_trace
from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.domain.network import RoadNetwork
    from anonymizer.settings import Settings

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings file (TOML). ANONYMIZER__TABLE__KEY=value in the environment overrides it.",
        show_default="the defaults",
    ),
]


def settings_of(
    config: Path | None, options: Mapping[str, Any] | None = None, *, whole: bool = False
) -> "Settings":
    """Return the settings of a file (None: the defaults), overridden by the environment.

    `options`, tables of the command line, override both. `whole`: see `load_settings`.
    """
    from anonymizer.settings import load_settings

    return load_settings(config, options=options, whole=whole)


def serve(
    config: ConfigFile = None,
    with_broker: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option(
            "--with-broker",
            help="For a first try: if no broker answers at broker.url on this machine, run one, "
            "Mosquitto if it is installed.",
        ),
    ] = False,
) -> None:
    """Run the gateway until SIGTERM or Ctrl-C; then drain and exit.

    SIGHUP reads the settings again: log level, limits, k by density and some others change at once.
    If anything else differs, or would protect less, nothing changes; the log names it.

    [bold]Examples[/bold]

        anonymizer serve --config gateway.toml

        ANONYMIZER__BROKER__URL=mqtts://broker.example anonymizer serve -c gateway.toml
    """
    # Logs need the settings, and errors are one line on standard error.
    typer.echo(f"anonymizer: reads {config or 'the environment'}; what follows is in the log")
    import asyncio

    settings = settings_of(config)
    from anonymizer.app.gateway.start_log import StartLog
    from anonymizer.observe.logs import configure_logs

    configure_logs(settings.log)
    with StartLog() as start, errors_naming(config):
        start.tell("loads the program")
        from anonymizer.app.gateway.service import serve_until_told, serve_with_broker

        serving = serve_with_broker if with_broker else serve_until_told
        asyncio.run(serving(settings, lambda: settings_of(config, whole=True), start))


def check(
    config: ConfigFile = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Recorded positions (csv or parquet with device_id, ts, lat, lon): tell how many "
            "of them are off the graph."
        ),
    ] = None,
    cluster: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option("--cluster", help="Also check what bridges and workers of a cluster require."),
    ] = False,
    connect: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option("--connect", help="Also ask the broker what it can do, and what it refuses."),
    ] = False,
    columns: TraceColumns = None,
) -> None:
    """Check a settings file: exit 0 if it is valid, or exit 2 and name the file and the key.

    Reads the network and every file that the settings name; without --connect it connects to
    nothing. Tells where the network is, and what it covers.

    [bold]Examples[/bold]

        anonymizer check --config gateway.toml

        anonymizer check --config gateway.toml --trace yesterday.parquet

        anonymizer check --config gateway.toml --connect
    """
    settings = settings_of(config)
    from anonymizer.app.gateway.preflight import check_files

    with errors_naming(config):
        network, streams = check_files(settings)
        if cluster:
            from anonymizer.cluster.upkeep import check_members

            check_members(settings, network, streams)
    found = [f"a network of {network.n_nodes:,} nodes and {network.n_roads:,} roads"]
    found += [network.account] * bool(network.account)
    names = ", ".join(stream.settings.name for stream in streams)
    found = found * bool(settings.inputs) + [f"streams of records: {names}"] * bool(streams)
    typer.echo(f"{config or 'the default settings'}: fine; {'; '.join(found)}")
    for line in _windows_lines(settings):
        typer.echo(line)
    if settings.inputs:
        for line in _protection_lines(network, settings):
            typer.echo(line)
        for line in _coverage_lines(network, settings, trace, columns):
            typer.echo(line)
        for line in _ids_lines(settings):
            typer.echo(line)
        for line in _visitors_lines(settings):
            typer.echo(line)
    if connect:
        import asyncio

        from anonymizer.app.gateway.asked_broker import asked_broker

        for line in asyncio.run(asked_broker(settings)):
            typer.echo(line)


def _windows_lines(settings: "Settings") -> Iterator[str]:
    """Say what windows together reveal, of each stream, and what streams of one topic do."""
    from anonymizer.settings.streams import sharing

    for stream in settings.streams:
        lasting = ", ".join(each.name for each in stream.attributes if each.lasting)
        if stream.unprotected:
            yield f"{stream.name}: windows together reveal {lasting} of most vehicles (report)"
        elif lasting:
            yield (
                f"{stream.name}: windows together keep {lasting} (enforce), for 1.1 to 1.3 times "
                "the information loss of single windows"
            )
    for one, other in sharing(settings.streams):
        topics = [mine.filter_topic for mine, _ in one.topics_shared_with(other)]
        both = f"{one.name} and {other.name}: both read {', '.join(topics)}"
        if values := one.values_shared_with(other):
            yield (
                f"warning: {both}, and publish {', '.join(values)} of the same vehicles: their "
                "classes can be intersected; see audit windows "
                f"--stream {one.name} --with {other.name}"
            )
        else:
            yield f"{both}; each value is in one of them, so intersecting them leaves no less"


def _protection_lines(network: "RoadNetwork", settings: "Settings") -> Iterator[str]:
    """Say which k is published, and what the zones hold."""
    from anonymizer.app.gateway.coverage import n_inside
    from anonymizer.pipeline.positions.tick.silence import published_k

    adka = settings.adka
    yield f"k: {published_k(adka)}"
    stated = adka.k_values if "k_values" in adka.model_fields_set else ()
    if overruled := [k for k in dict.fromkeys(stated) if k < adka.k_floor]:
        told = ", ".join(map(str, overruled))
        yield f"warning: adka.k_floor = {adka.k_floor} overrules {told} of adka.k_values"
    for number, zone in enumerate(settings.zones, start=1):
        n = n_inside(zone.shape, network)
        yield f"zones (no. {number}): {n:,} nodes of the network are in it"


def _ids_lines(settings: "Settings") -> Iterator[str]:
    """Say what short ids cost, of the inputs whose ids change."""
    epoch_s, trips = settings.session.epoch_s, settings.trips
    for each in settings.inputs:
        live_s = each.ids_live_s
        if not live_s:
            continue
        yield f"{each.topic}: ids change every {live_s:g} s; none is company for the next"
        if settings.region.mode == "session" and live_s < 2 * epoch_s:
            yield (
                f"{each.topic}: groups live for {epoch_s:g} s, so a vehicle spends much of the "
                "time under ids that wait for a group: lower session.epoch_s"
            )
        if trips.enabled and live_s < 8 * trips.ends_s:
            yield f"{each.topic}: trips.enabled hides both ends of every id, most of each"


def _visitors_lines(settings: "Settings") -> Iterator[str]:
    """Say what visitors of a public map are not told."""
    http = settings.http
    if http.is_public and not http.run_by:
        yield "hint: http.run_by is empty: visitors of the map are not told who runs it"
    if http.is_public and http.token is None and http.token_file is None:
        yield (
            "hint: whoever reaches the map sees what is published, whatever the broker's rules: set"
            " http.token_file"
        )


def _coverage_lines(
    network: "RoadNetwork", settings: "Settings", trace: Path | None, columns: str | None
) -> Iterator[str]:
    from anonymizer.app.gateway.coverage import coverage, trace_coverage

    limit_m = settings.network.snap_limit_m
    area = coverage(network, limit_m=limit_m)
    parts = "1 part" if area.n_components == 1 else f"{area.n_components:,} parts"
    latitudes = f"{area.south:.4f} to {area.north:.4f}"
    longitudes = f"{area.west:.4f} to {area.east:.4f}"
    yield f"area: latitude {latitudes}, longitude {longitudes}"
    yield f"roads: {parts}, of which the largest has {area.largest_share:.1%} of the nodes"
    yield f"covered: {area.near_share:.0%} of that area is within {limit_m:g} m of a road"
    if trace is None:
        return
    require("tables")

    recorded = recorded_trace(trace, columns, settings=settings)
    try:
        found = trace_coverage(recorded, network, limit_m=limit_m)
    except InputError as error:
        raise InputError(f"{trace}: {error}") from None
    yield (
        f"{trace}: {found.off_graph_share:.2%} of {found.n_positions:,} positions are off the "
        f"graph; {found.outside_share:.2%} are outside the area of the network"
        + "; in one of them, latitude and longitude are exchanged"
        * found.is_exchanged
    )


@contextmanager
def errors_naming(config: Path | None) -> Iterator[None]:
    """Name the settings file in the SettingsErrors that are raised inside the block."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(f"{config or 'settings'}: {error}") from None


def mcp(config: ConfigFile = None) -> None:
    """Answer questions about toll releases as an MCP server, on standard input and output.

    Reads the store that the settings name, even while a gateway writes to it; changes nothing.

    [bold]Example[/bold]

        anonymizer mcp --config gateway.toml
    """
    require("mcp")
    import asyncio

    settings = settings_of(config)
    from anonymizer.app.gateway.api import serve_tools

    with errors_naming(config):
        asyncio.run(serve_tools(settings))


def backup(
    out: Annotated[
        Path, typer.Option("--out", metavar="COPY", help="File to write; it must not exist yet.")
    ],
    config: ConfigFile = None,
    everything: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option(
            "--everything",
            help="Also copy the raw parts of open windows, and the key of the vehicles' digests.",
        ),
    ] = False,
) -> None:
    """Copy the published releases of the store, even while a gateway writes to it.

    The copy is itself a store: a gateway that is started on it publishes no window again. Without
    --everything, it contains neither open windows nor what is remembered of vehicles from earlier
    windows.

    [bold]Example[/bold]

        anonymizer backup --config gateway.toml --out releases.sqlite
    """
    settings = settings_of(config)
    from anonymizer.files.atomic_write import named_file
    from anonymizer.store import back_up

    with errors_naming(config):
        back_up(settings.store.path, named_file(out), everything=everything)
    typer.echo(f"{out}: {'the whole store' if everything else 'the published releases'}")


def clock(
    config: ConfigFile = None,
    go_on: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option(
            "--go-on", help="This machine's clock is right: accept times from now on. Not undone."
        ),
    ] = False,
) -> None:
    """Say what a wrong clock has left in the store, and go on after it; the gateway is stopped.

    Windows of records and the budget of counts never go back by themselves. With --go-on they begin
    again now. What is published already is not published again: later windows that have closed
    stay so, and what is not known of a budget is taken for spent.

    [bold]Example[/bold]

        anonymizer clock --config gateway.toml --go-on
    """
    settings = settings_of(config)
    from time import time

    from anonymizer.app.gateway.wrong_clock import told

    with errors_naming(config):
        for line in told(settings, now=time(), going_on=go_on):
            typer.echo(line)
