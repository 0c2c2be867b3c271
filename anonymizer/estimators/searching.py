"""How coarse rows may become: the coarsest generalization that keeps a score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Released: TypeAlias = frozenset[int]
"""Quasi-identifiers that are left as they are."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A level of generalization, 0 the finest, and the quasi-identifiers that are left out of it.

    Attributes
    ----------
    score
        What the model scores so.
    loss
        How much is generalized: the sum of the losses of the others.
    """

    level: int
    released: Released
    score: float
    loss: float


@dataclass(frozen=True, slots=True)
class Search:
    """What a search asks.

    Attributes
    ----------
    score
        Of a level with some quasi-identifiers released.
    losses
        Of each quasi-identifier at a level.
    n_levels
        How many there are, 0 the finest.
    target
        The least score. With everything released it is reached.
    """

    score: Callable[[int, Released], float]
    losses: Callable[[int], Sequence[float]]
    n_levels: int
    target: float

    def coarsest(self) -> Choice:
        """Return the best choice that is found from several levels.

        From each, quasi-identifiers are released, one by one, until the score is reached; what
        later releases made needless is taken back; then the level is raised as far as the score
        stays so. At most levels * qis^2 / 2 scores.
        """
        starts = sorted({0, self.n_levels // 4, self.n_levels // 2, 3 * self.n_levels // 4})
        return max((self._from(level) for level in starts), key=lambda c: (c.loss, -c.level))

    def _from(self, level: int) -> Choice:
        released = self._release(level)
        for j in sorted(released, key=self.losses(level).__getitem__, reverse=True):
            if self.score(level, released - {j}) >= self.target:
                released -= {j}
        level = self._raise(level, released)
        losses = self.losses(level)
        loss = sum(x for j, x in enumerate(losses) if j not in released)
        return Choice(level, released, self.score(level, released), loss)

    def _release(self, level: int) -> Released:
        """Release what gains most score for the loss it gives up, until the score is reached."""
        losses = self.losses(level)
        released: Released = frozenset()
        score = self.score(level, released)
        while score < self.target:
            scores = {
                j: self.score(level, released | {j})
                for j in range(len(losses))
                if j not in released
            }
            gain = {j: (new - score) / max(losses[j], 1e-9) for j, new in scores.items()}
            best = max(gain, key=gain.__getitem__)
            released |= {best}
            score = scores[best]
        return released

    def _raise(self, level: int, released: Released) -> int:
        """Return a level that reaches the score, when the next but one does not."""
        low, high = level, self.n_levels
        while high - low > 1:
            middle = (low + high) // 2
            if self.score(middle, released) >= self.target:
                low = middle
            else:
                high = middle
        return low
