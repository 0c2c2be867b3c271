"""Command `anonymizer bridge`: the positions flow on Apache Kafka."""

import socket
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
    """Pass positions from MQTT to Kafka, and what workers publish from Kafka to MQTT.

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
