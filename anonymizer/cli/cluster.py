"""Commands `anonymizer bridge`, `worker` and `cluster`: positions and records on Apache Kafka."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.cli.serve import ConfigFile, errors_naming, settings_of
from anonymizer.errors import TransportError

app = typer.Typer(help="Look after a cluster on Apache Kafka.", no_args_is_help=True)


@contextmanager
def _named(config: Path | None) -> Iterator[None]:
    """Name the settings file in what is wrong with it; end with 1 where Kafka is the reason."""
    with errors_naming(config):
        try:
            yield
        except TransportError as error:
            typer.echo(f"anonymizer: {error}", err=True)
            raise typer.Exit(1) from None


def bridge(
    config: ConfigFile = None,
    name: Annotated[
        str,
        typer.Option(
            help="Name of this bridge, unique in the cluster and the same after a restart.",
            show_default="the name of this host",
            metavar="NAME",
        ),
    ] = "",
) -> None:
    """Carry positions and records from MQTT to Kafka, and the workers' output back to MQTT.

    Runs until SIGTERM or Ctrl-C. While Kafka cannot be reached, it waits. Several bridges share the
    work; if one dies, nothing that was acknowledged is lost.

    [bold]Example[/bold]

        anonymizer bridge --config gateway.toml
    """
    settings = settings_of(config)
    import asyncio

    from anonymizer.cluster.bridge import run_bridge

    with _named(config):
        asyncio.run(run_bridge(settings, name=name or socket.gethostname()))


def worker(
    config: ConfigFile = None,
    name: Annotated[
        str,
        typer.Option(
            help="Name of this worker, unique in the cluster and the same after a restart: a "
            "worker that restarts under its name within 6 s keeps its stages.",
            show_default="the name of this host",
            metavar="NAME",
        ),
    ] = "",
    state: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder for a lock, and for the ids of the topics that this worker has read. "
            "States are in Kafka.",
        ),
    ] = Path("state"),
) -> None:
    """Run some of the stages of a cluster on Kafka until SIGTERM or Ctrl-C.

    Start as many workers as you need: they share the stages, and if one dies, the others take over
    its stages. All need the same settings, and `anonymizer bridge` between Kafka and MQTT. While
    Kafka cannot be reached, they wait. Exit code 1: another worker has this name, a state is lost,
    or it was stuck (see the log); let a supervisor start it again.

    [bold]Example[/bold]

        anonymizer worker --config gateway.toml --state /var/lib/anonymizer
    """
    settings = settings_of(config)
    from anonymizer.cluster.worker import run_worker

    with _named(config):
        run_worker(settings, name=name or socket.gethostname(), state_dir=state)


@app.command()
def dropped(config: ConfigFile = None) -> None:
    """List the inputs that workers have dropped: where each is in Kafka, and why.

    A message that a stage cannot read, or that makes a stage fail, is dropped, and nothing else is
    lost. The list never shows content, and covers the last 30 days.

    [bold]Example[/bold]

        anonymizer cluster dropped --config gateway.toml
    """
    settings = settings_of(config)
    from anonymizer.cluster.upkeep import dropped as listed

    with _named(config):
        n = 0
        for n, each in enumerate(listed(settings), start=1):  # noqa: B007  counted
            at = datetime.fromtimestamp(each.at_s, UTC).isoformat(timespec="seconds")
            typer.echo(
                f"{at}  {each.topic}  partition {each.partition}  offset {each.offset}"
                f"  {each.n_bytes} bytes  {each.reason}"
            )
        typer.echo(f"{n} dropped")


@app.command()
def erase(
    config: ConfigFile = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also erase what workers of this cluster keep in this folder."
        ),
    ] = None,
    yes: Annotated[  # noqa: FBT002  typer's flag
        bool, typer.Option("--yes", help="Do not ask.")
    ] = False,
) -> None:
    """Erase the raw data of a stopped cluster: all inputs and states of its stages.

    What was published stays. Bridges and workers start afresh afterwards, so erase the folder of
    workers on every machine, too: a worker whose folder knows older topics refuses to go on. The
    cluster also forgets what was published about vehicles in earlier windows.

    [bold]Example[/bold]

        anonymizer cluster erase --config gateway.toml --state /var/lib/anonymizer
    """
    settings = settings_of(config)
    from anonymizer.cluster.upkeep import erase as erased

    if not yes:
        prefix = settings.kafka.group
        typer.confirm(f"Erase all raw data of the cluster {prefix}?", abort=True, err=True)
    with _named(config):
        found = erased(settings, state)
    for each in found:
        typer.echo(f"erased: {each}")
    if not found:
        typer.echo("there was nothing to erase")
