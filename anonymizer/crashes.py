"""Crashes in compiled code, which end a process without a word: their traces, and how many.

Python writes the functions that were at work, and nothing of their data. A service lets it write to
a file of its own; when it starts again, it logs what is there and counts on. Other processes let it
write to standard error.
"""

import atexit
import faulthandler
import fcntl
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

_STDERR = 2
_MOST_FRAMES = 12
_FRAME, _FATAL = "  File ", "Fatal Python error: "


def trace_crashes() -> None:
    """Write the functions at work to standard error if this process crashes."""
    faulthandler.enable(_STDERR)


class Crashes:
    """The crashes of a service, over its restarts."""

    def __init__(self) -> None:
        self.n = 0
        """How many there were so far."""
        self._file: IO[str] | None = None

    def remember(self, beside: Path) -> None:
        """Log and count the last crash, if there was one, and write the next one beside a path.

        An end that is none takes the file away. Where nothing can be written, or another process
        writes, it is written to standard error, and not counted.
        """
        trace, count = Path(f"{beside}.crash"), Path(f"{beside}.crashes")
        with suppress(OSError, ValueError), ExitStack() as stack:
            descriptor = os.open(trace, os.O_RDWR | os.O_CREAT, 0o600)
            file = stack.enter_context(os.fdopen(descriptor, "r+", errors="replace"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.n = int(count.read_text(encoding="ascii")) if count.exists() else 0
            if lines := file.read().splitlines():
                self.n += 1
                _write(count, str(self.n))
                _log(lines, self.n)
            file.seek(0)
            file.truncate()
            stack.pop_all()  # it stays open
            self._file = file
            faulthandler.enable(file)
            atexit.register(_forget, trace, os.getpid())


CRASHES = Crashes()
"""Those of this process: it has one handler of crashes."""


def _forget(trace: Path, pid: int) -> None:
    """Take away the file of a process that ends without a crash; a copy of it leaves it alone."""
    if os.getpid() == pid:
        trace_crashes()
        with suppress(OSError):
            trace.unlink()


def _write(path: Path, text: str) -> None:
    """Replace a file at once, so that no crash leaves half of it."""
    new = Path(f"{path}.new")
    new.write_text(text, encoding="ascii")
    new.replace(path)


def _log(lines: list[str], n: int) -> None:
    import structlog  # noqa: PLC0415  few processes have a crash to tell of

    what = next((line.removeprefix(_FATAL) for line in lines if line.startswith(_FATAL)), "unknown")
    frames = [line.strip() for line in lines if line.startswith(_FRAME)]
    log = structlog.get_logger()
    log.error("crashed before this start", crash=what, frames=frames[:_MOST_FRAMES], crashes=n)
