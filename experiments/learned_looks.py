"""Looks chosen by what was learned in another fleet: a policy by the cross-entropy method.

Whoever chooses looks one by one takes the next one that tells most, and does not ask whether the
names that it then believes will be in use at a later look. Here a look is worth a sum of what it is
expected to tell, of how much of what is believed is still in use then, and of how long the names
last that are; the weights are those that find most names in a fleet of the adversary's own, which
it has published in the same way [1]_.

References
----------
.. [1] R. Rubinstein, "The cross-entropy method for combinatorial and continuous optimization",
   Methodology and Computing in Applied Probability 1, 1999.
"""

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from experiments.looks import Choice, Looks, Window, guessed

N_LOOKS = 3
"""Looks that are learned; those after them are chosen as the last one."""
N_TARGETS = 48
_EVERY = 2
"""Every second moment may be looked at while learning, which is shorter."""
N_ROUNDS, N_TRIES, _BEST = 5, 20, 5
_GREEDY = (1.0, 0.0, 0.0, 0.0)
"""Weights of `numbers_of` with which the look after which the guess is surest is chosen."""


def numbers_of(looks: Looks, seen: list[int], moments: IntArray) -> FloatArray:
    """Return what a policy knows of a look at each moment, shape (moments, 4).

    How sure the best guess is expected to be, as a logarithm, and how much is learned (nats); the
    share of what is believed of the last look's names that is in use at that moment; and the share
    of the window in which the names of that moment are in use.
    """
    expected = np.array([looks.expected(t) for t in moments.tolist()])
    kept = np.ones(len(moments))
    if seen:
        names, belief = looks.belief(seen[-1])
        kept = (looks.in_use[np.ix_(moments, names)] * belief).sum(axis=1)
    lasts = looks.in_use.mean(axis=0)
    n_in_use = np.maximum(looks.in_use[moments].sum(axis=1), 1)
    return np.stack(
        [
            np.log(np.maximum(expected[:, 0], 1e-9)),
            expected[:, 1],
            kept,
            looks.in_use[moments] @ lasts / n_in_use,
        ],
        axis=1,
    )


def learned(weight: FloatArray, *, every: int = 1) -> Choice:
    """Return the choice by weights of `numbers_of`, shape (looks, 4)."""
    first: list[FloatArray] = []  # before the first look nothing is known yet of any target

    def choose(looks: Looks, seen: list[int], _rng: np.random.Generator) -> int:
        moments = np.arange(0, len(looks.in_use), every)
        if not first:
            first.append(numbers_of(looks, [], moments))
        numbers = numbers_of(looks, seen, moments) if seen else first[0]
        value = numbers @ weight[min(len(seen), len(weight) - 1)]
        value[np.isin(moments, seen)] = -np.inf
        return int(moments[value.argmax()])

    return choose


def train(window: Window, *, seed: int = 0) -> FloatArray:
    """Return the weights that find most names in a release, from those of the greedy choice on."""
    rng = np.random.default_rng(seed)
    usable = np.flatnonzero((window.place >= 0).all(axis=0))
    targets = rng.permutation(np.intersect1d(usable, window.device_of))[:N_TARGETS]
    mean, spread = np.tile(_GREEDY, (N_LOOKS, 1)), np.ones((N_LOOKS, len(_GREEDY)))
    best, most = mean, _names_found(window, targets, mean)
    for _ in range(N_ROUNDS):
        tries = mean + spread * rng.normal(size=(N_TRIES, *mean.shape))
        found = np.array([_names_found(window, targets, each) for each in tries])
        chosen = tries[np.argsort(-found, kind="stable")[:_BEST]]
        mean, spread = chosen.mean(axis=0), chosen.std(axis=0)
        if found.max() > most:
            best, most = chosen[0], float(found.max())
    return mean if _names_found(window, targets, mean) >= most else best


def _names_found(window: Window, targets: IntArray, weight: FloatArray) -> float:
    """Return how often the names of targets are found, on average over the looks."""
    choose, rng = learned(weight, every=_EVERY), np.random.default_rng(0)
    found = 0.0
    for target in targets.tolist():
        looks, seen, own = Looks(window), list[int](), window.device_of == target
        for _ in range(N_LOOKS):
            t = choose(looks, seen, rng)
            looks.see(t, int(window.place[t, target]))
            seen.append(t)
            found += guessed(looks, seen, own)
    return found / N_LOOKS / max(len(targets), 1)
