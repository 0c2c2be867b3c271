"""Watch on regions that exceed the cap: devices that are not published because of a setting."""

from collections.abc import Mapping

from anonymizer.domain.outcomes import Outcome

SHARE = 0.1
"""Reported while so large a share of what is settled is suppressed with this reason."""
PROBLEM = (
    "regions: many positions are suppressed because a region that hides them would need more nodes"
    " than region.max_nodes allows"
)


class TooLargeWatch:
    """Watches the counts of positions.

    Members of a group whose region would exceed `region.max_nodes` are suppressed until it ends.
    Places are never made smaller to fit, so the cap decides who is published at all: that must not
    go unnoticed.

    Parameters
    ----------
    look_s
        How long to count: the life of a group.
    """

    def __init__(self, *, look_s: float) -> None:
        self._look_s = look_s
        self._since: tuple[float, int, int] | None = None
        self._share = 0.0

    def see(self, counts: Mapping[Outcome, int], *, at_s: float) -> bool:
        """Take in counts; return whether the problem has just begun.

        Parameters
        ----------
        counts
            How many positions had each final outcome, since any time.
        at_s
            Seconds of a monotonic clock.
        """
        now = at_s, counts.get(Outcome.SUPPRESSED__REGION_TOO_LARGE, 0), sum(counts.values())
        if self._since is None:
            self._since = now
        if at_s - self._since[0] < self._look_s:
            return False
        was = bool(self.problems)
        n = now[2] - self._since[2]
        self._share = (now[1] - self._since[1]) / n if n else 0.0
        self._since = now
        return bool(self.problems) and not was

    @property
    def problems(self) -> list[str]:
        """One sentence if the share is too large, for readiness. Who reads it learns no number."""
        return [PROBLEM] if self._share >= SHARE else []
