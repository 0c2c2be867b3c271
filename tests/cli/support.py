"""What the tests of the command line share."""

import io
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from os import environ
from pathlib import Path
from unittest.mock import patch

from anonymizer.cli.main import main
from tests.end_to_end import ANONYMIZER, START_S


def process(
    *arguments: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the console script to its end."""
    return subprocess.run(
        [ANONYMIZER, *arguments],
        env=environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S,  # it may compile what it needs
    )


def anonymizer(
    *arguments: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in this process: one of its own loads everything anew."""
    return in_process(main, "anonymizer", *arguments, environment=environment)


def in_process(
    program: Callable[[], None],
    name: str,
    *arguments: str | Path,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the `main` of a program to its end in this process."""
    words = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code = 0
    with (
        patch.object(sys, "argv", [name, *words]),
        patch.dict(environ, environment or {}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            program()
        except SystemExit as end:
            code = int(end.code or 0)
    said = []
    for stream in (out, err):
        stream.seek(0)
        said.append(stream.read())
    return subprocess.CompletedProcess(words, code, *said)
