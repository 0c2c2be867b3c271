"""Structured logs on standard error: one line an event, never one a message.

Events say what happened to the service; no identity and no coordinate is ever bound to one.
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
            # The pretty one prints local variables: devices and coordinates.
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
