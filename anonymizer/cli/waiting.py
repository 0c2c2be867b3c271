"""What a command waits for, told while it does: imports, a start, kernels, an end."""

import threading
import time
from typing import Self

import typer

_EVERY_S = 1.3
"""Nobody is to wait for two seconds without a word, and a thread may get the core late."""


class WaitingAloud:
    """Says on standard error what is waited for, whenever nothing else was said for a while.

    It has a thread of its own, so that it speaks while modules are imported, too.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        """What is waited for; may change."""
        self._began_s = self._said_s = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak, name="waiting", daemon=True)

    def __enter__(self) -> Self:
        self._say(f"{self.what} ...")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def said(self) -> None:
        """Take note that something else was said just now."""
        self._said_s = time.monotonic()

    def _speak(self) -> None:
        while not self._over.wait(max(0.0, self._said_s + _EVERY_S - time.monotonic())):
            now_s = time.monotonic()
            if now_s >= self._said_s + _EVERY_S:
                self._say(f"{self.what}: {now_s - self._began_s:.0f} s")

    def _say(self, text: str) -> None:
        self.said()
        typer.echo(text, err=True)
