"""The command line `anonymizer`: its commands, exit codes and one-line errors."""

import atexit
import errno
import gc
import re
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import NoReturn

import typer

from anonymizer import __version__
from anonymizer.cli import (
    anonymize,
    attack,
    audit,
    audit_release,
    cloak,
    cluster,
    connect,
    demo,
    hierarchy,
    init,
    network,
    profile,
    protect,
    report,
    serve,
    traffic,
    trips,
    tune,
)
from anonymizer.cli.terminal import printable
from anonymizer.compiling_aloud import told_of_compiling
from anonymizer.crashes import trace_crashes
from anonymizer.errors import AnonymizerError, GuaranteeError, StoreError
from anonymizer.extras import any_extra
from experiments import commands as experiments

app = typer.Typer(
    name="anonymizer",
    help="A privacy gateway for moving devices: raw positions in over MQTT, cloaked regions out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  typer's callback
    if wanted:
        typer.echo(f"anonymizer {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(  # noqa: FBT001  read by its callback
        False,
        "--version",
        help="Print the version and exit.",
        callback=_print_version,
        is_eager=True,
    ),
) -> None:
    pass


_PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "To begin": {"demo": demo.demo, "experiment": experiments.app},
    "The gateway": {
        "init": init.init, "connect": connect.connect, "check": serve.check, "serve": serve.serve,
        "schema": init.schema, "network": network.app, "mcp": serve.mcp, "backup": serve.backup,
        "clock": serve.clock,
    },
    "Recorded positions": {
        "cloak": cloak.cloak, "protect": protect.protect, "trips": trips.trips,
        "traffic": traffic.traffic,
    },
    "Tables": {
        "anonymize": anonymize.anonymize, "hierarchy": hierarchy.hierarchy,
        "profile": profile.profile, "tune": tune.tune,
    },
    "Is it safe to publish?": {
        "audit": audit.app, "attack": attack.attack, "report": report.report,
    },
    "Several machines": {
        "bridge": cluster.bridge, "worker": cluster.worker, "cluster": cluster.app,
    },
}  # fmt: skip
for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)
audit.app.command("release")(audit_release.release)


_NEW_OBJECTS = 10_000
"""Between two searches for garbage. With Python's 700 they are a tenth of what a start takes."""


_STRAY_SETTINGS = re.compile(r"unexpected extra argument\S* \((\S+\.toml)\)")
_DISK_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What the system says of a disk that is full or broken, and of standard output on it."""


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 a promise or bar failed or the disk of the store did, 2 bad input or
    settings, 130 interrupted.
    """
    trace_crashes()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")  # names that the locale cannot say
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)  # without a last search of all objects it ends half a second sooner
    try:
        # The one is of whatever command forgot to ask for it first, the other of all that compile.
        with any_extra(), told_of_compiling(lambda line: typer.echo(line, err=True)):
            sys.exit(app(prog_name="anonymizer", standalone_mode=False))
    except (GuaranteeError, StoreError) as error:
        _fail(str(error), code=1)
    except AnonymizerError as error:
        _fail(str(error), code=2)
    except typer.TyperException as error:
        message = error.format_message()  # empty if the help has already been shown
        if (stray := _STRAY_SETTINGS.search(message)) is not None:
            message += f"; did you mean --config {stray[1]}?"
        _fail(f"{message} (see --help)" if message else "", code=2)
    except OSError as error:
        if error.errno not in _DISK_FAILS:
            raise
        from anonymizer.files.atomic_write import said_of

        _fail(f"cannot write: {said_of(error)}", code=2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)  # the shell's code for a program that SIGINT ended


def _fail(message: str, *, code: int) -> NoReturn:
    if message:
        typer.echo(printable(f"anonymizer: {' '.join(message.split())}"), err=True)
    sys.exit(code)
