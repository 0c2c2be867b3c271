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
    """Pass positions and records from MQTT to Kafka, and what workers publish from Kafka to MQTT.

    Runs until SIGTERM or Ctrl-C, and waits for Kafka while it is away. Several bridges share the
    work; one that dies loses nothing that was acknowledged.

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
            "worker that comes back within 6 s under its name goes on with its own part.",
            show_default="the name of this host",
            metavar="NAME",
        ),
    ] = "",
    state: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder for the state, which only its owner may read. What is missing in it is "
            "read from Kafka.",
        ),
    ] = Path("state"),
) -> None:
    """Run a part of the stages between Kafka's topics until SIGTERM or Ctrl-C.

    Start as many as there is work for; they divide it among themselves, and take over from one that
    dies. All need the same settings, and `anonymizer bridge` between them and MQTT. While Kafka is
    away they wait. Exit code 1: another worker has this name, or a state is lost (see the log).

    [bold]Example[/bold]

        anonymizer worker --config gateway.toml --state /var/lib/anonymizer
    """
    settings = settings_of(config)
    from anonymizer.cluster.worker import run_worker

    with _named(config):
        run_worker(settings, name=name or socket.gethostname(), state_dir=state)


@app.command()
def dropped(config: ConfigFile = None) -> None:
    """List the inputs that workers have dropped: where each lies in Kafka, and why.

    A message that no stage can read, or at which one fails, costs itself and nothing else. Nothing
    of its content is shown; the list goes back for 30 days.

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
            metavar="DIR", help="Also the states of workers in this folder, of this cluster."
        ),
    ] = None,
    yes: Annotated[  # noqa: FBT002  typer's flag
        bool, typer.Option("--yes", help="Do not ask.")
    ] = False,
) -> None:
    """Erase the raw data of a stopped cluster: all inputs and states of its stages.

    What was published stays. Bridges and workers that are started afterwards begin anew, so each
    machine's folder of states has to be erased, too: a worker that finds an older state stands
    still. What was published about vehicles in earlier windows is not remembered any more.

    [bold]Example[/bold]

        anonymizer cluster erase --config gateway.toml --state /var/lib/anonymizer
    """
    settings = settings_of(config)
    from anonymizer.cluster.upkeep import erase as erased

    if not yes:
        prefix = settings.cluster.prefix
        typer.confirm(f"Erase all raw data of the cluster {prefix}?", abort=True, err=True)
    with _named(config):
        found = erased(settings, state)
    for each in found:
        typer.echo(f"erased: {each}")
    if not found:
        typer.echo("there was nothing to erase")
