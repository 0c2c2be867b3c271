"""Recovery of states without waiting: whether a state is as new as its topic is asked at once.

Quix Streams reads the topic of each state that was assigned, and asks how far it has come when
nothing has arrived for a second. After every transaction the topic has a mark behind the last
state, so that it always reads, and always waits. While it does, nobody hears of the stages.
"""

from typing import Any

_POLL_S = 0.05
_ATTEMPTS_S = 60.0
"""Time in which a position has to be known, as in the library."""


def hasten_recovery(application: Any) -> None:  # noqa: ANN401  the type checker has it not
    """Let an application of Quix Streams ask often whether its states are recovered."""
    recovery = application._state_manager._recovery_manager  # noqa: SLF001  there is no public call
    vars(recovery)["MAX_INVALID_OFFSET_ATTEMPTS"] = int(_ATTEMPTS_S / _POLL_S)
    recovery._consumer = _Impatient(recovery._consumer, recovery._position_cache)  # noqa: SLF001


class _Impatient:
    """The consumer of an application, as its recovery sees it."""

    def __init__(self, consumer: Any, positions: dict[str, Any]) -> None:  # noqa: ANN401
        self._consumer, self._positions = consumer, positions

    def poll(self, timeout: float) -> Any:  # noqa: ANN401
        """Return a message, or soon None; then the positions are asked for anew."""
        message = self._consumer.poll(min(timeout, _POLL_S))
        if message is None:
            self._positions.clear()
        return message

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Return what the consumer has."""
        return getattr(self._consumer, name)
