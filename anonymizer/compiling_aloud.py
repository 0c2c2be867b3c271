"""What is said while a kernel is compiled where it is called, and whoever called it waits.

A machine that has compiled nothing yet takes half a minute to a first answer. Kernels are compiled
in one place (`kernel_cache`), so whatever a program was about to do, it says so from here.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from anonymizer.kernel_waits import wait_in

_SILENT_S = 1.3
"""Nobody is to wait for two seconds without a word, and a thread may get the core late."""


class CompilingAloud:
    """Says how long this process has been compiling, again and again while it does.

    Parameters
    ----------
    say
        Takes the seconds so far, of all kernels together; called in any thread.
    silent_s
        So long it compiles without a word.
    """

    def __init__(self, say: Callable[[float], object], *, silent_s: float = _SILENT_S) -> None:
        self._say, self._silent_s = say, silent_s
        self._changed = threading.Condition()
        self._n_compiling = 0
        self._since_s = self._before_s = self._said_s = 0.0
        self._thread: threading.Thread | None = None

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Compile while the block runs."""
        with self._changed:
            if not self._n_compiling:
                self._since_s = time.monotonic()
            self._n_compiling += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._repeat, name="aloud", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._say_if_due()
                self._n_compiling -= 1
                if not self._n_compiling:
                    self._before_s += time.monotonic() - self._since_s

    def _repeat(self) -> None:
        with self._changed:
            while True:
                self._changed.wait(self._say_if_due() if self._n_compiling else None)

    def _say_if_due(self) -> float:
        """Say it if nothing was said for too long; return the seconds until it is due again."""
        so_far_s = self._before_s + time.monotonic() - self._since_s
        if so_far_s >= self._said_s + self._silent_s:
            self._said_s = so_far_s
            with suppress(Exception):  # whoever reads it is gone: what is compiled is wanted still
                self._say(so_far_s)
        return self._said_s + self._silent_s - so_far_s


@contextmanager
def told_of_compiling(print_line: Callable[[str], object]) -> Iterator[None]:
    """Let a program of the command line say what it waits for while the block runs."""
    before = wait_in(
        CompilingAloud(
            lambda s: print_line(f"compiling what this needs, once on this machine: {s:.0f} s")
        ).compiling
    )
    try:
        yield
    finally:
        wait_in(before)
