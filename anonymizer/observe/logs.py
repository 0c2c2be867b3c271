"""Structured logs on standard error, one line per event of the service.

No line is written per message, and none contains an identity or a coordinate. A warning or error
that comes again and again is written a few times a minute, with how many were left out since. Lines
of libraries take the same way, without what they quote.
"""

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import structlog

from anonymizer.compiling_aloud import CompilingAloud
from anonymizer.kernel_waits import wait_in
from anonymizer.settings import LogSettings

_A_MINUTE = 6
"""Warnings and errors of one kind in a minute."""
_MOST_KINDS = 1000
_MOST_CHARS = 200
_KEEPS = "info", "debug"


class Bounded:
    """Drops lines of a kind, which is its event and level, above `_A_MINUTE`.

    The next line of the kind says how many were left out since the one before it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._said: dict[tuple[object, ...], tuple[float, int, int]] = {}
        """Since when, how often, and how many were left out."""

    def __call__(self, _logger: object, level: str, event: Any) -> Any:  # noqa: ANN401  structlog's
        """Return the line, or raise `structlog.DropEvent`."""
        if level in _KEEPS:
            return event
        kind, now = (event.get("event"), event.get("logger"), level), self._monotonic()
        since, n, n_left_out = self._said.get(kind, (now, 0, 0))
        if now - since >= 60:
            since, n = now, 0
        if n >= _A_MINUTE:
            self._said[kind] = since, n, n_left_out + 1
            raise structlog.DropEvent
        if len(self._said) >= _MOST_KINDS:
            self._said.clear()
        self._said[kind] = since, n + 1, 0
        return event | {"left_out": n_left_out} if n_left_out else event


class _Libraries(logging.Handler):
    """Logs what libraries say: the text before values are put into it, as these may be anything."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log one line."""
        said = (str(record.msg).splitlines() or [""])[0][:_MOST_CHARS]
        failed = record.exc_info[0] if record.exc_info else None
        more = {} if failed is None else {"error": failed.__name__}
        log = structlog.get_logger()
        say = log.error if record.levelno >= logging.ERROR else log.warning
        say(said, logger=record.name, **more)


def configure_logs(settings: LogSettings) -> None:
    """Send this process's log lines to standard error, as JSON or as text."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Libraries)]:
        root.removeHandler(handler)
    root.addHandler(_Libraries(logging.WARNING))
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if settings.format == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            # The default formatter prints local variables, which hold devices and coordinates.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    structlog.configure(
        processors=[
            Bounded(),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    aloud = CompilingAloud(lambda s: structlog.get_logger().info("compiling kernels", s=round(s)))
    wait_in(aloud.compiling)


def log_quarantined(link: str, n_bytes: int, name: str) -> None:
    """Log that a packet is skipped from now on, by its length and a keyed hash of it alone."""
    structlog.get_logger().error("packet quarantined", link=link, bytes=n_bytes, hash=name)
