"""What goes wrong with Kafka, in words, for gateways, bridges and workers."""

import time
from math import inf

import structlog

from anonymizer.errors import TransportError

_QUIET_S = 10.0
"""Time between two lines of the log about problems."""


class KafkaLostError(TransportError):
    """Kafka is away, or has given up on this client of it: worth another attempt."""


class Problems:
    """Logs what Kafka's client complains about; it repeats itself many times a second."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()
        self._next_s = -inf

    def note(self, problem: str) -> None:
        """Log a problem, unless another one was logged a moment ago."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + _QUIET_S
            self._log.warning("kafka", problem=problem)


def reason_of(error: Exception) -> str:
    """Return why Kafka failed, in its own words; they name topics and brokers, never content."""
    cause = error.args[0] if error.args else None
    said = getattr(cause, "str", None)
    return str(said()) if callable(said) else type(error).__name__
