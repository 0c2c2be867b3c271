"""Outputs that the broker refuses by its access rules: for log, readiness and status."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf

import structlog

from anonymizer.app.gateway.sides import LOOK_S, GatewaySide, Service
from anonymizer.settings import Settings
from anonymizer.transport.refused_topics import refused_topics

_SOON_S, _RARELY_S = 10.0, 600.0
"""Between two questions: while something is refused or not delivered, and else."""
_MOST_DOUBLED = 9
"""Questions without an answer after which the time to the next one no longer grows."""


class RefusedOutputs:
    """Asks the broker, at each connection and again, whether it takes what is published.

    Parameters
    ----------
    client_id
        Of the connection on which it asks.
    n_undelivered
        Returns how many positions could not be published so far.
    unused
        Topics on which nothing is published after all.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        client_id: str,
        connected: Callable[[], bool],
        n_undelivered: Callable[[], int],
        unused: Collection[str] = (),
    ) -> None:
        self._broker, self._client_id = settings.broker, client_id
        self._groups_topic = settings.output.topic
        self._settings, self._unused = settings, unused
        self._connected, self._n_undelivered = connected, n_undelivered
        self._is_new = False
        self._n_before = 0
        self._asked_s, self._n_unanswered = -_RARELY_S, 0
        self._refused: Mapping[str, str] = {}
        self._log = structlog.get_logger()

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        return GatewaySide(
            services=[Service("refused outputs", self.run)],
            problems=lambda: self.problems,
            connected=self.renew,
        )

    def renew(self) -> None:
        """Ask soon, as the connection is a new one."""
        self._is_new, self._n_unanswered = True, 0

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        from anonymizer.app.contract import outgoing_topics  # noqa: PLC0415  records, too

        topics = [each for each in outgoing_topics(self._settings) if each not in self._unused]
        while True:
            if self._connected() and self._is_due(time.monotonic()):
                await self._ask(topics)
            await asyncio.sleep(LOOK_S)

    def _is_due(self, at_s: float) -> bool:
        n, waited_s = self._n_undelivered(), at_s - self._asked_s
        is_soon = waited_s >= _SOON_S and (bool(self._refused) or n > self._n_before)
        # A busy broker answers later, another one never.
        again_s = _SOON_S * 2 ** (self._n_unanswered - 1) if self._n_unanswered else inf
        if not (self._is_new or is_soon or waited_s >= min(again_s, _RARELY_S)):
            return False
        self._is_new, self._n_before, self._asked_s = False, n, at_s
        return True

    async def _ask(self, topics: Sequence[str]) -> None:
        said = await refused_topics(self._broker, topics, client_id=self._client_id)
        if said is None:
            self._n_unanswered = min(self._n_unanswered + 1, _MOST_DOUBLED)
            return  # what was known stays so
        self._n_unanswered = 0
        before, self._refused = self._refused, said
        if self._refused and self._refused != before:
            self._log.error("the broker refuses outputs", problem=why_refused(self._refused))

    @property
    def problems(self) -> list[str]:
        """A sentence for readiness, if something is refused."""
        return [why_refused(self._refused)] if self._refused else []

    @property
    def silent(self) -> str:
        """Why no group is published; empty: groups are not refused."""
        return why_refused(self._refused) if self._groups_topic in self._refused else ""


def why_refused(refused: Mapping[str, str]) -> str:
    """Return what is refused, why, and what to do."""
    told = ", ".join(f"{topic} ({why})" for topic, why in refused.items())
    return f"broker: it refuses messages on {told}: let this user publish there"
