"""Input of which a share is refused for one reason: named before anybody wonders."""

from collections.abc import Mapping

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.misfit import CAUSES

LIMITS: Mapping[Outcome, str] = {
    Outcome.INVALID__ANCIENT_TIME: (
        "positions are older than max_behind_s of the input allows: raise it, up to presence.ttl_s,"
        " if devices send so late; else set their clocks, or it is a recording"
    ),
    Outcome.INVALID__FUTURE_TIME: "the input has times of clocks that are ahead: set them right",
    Outcome.SUPPRESSED__IMPLAUSIBLE_JUMP: (
        "devices move faster than max_speed_mps of the input allows, or several share an id"
    ),
    Outcome.SUPPRESSED__INACCURATE: "positions are less accurate than max_accuracy_m of the input",
    Outcome.SUPPRESSED__AGE_UNKNOWN: (
        "positions repeat their place without a time of their own, or with one that several share:"
        " pass on when each was measured"
    ),
}
"""What to look at if a share of an input has this outcome, and not all of it."""
_ON_PURPOSE = {Outcome.INVALID__NOT_SELECTED, Outcome.SUPPRESSED__OFF_GRAPH}
LIKELY: Mapping[Outcome, str] = {
    each: likely for each, likely in {**CAUSES, **LIMITS}.items() if each not in _ON_PURPOSE
}
"""Likewise, of every outcome that is watched."""
_MOST, _OVER = 0.05, 0.025
"""Reported from this share on, and again only after it was below the other one."""
_LOOK_S = 60.0
_FEWEST = 100
"""Of fewer positions a share means little."""


class LostShare:
    """Watches the counts of one input."""

    def __init__(self) -> None:
        self._since: tuple[float, Mapping[Outcome, int], int] | None = None
        self._reported: frozenset[Outcome] = frozenset()

    def see(
        self, refused: Mapping[Outcome, int], *, n_usable: int, at_s: float
    ) -> dict[Outcome, float]:
        """Take in counts since any time; return the shares that are to be reported now.

        `n_usable`: positions that could be used; `at_s`: seconds of a monotonic clock.
        """
        n_all = n_usable + sum(refused.values())
        if self._since is None:
            self._since = at_s, dict(refused), n_all
        began_s, before, n_before = self._since
        n = n_all - n_before
        if at_s - began_s < _LOOK_S or n < _FEWEST:
            return {}
        self._since = at_s, dict(refused), n_all
        share = {each: (refused.get(each, 0) - before.get(each, 0)) / n for each in LIKELY}
        lost = {
            each: part
            for each, part in share.items()
            if part >= (_OVER if each in self._reported else _MOST)
        }
        new = {each: part for each, part in lost.items() if each not in self._reported}
        self._reported = frozenset(lost)
        return new

    @property
    def notes(self) -> list[str]:
        """A sentence for readiness of each reason that lasts; it contains no number."""
        return [
            f"a share of what arrives is {' '.join(filter(None, each.label)).replace('_', ' ')}:"
            f" {LIKELY[each]}"
            for each in sorted(self._reported)
        ]
