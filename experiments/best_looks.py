"""The best choice of looks, found by trying all: how near is whoever chooses one by one.

In a small case every next look is tried, with everything that it may tell, and every one after it:
more than that no choice can expect of its best guess, however it was learned. Beside it stands who
takes, each time, the look after which it expects to be surest, and who takes any. Likewise for
watches of parts of the town.

`python -m experiments.best_looks` prints them.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.domain.arrays import FloatArray
from anonymizer.networks import load_network
from experiments.looks import N_PARTS, Looks, published

MODES = ("session", "snapshot")
"""In `adka` nearly every device has a region of its own: a look has too many answers to try all."""
TOWN, N_DEVICES, SEED = "city:300", 60, 1
N_MOMENTS = 5
N_LOOKS = 3
_EVERY_PART = 4
"""Of the parts of the town, every fourth may be watched."""
_NEVER = 1e-9

Action: TypeAlias = tuple[int, int | None]
"""A moment, and the part to watch; None: a look at the target."""


class Values(NamedTuple):
    """What is expected of the best guess: of any looks, one by one, and of the best choice."""

    random: float
    one_by_one: float
    best: float


def values_of(looks: Looks, actions: Sequence[Action], left: int) -> Values:
    """Return the expected belief in the best guess after so many more looks.

    Notes
    -----
    O((actions * answers) ^ (left - 1) * actions).
    """
    surest = _surest(looks, actions)
    first = int(surest.argmax())
    if left == 1:
        return Values(float(surest.mean()), float(surest[first]), float(surest[first]))
    found = np.array([
        sum(
            probability * np.array(values_of(after, actions, left - 1))
            for probability, after in answers(looks, each)
        )
        for each in actions
    ])  # fmt: skip
    return Values(float(found[:, 0].mean()), float(found[first, 1]), float(found[:, 2].max()))


def _surest(looks: Looks, actions: Sequence[Action]) -> FloatArray:
    """Return how sure the best guess is expected to be after each action."""
    by_part = {t: looks.expected_by_part(t)[0] for t, part in actions if part is not None}
    return np.array([
        looks.expected(t)[0] if part is None else by_part[t][part] for t, part in actions
    ])  # fmt: skip


def answers(looks: Looks, action: Action) -> Iterator[tuple[float, Looks]]:
    """Yield everything that a look may tell: how likely it is, and what is believed then.

    Nodes that are in the same regions tell the same.
    """
    moment, part = action
    weight = looks.belief(moment)[1]
    if part is not None:
        there = float(weight @ looks.share_of(moment)[:, part])
        for probability, is_there in ((there, True), (1.0 - there, False)):
            if probability > _NEVER:
                after = looks.copy()
                after.watch(moment, part, there=is_there)
                yield probability, after
        return
    inside = looks.inside(moment)
    density = weight @ (inside / inside.sum(axis=1, keepdims=True))
    _, node, kind = np.unique(inside, axis=1, return_index=True, return_inverse=True)
    likely = np.bincount(kind.ravel(), density)
    for at, probability in zip(node.tolist(), likely.tolist(), strict=True):
        if probability > _NEVER:
            after = looks.copy()
            after.see(moment, at)
            yield probability, after


def main() -> None:
    """Print what is expected in each mode of looks at a target, and of watches of parts."""
    for mode in MODES:
        window = published(load_network(TOWN), N_DEVICES, mode, SEED)
        moments = np.linspace(0, len(window.region) - 1, N_MOMENTS).astype(int).tolist()
        looks: list[Action] = [(t, None) for t in moments]
        watches: list[Action] = list(product(moments, range(0, N_PARTS, _EVERY_PART)))
        for what, actions in (("looks", looks), ("watches", watches)):
            for n in range(1, N_LOOKS + 1):
                found = values_of(Looks(window), actions, n)
                sys.stdout.write(
                    f"{mode:8} {n} {what:7} at random {found.random:.3f}, one by one "
                    f"{found.one_by_one:.3f}, best {found.best:.3f}\n"
                )


if __name__ == "__main__":
    main()
