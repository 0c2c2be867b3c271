"""Child processes that end with their parent, whatever ends it: a crash or `kill -9`, too.

A parent that is killed can tell nobody. What the system does for it in any case is to close its
files. A child therefore has one end of a pipe of which its parent alone has the other.

This file is also a program, `python child_processes.py COMMAND...`, which becomes the command and
leaves a process beside it that waits for the end of standard input. It imports nothing but the
standard library, so that it starts in hundredths of a second.
"""

import faulthandler
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker

_LOOK_S = 0.5
"""How long the process beside a command stays when that has ended by itself."""
_PATIENCE_S = 2.0
"""Time to end after SIGTERM; SIGKILL follows."""


def ending_with_parent(command: Sequence[str]) -> list[str]:
    """Return a command that runs another one, which ends when its standard input ends.

    Start it with a pipe as standard input, and keep that open. It has the process id, the output
    and the exit code of the command, whose own standard input is empty.
    """
    return [sys.executable, "-I", "-S", __file__, *command]


def ending(code: int) -> str:
    """Return how a process ended, in words, by its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
    why = {
        "SIGKILL": ": killed by somebody, mostly because memory ran out",
        "SIGSEGV": ": a crash in compiled code",
        "SIGABRT": ": a crash in compiled code, or memory ran out",
    }
    return f"{name}{why.get(name, '')}"


@contextmanager
def starting_deaf() -> Iterator[None]:
    """Let processes that `multiprocessing` starts in the block never hear of Ctrl-C.

    It reaches all processes of a terminal, also while they import. Whoever started them ends them.
    """
    resource_tracker.ensure_running()  # where its process starts, Ctrl-C is heard again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """End this process, which `multiprocessing` has started, at once when its parent ends.

    If it crashes, it writes to standard error where.
    """
    faulthandler.enable(2)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, name="end of the parent", daemon=True).start()


def _run(command: list[str]) -> None:
    """Become a command, and leave a process that ends it when standard input ends."""
    of = os.getpid()
    nothing = os.open(os.devnull, os.O_RDWR)
    if os.fork():
        os.dup2(nothing, 0)
        try:
            os.execvp(command[0], command)  # noqa: S606  the caller's own command
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    # Whoever reads the output of the command waits for its end, not for that of this process.
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        _watch(of)
    finally:
        os._exit(0)


def _watch(process: int) -> None:
    """Wait for the end of standard input or of the parent process; end the latter."""
    while os.getppid() == process:
        if select.select([0], [], [], _LOOK_S)[0] and not os.read(0, 4096):
            break
    # As long as it is the parent, its number is not that of another process.
    for number in (signal.SIGTERM, signal.SIGKILL):
        until_s = time.monotonic() + _PATIENCE_S
        if os.getppid() == process:
            os.kill(process, number)
        while os.getppid() == process and time.monotonic() < until_s:
            time.sleep(_LOOK_S / 10)


if __name__ == "__main__":
    _run(sys.argv[1:])
