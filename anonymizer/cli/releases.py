"""`anonymizer mcp` and `anonymizer backup`."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.cli.serve import ConfigFile, blaming, settings_of


def mcp(config: ConfigFile = None) -> None:
    """Answer questions about toll releases as an MCP server, on standard input and output.

    Reads the store of the settings, also while a gateway writes it, and changes nothing.

    [bold]Example[/bold]

        anonymizer mcp --config gateway.toml
    """
    settings = settings_of(config)
    from anonymizer.app.gateway.api import serve_tools

    with blaming(config):
        asyncio.run(serve_tools(settings))


def backup(
    out: Annotated[
        Path, typer.Option("--out", metavar="COPY", help="A file that is not there yet.")
    ],
    config: ConfigFile = None,
    everything: Annotated[  # noqa: FBT002  typer's flag
        bool,
        typer.Option(
            "--everything",
            help="Also the raw parts of open windows, and the key of the vehicles' digests.",
        ),
    ] = False,
) -> None:
    """Copy the store, also while a gateway writes it: what was published, alone.

    The copy is a store itself: a gateway that starts on it publishes no window once more. Windows
    that were open are not in it, and what vehicles had in common over earlier ones is forgotten,
    unless --everything is said.

    [bold]Example[/bold]

        anonymizer backup --config gateway.toml --out releases.sqlite
    """
    settings = settings_of(config)
    from anonymizer.store import back_up

    with blaming(config):
        back_up(settings.store.path, out, everything=everything)
    typer.echo(f"{out}: {'the whole store' if everything else 'all that was published'}")
