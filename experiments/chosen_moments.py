"""Who chooses when to look: how many true positions find a name, if the moments are well chosen.

The adversary reads a release of some minutes, may look a few times where a target is, and then
names a pseudonym of it. What a look says is weighed as in `known_positions`. Moments are chosen one
by one, by what is expected of the next look: how sure the best guess will be, or how much is
learned [1]_; or as was learned in a fleet of the adversary's own. Looks a minute apart, and at
random, are what a look is worth without a choice.

Who cannot follow the target may watch a part of the town instead, and sees whether the target is
there at that moment: then places are chosen with the moments.

References
----------
.. [1] A. Krause, C. Guestrin, "Near-optimal nonmyopic value of information in graphical models",
   UAI 2005.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from experiments.learned_looks import learned, train
from experiments.looks import N_PARTS, TICK_S, Choice, Looks, Window, guessed, published
from experiments.scores import Score

MOST_LOOKS = 6
MOST_WATCHES = 12
"""Watches of one place, each of which tells less than a look."""
N_TARGETS = 60
MODES = ("session", "snapshot", "adka")
_OTHER = 100
"""Added to the seed of the fleet in which choices are learned."""


def _greedy(number: int, n_moments: int) -> Choice:
    def choose(looks: Looks, seen: list[int], _rng: np.random.Generator) -> int:
        value = [-np.inf if t in seen else looks.expected(t)[number] for t in range(n_moments)]
        return int(np.argmax(value))

    return choose


def _at_random(n_moments: int) -> Choice:
    def choose(_looks: Looks, seen: list[int], rng: np.random.Generator) -> int:
        return int(rng.choice(np.setdiff1d(np.arange(n_moments), seen)))

    return choose


def _each_minute(n_moments: int) -> Choice:
    step = round(60.0 / TICK_S)

    def choose(_looks: Looks, seen: list[int], _rng: np.random.Generator) -> int:
        return (len(seen) * step + len(seen) * step // n_moments) % n_moments

    return choose


def names_found(
    window: Window,
    targets: IntArray,
    watched: IntArray,
    choose: Choice,
    *,
    seed: int,
) -> FloatArray:
    """Return how often a name of each target is found after each number of looks.

    Parameters
    ----------
    watched
        Whom the adversary looks at in place of each target: itself, or somebody else.

    Returns
    -------
    found
        Shape (targets, `MOST_LOOKS`).
    """
    rng = np.random.default_rng(seed)
    found = np.zeros((len(targets), MOST_LOOKS))
    for i, (target, who) in enumerate(zip(targets.tolist(), watched.tolist(), strict=True)):
        looks, seen = Looks(window), list[int]()
        own = window.device_of == target
        for look in range(MOST_LOOKS):
            t = choose(looks, seen, rng)
            looks.see(t, int(window.place[t, who]))
            seen.append(t)
            found[i, look] = guessed(looks, seen, own)
    return found


Place: TypeAlias = Callable[[Looks, set[tuple[int, int]], np.random.Generator], tuple[int, int]]
"""Returns the next moment and part to watch, given those that were watched."""


def _best_place(number: int, n_moments: int) -> Place:
    def choose(
        looks: Looks, seen: set[tuple[int, int]], _rng: np.random.Generator
    ) -> tuple[int, int]:
        value = np.stack([looks.expected_by_part(t)[number] for t in range(n_moments)])
        for each in seen:
            value[each] = -np.inf
        t, part = np.unravel_index(value.argmax(), value.shape)
        return int(t), int(part)

    return choose


def _any_place(n_moments: int) -> Place:
    def choose(
        _looks: Looks, _seen: set[tuple[int, int]], rng: np.random.Generator
    ) -> tuple[int, int]:
        return int(rng.integers(n_moments)), int(rng.integers(N_PARTS))

    return choose


def names_watched(
    window: Window, targets: IntArray, watched: IntArray, choose: Place, *, seed: int
) -> FloatArray:
    """Return how often a name of each target is found after each number of watches.

    The parameters are those of `names_found`; shape (targets, `MOST_WATCHES`).
    """
    rng = np.random.default_rng(seed)
    found = np.zeros((len(targets), MOST_WATCHES))
    for i, (target, who) in enumerate(zip(targets.tolist(), watched.tolist(), strict=True)):
        looks, seen = Looks(window), set[tuple[int, int]]()
        own = window.device_of == target
        for look in range(MOST_WATCHES):
            t, part = choose(looks, seen, rng)
            looks.watch(t, part, there=bool(window.part_of[window.place[t, who]] == part))
            seen.add((t, part))
            found[i, look] = guessed(looks, sorted({each for each, _ in seen}), own)
    return found


def run_moments(
    network: RoadNetwork,
    *,
    n_devices: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[Score]:
    """Find names in each mode with some looks, or watches of places, chosen in each way."""
    for mode in MODES:
        progress(f"moments: {mode}")
        window = published(network, n_devices, mode, seed)
        n_moments = len(window.region)
        rng = np.random.default_rng(seed)
        usable = np.flatnonzero((window.place >= 0).all(axis=0))
        targets = rng.permutation(np.intersect1d(usable, window.device_of))[:N_TARGETS]
        choices = {
            "at random": _at_random(n_moments),
            "a minute apart": _each_minute(n_moments),
            "chosen by information": _greedy(1, n_moments),
            "chosen by the guess": _greedy(0, n_moments),
            "chosen as learned": learned(train(published(network, n_devices, mode, seed + _OTHER))),
        }
        for name, choose in choices.items():
            find = partial(names_found, window, targets, choose=choose, seed=seed)
            yield from _scores(f"moments: {{}} {name}", mode, find, targets)
        places = {
            "at random": _any_place(n_moments),
            "chosen by information": _best_place(1, n_moments),
            "chosen by the guess": _best_place(0, n_moments),
        }
        for name, place in places.items():
            watch = partial(names_watched, window, targets, choose=place, seed=seed)
            yield from _scores(f"places: {{}} {name}", mode, watch, targets)


def _scores(
    attack: str, mode: str, find: Callable[..., FloatArray], targets: IntArray
) -> Iterator[Score]:
    """Yield a row for each number of looks; the control looks at somebody else."""
    begun = time.process_time()
    found = find(watched=targets)
    cpu_s = time.process_time() - begun
    others = find(watched=np.roll(targets, 1))
    for look in range(found.shape[1]):
        name = attack.format(look + 1)
        yield Score(name, mode, found[:, look], others[:, look], cpu_s)
