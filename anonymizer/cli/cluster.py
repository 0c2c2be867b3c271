"""Commands `anonymizer bridge` and `worker`: positions and records on Apache Kafka."""

import socket
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.cli.serve import ConfigFile, errors_naming, settings_of
from anonymizer.errors import TransportError


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

    Runs until SIGTERM or Ctrl-C. Several bridges share the work; one that dies loses nothing that
    was acknowledged. Exit code 1: Kafka is not there or refuses; start again.

    [bold]Example[/bold]

        anonymizer bridge --config gateway.toml
    """
    settings = settings_of(config)
    import asyncio

    from anonymizer.cluster.bridge import run_bridge

    with errors_naming(config):
        try:
            asyncio.run(run_bridge(settings, name=name or socket.gethostname()))
        except TransportError as error:
            typer.echo(f"anonymizer: {error}", err=True)
            raise typer.Exit(1) from None


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
    dies. All need the same settings, and `anonymizer bridge` between them and MQTT. Exit code 1:
    Kafka was lost, or another worker has this name; start again.

    [bold]Example[/bold]

        anonymizer worker --config gateway.toml --state /var/lib/anonymizer
    """
    settings = settings_of(config)
    from anonymizer.cluster.worker import run_worker

    with errors_naming(config):
        try:
            run_worker(settings, name=name or socket.gethostname(), state_dir=state)
        except TransportError as error:
            typer.echo(f"anonymizer: {error}", err=True)
            raise typer.Exit(1) from None
