"""What is not published because the broker takes no message of its size: for log and readiness."""

import time
from collections.abc import Callable, Mapping

import structlog

from anonymizer.app.gateway.sides import LOOK_S, GatewaySide, Service, again_and_again
from anonymizer.transport import MqttLink

_FOR_S = 120.0
"""A message that did not fit is told of for so long: groups of large places publish rarely."""


class Unsent:
    """Remembers what did not fit.

    `links`: returns the connections that publish, by what they publish.
    """

    def __init__(self, links: Callable[[], Mapping[str, MqttLink]]) -> None:
        self._links = links
        self._missing: set[str] = set()
        """Topics of the settings that are retained."""
        self._n_of: dict[str, int] = {}
        self._until_s: dict[str, float] = {}
        self._log = structlog.get_logger()

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        look = again_and_again(lambda: self.look(time.monotonic()), every_s=LOOK_S)
        return GatewaySide(services=[Service("unsent", look)], problems=lambda: self.problems)

    def note(self, topic: str, *, fits: bool) -> bool:
        """Note whether what is retained on a topic of the settings fits; return that."""
        if fits:
            self._missing.discard(topic)
        elif topic not in self._missing:
            self._missing.add(topic)
            self._log.error("messages do not fit the broker", topic=topic, problem=self.why)
        return fits

    def look(self, at_s: float) -> None:
        """Take in the counts of the connections at a monotonic time, and log what has begun."""
        for what, link in self._links().items():
            n = link.counts.n_too_large
            if n > self._n_of.get(what, 0):
                if what not in self._until_s:
                    self._log.error("messages do not fit the broker", flow=what, problem=self.why)
                self._until_s[what] = at_s + _FOR_S
            elif at_s > self._until_s.get(what, at_s):
                del self._until_s[what]
            self._n_of[what] = n

    @property
    def why(self) -> str:
        """What the broker takes, in words."""
        most_bytes = min(link.most_bytes for link in self._links().values())
        return f"the broker takes no message above {most_bytes:,} bytes"

    @property
    def problems(self) -> list[str]:
        """A sentence for readiness, if something is missing."""
        missing = [*sorted(self._missing), *(f"some {what}" for what in sorted(self._until_s))]
        if not missing:
            return []
        what = ", ".join(missing)
        how = "raise its limit (max_packet_size of Mosquitto)"
        return [f"broker: {self.why}, so these are not published: {what}; {how}"]
