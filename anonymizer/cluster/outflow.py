"""Publishes from Kafka to MQTT; a message that the broker refuses does not hold up the others."""

import asyncio
import time
from collections.abc import Sequence
from math import inf

import structlog

from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.positions.raw_batches import decode_out
from anonymizer.cluster.retained_parts import RetainedParts
from anonymizer.outputs.cloud_events import event_headers
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink

_TOO_LARGE_S = 120.0
"""Time for which readiness tells of a message that the MQTT broker does not take."""
_PUBLISH_S = 10.0
_RETRY_S = 1.0
"""Time before what the MQTT broker has refused is offered again."""
_REFUSED_S = 10.0
"""Time for which the MQTT broker may refuse messages before they are given up."""
_IMPATIENT_S = 60.0
"""Time after that in which what is refused is given up at once."""
_ALONE_AFTER = 2
"""Connections lost, with nothing taken in between, after which messages are offered one by one."""
_GIVEN_UP_AFTER = 5
"""Connections lost after which a message may be given up: the broker ends them because of it."""


class Outflow:
    """Publishes what is read from Kafka at QoS 1.

    Some brokers refuse a message in their answer, others end the connection when a client
    publishes what it may not. Both are counted as `not_taken`.
    """

    def __init__(self, settings: Settings, link: MqttLink, passed: Passed) -> None:
        self._link, self._passed = link, passed
        self._headers = event_headers(settings)
        self._parts = RetainedParts(settings, link.part_bytes)
        self._log = structlog.get_logger()
        self._impatient_until_s = self._too_large_until_s = -inf

    @property
    def problem(self) -> str:
        """What is not published because of its size, for readiness."""
        if time.monotonic() > self._too_large_until_s:
            return ""
        most = f"the broker takes no message above {self._link.most_bytes:,} bytes"
        return f"broker: {most}, so some are not published: raise its limit"

    async def publish(self, values: Sequence[bytes]) -> None:
        """Publish some values of `out`; return when the broker has all that it takes."""
        await self._link.until_connected()  # then it is known what the broker takes
        pending = self._messages(values)
        began_s, n_lost = time.monotonic(), 0
        while pending:
            await self._link.until_connected()
            connection = self._link.counts.n_connections
            offered = pending[:1] if n_lost >= _ALONE_AFTER else pending
            results = await self._link.publish(offered, qos=1, timeout_s=_PUBLISH_S)
            n_taken = sum(result is True for result in results)
            self._passed.n_published += n_taken
            refused = [m for m, result in zip(offered, results, strict=True) if result is not True]
            left = [*refused, *pending[len(offered) :]]
            pending = [each for each in left if self._link.takes(each)]
            if n_too_large := len(left) - len(pending):
                self._passed.n_refused["too_large"] += n_too_large
                self._too_large_until_s = time.monotonic() + _TOO_LARGE_S
            if n_taken or not pending:
                began_s, n_lost = time.monotonic(), 0
            elif not self._link.connected or self._link.counts.n_connections != connection:
                n_lost += 1
                if n_lost >= _GIVEN_UP_AFTER and self._is_enough(began_s):
                    self._give_up(pending[:1], "the broker ends the connection at a message")
                    pending = pending[1:]
                    began_s, n_lost = time.monotonic(), _ALONE_AFTER
            elif any(result is None for result in results):
                began_s = time.monotonic()
                await asyncio.sleep(_RETRY_S)
            elif self._is_enough(began_s):
                self._give_up(pending, "the broker refuses messages")
                return
            else:
                await asyncio.sleep(_RETRY_S)

    def _messages(self, values: Sequence[bytes]) -> list[Outgoing]:
        messages: list[Outgoing] = []
        for value in values:
            try:
                messages += decode_out(value)
            except ValueError as error:
                self._passed.n_refused["malformed"] += 1
                self._log.error("a message in Kafka cannot be read", problem=str(error))
        messages = self._parts.fitted(messages)
        return messages if self._headers is None else self._headers.of(messages)

    def _give_up(self, messages: Sequence[Outgoing], why: str) -> None:
        self._passed.n_refused["not_taken"] += len(messages)
        self._log.error(why, messages=len(messages))

    def _is_enough(self, began_s: float) -> bool:
        """Return whether to give up messages that the broker has refused since a time.

        Others must not wait behind them. Where it has just refused some for long, it is not asked
        again and again for the next ones.
        """
        now_s = time.monotonic()
        if now_s - began_s < _REFUSED_S and now_s > self._impatient_until_s:
            return False
        if now_s > self._impatient_until_s:
            self._impatient_until_s = now_s + _IMPATIENT_S
        return True
