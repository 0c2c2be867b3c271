"""The command line `anonymizer`: its commands, exit codes and one-line errors."""

import atexit
import errno
import gc
import re
import sys
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
from anonymizer.cli import serve as releases
from anonymizer.cli.terminal import printable
from anonymizer.crashes import trace_crashes
from anonymizer.errors import AnonymizerError, GuaranteeError, StoreError
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


app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("check")(serve.check)
app.command("init")(init.init)
app.command("connect")(connect.connect)
app.command("schema")(init.schema)
app.command("cloak")(cloak.cloak)
app.command("protect")(protect.protect)
app.command("trips")(trips.trips)
app.command("traffic")(traffic.traffic)
app.command("anonymize")(anonymize.anonymize)
app.command("hierarchy")(hierarchy.hierarchy)
app.command("profile")(profile.profile)
app.command("tune")(tune.tune)
app.command("mcp")(releases.mcp)
app.command("backup")(releases.backup)
app.command("clock")(releases.clock)
app.command("bridge")(cluster.bridge)
app.command("worker")(cluster.worker)
app.command("attack")(attack.attack)
app.command("report")(report.report)
audit.app.command("release")(audit_release.release)
app.add_typer(audit.app, name="audit")
app.add_typer(network.app, name="network")
app.add_typer(cluster.app, name="cluster")
app.add_typer(experiments.app, name="experiment")


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
