"""Entry point of `simulator` and `python -m simulator`."""

import atexit
import gc
import sys

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

try:  # what is imported takes a third of a second to load
    import typer

    from anonymizer.compiling_aloud import told_of_compiling
    from anonymizer.crashes import trace_crashes
    from anonymizer.errors import AnonymizerError
    from anonymizer.extras import any_extra
    from simulator.cli.main import app
except KeyboardInterrupt:
    sys.exit(EXIT_INTERRUPTED)


def main() -> None:
    """Run the command line; a mistake of the user is reported in one line with exit code 2."""
    trace_crashes()
    gc.set_threshold(10_000)  # as in anonymizer/cli/main.py
    atexit.register(gc.freeze)  # likewise
    try:
        # As in anonymizer/cli/main.py.
        with any_extra(), told_of_compiling(lambda line: typer.echo(line, err=True)):
            sys.exit(app(prog_name="simulator", standalone_mode=False))
    except AnonymizerError as error:
        _fail(str(error))
    except typer.TyperException as error:
        _fail(f"{error.format_message()} (see --help)")
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(EXIT_INTERRUPTED)


def _fail(message: str) -> None:
    sys.stderr.write(f"simulator: {' '.join(message.split())}\n")
    sys.exit(EXIT_USAGE)


if __name__ == "__main__":
    main()
