"""Deletes the inputs of stages in Kafka that are not needed any more: they are raw data."""

import time
from collections.abc import Mapping
from concurrent.futures import Future
from math import inf
from typing import Any

import structlog

from anonymizer.cluster.worker_metrics import Deletions
from anonymizer.extras import extra
from anonymizer.transport.kafka_problems import reason_of

with extra("kafka"):
    from confluent_kafka import KafkaException, TopicPartition

_QUIET_S = 600.0
"""Time between two lines of the log about refusals."""


class Eraser:
    """Deletes inputs up to an offset, without waiting for Kafka's answer.

    What Kafka refuses is logged and counted, and nothing stops: the inputs are deleted with the
    next snapshot, if it takes that. `admin` is a client of the caller, who closes it.
    """

    def __init__(self, admin: Any, deletions: Deletions) -> None:  # noqa: ANN401  of the library
        self._admin = admin
        self._deletions = deletions
        self._asked: dict[tuple[str, int], int] = {}
        self._next_line_s = -inf

    def erase(self, before: Mapping[tuple[str, int], int]) -> None:
        """Delete what lies before an offset of each partition, a topic and a number.

        What was asked for before is not asked for again.
        """
        new = {place: n for place, n in before.items() if n > self._asked.get(place, 0)}
        if not new:
            return
        self._asked |= new
        answers: Mapping[Any, Future[Any]] = self._admin.delete_records(
            [TopicPartition(*place, offset) for place, offset in new.items()]
        )
        for answer in answers.values():
            answer.add_done_callback(self._note)

    def _note(self, answer: Future[Any]) -> None:
        """Count an answer; it runs in the thread of Kafka's client."""
        error = answer.exception()
        if error is None:
            self._deletions.n_done += 1
            return
        self._deletions.n_refused += 1
        now_s = time.monotonic()
        if now_s >= self._next_line_s:
            self._next_line_s = now_s + _QUIET_S
            why = reason_of(error) if isinstance(error, KafkaException) else type(error).__name__
            _LOG.warning("Kafka does not delete inputs that are not needed any more", reason=why)


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
