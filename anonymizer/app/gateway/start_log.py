"""The log of a start: what is being done, at once and again, for as long as it lasts."""

import threading
from types import TracebackType
from typing import Self

import structlog

_SILENT_S = 1.5
"""After so long without a line, what is being done is logged again."""


class StartLog:
    """Logs what a start is doing, when that changes and while it lasts; a context.

    A thread repeats it: what takes long are imports, files and kernels.
    """

    def __init__(self, *, silent_s: float = _SILENT_S) -> None:
        self._silent_s = silent_s
        self._doing = ""
        self._ended = threading.Event()
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="start log", daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, if it has not."""
        self.end()

    def tell(self, doing: str) -> None:
        """Log what is being done from now on."""
        self._doing = doing
        self._changed.set()
        structlog.get_logger().info("starting", doing=doing)

    def end(self) -> None:
        """Log nothing from now on."""
        self._ended.set()
        self._changed.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._ended.is_set():
            if self._changed.wait(self._silent_s):
                self._changed.clear()
            elif self._doing:
                structlog.get_logger().info("starting", doing=self._doing, still=True)
