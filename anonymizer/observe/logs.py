"""Structured logs on standard error, one line per event of the service.

No line is written per message, and none contains an identity or a coordinate.
"""

import logging
import sys

import structlog

from anonymizer.settings import LogSettings


def configure_logs(settings: LogSettings) -> None:
    """Send this process's log lines to standard error, as JSON or as text."""
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


def log_quarantined(link: str, n_bytes: int, name: str) -> None:
    """Log that a packet is skipped from now on, by its length and a keyed hash of it alone."""
    structlog.get_logger().error("packet quarantined", link=link, bytes=n_bytes, hash=name)
