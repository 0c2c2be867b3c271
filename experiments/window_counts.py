"""Counts by cells with differential privacy over any window of w steps (w-event privacy).

A device is in at most one cell in a step. All that it adds to any `w` steps in a row is hidden by
noise, for however long counts are published. These are reproductions from the papers.

References
----------
.. [1] G. Kellaris et al., "Differentially Private Event Sequences over Infinite Streams", VLDB 2014
   (uniform, sample, budget distribution and budget absorption).
.. [2] L. Fan, L. Xiong, "An Adaptive Approach to Real-Time Aggregate Monitoring With Differential
   Privacy" (FAST), IEEE TKDE 26(9), 2014; for w steps as in C. Schäler et al., "Benchmarking the
   Utility of w-event Differential Privacy Mechanisms", VLDB 2023.
.. [3] M. Bun, T. Steinke, "Concentrated differential privacy", TCC 2016.
"""

import math
from typing import Literal

import numpy as np

from anonymizer.domain.arrays import FloatArray

WindowMethod = Literal["uniform", "sample", "BD", "BA", "FAST", "Gaussian"]
"""The first five promise epsilon, `Gaussian` epsilon and `DELTA`."""
WINDOW_METHODS: tuple[WindowMethod, ...] = ("uniform", "sample", "BD", "BA", "FAST", "Gaussian")
DELTA = 1e-6
_HEAVY = 1e-2
"""How much a filter takes counts to vary from step to step, in shares of their mean."""
_LEAST_DRIFT = 1e-3
"""Likewise of a reader of noisy counts, in shares of the variance of the noise."""
_KP, _KI, _GOAL, _STEP = 0.9, 0.1, 0.1, 10.0
"""Controller of FAST, with the values of its authors."""


def window_counts(
    true: FloatArray, method: WindowMethod, *, epsilon: float, w: int, rng: np.random.Generator
) -> FloatArray:
    """Return published counts, shape (steps, cells); they may be negative.

    Parameters
    ----------
    true
        Devices by step and cell; one device is in at most one cell of a step.
    epsilon, w
        Budget of a device for any `w` steps in a row.
    """
    if method == "uniform":
        return true + rng.laplace(0.0, w / epsilon, true.shape)
    if method == "Gaussian":
        return true + rng.normal(0.0, gaussian_scale(epsilon, w), true.shape)
    if method == "sample":
        taken = true[::w] + rng.laplace(0.0, 1 / epsilon, true[::w].shape)
        return np.repeat(taken, w, axis=0)[: len(true)]
    if method == "FAST":
        return _fast(true, epsilon, w, rng)
    return _skipping(true, epsilon, w, rng, absorbs=method == "BA")


def gaussian_scale(epsilon: float, w: int, *, delta: float = DELTA) -> float:
    """Return the standard deviation of Gaussian noise in each of w steps.

    A device changes `w` numbers by one, a vector of length sqrt(w): rho = w / (2 scale^2), and
    epsilon = rho + 2 sqrt(rho ln(1 / delta)) [3]_.
    """
    log = math.log(1 / delta)
    rho = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    return math.sqrt(w / (2 * rho))


def _skipping(
    true: FloatArray, epsilon: float, w: int, rng: np.random.Generator, *, absorbs: bool
) -> FloatArray:
    """BD and BA [1]_: counts are published anew only where they have changed more than noise would.

    Half of the budget asks how much has changed; the mean of a step moves by at most 1 / cells if a
    device comes or goes.
    """
    n_steps, n_cells = true.shape
    shown = np.zeros(true.shape)
    last = np.zeros(n_cells)
    used: list[float] = []
    last_t, n_taken = -1, 0
    for t in range(n_steps):
        changed = float(np.abs(true[t] - last).mean())
        changed += float(rng.laplace(0.0, 2 * w / (epsilon * n_cells)))
        if absorbs:
            spared = t - (last_t + max(n_taken - 1, 0))
            budget = epsilon / (2 * w) * min(max(spared, 0), w)
        else:
            spared = 1
            budget = (epsilon / 2 - sum(used[-(w - 1) :] if w > 1 else ())) / 2
        if budget > 0 and changed > 1 / budget:
            last = true[t] + rng.laplace(0.0, 1 / budget, n_cells)
            last_t, n_taken = t, min(spared, w)
            used.append(budget)
        else:
            used.append(0.0)
        shown[t] = last
    return shown


def _fast(true: FloatArray, epsilon: float, w: int, rng: np.random.Generator) -> FloatArray:
    """FAST [2]_ with a budget for w steps: counts are sampled when a controller says so.

    At most a quarter of any w steps is sampled. All cells are sampled at once: a device that moves
    is in several, so that samples of each at steps of its own would spend more.
    """
    n_steps, n_cells = true.shape
    most = max(w // 4, 1)
    scale = most / epsilon
    noise = 2 * scale**2
    shown = np.zeros(true.shape)
    guess, doubt = np.zeros(n_cells), 1e12
    samples: list[int] = []
    errors: list[float] = []
    due, gap = 0, 1
    for t in range(n_steps):
        drift = max((_HEAVY * float(np.abs(guess).mean())) ** 2, 1e-3)
        doubt += drift
        recent = sum(1 for each in samples if each > t - w)
        if t >= due and recent < most:
            seen = true[t] + rng.laplace(0.0, scale, n_cells)
            gain = doubt / (doubt + noise)
            before = guess
            guess = guess + gain * (seen - guess)
            doubt *= 1 - gain
            samples.append(t)
            errors.append(float((np.abs(guess - before) / np.maximum(np.abs(guess), 1.0)).mean()))
            control = _KP * errors[-1] + _KI * float(np.mean(errors[-5:]))
            gap = max(1, round(gap + _STEP * (1 - math.exp((control - _GOAL) / _GOAL))))
            gap = min(gap, w)
            due = t + gap
        shown[t] = guess
    return shown


def smoothed(noisy: FloatArray, variance: float) -> FloatArray:
    """Return counts as who knows the noise reads them: a filter of each cell over past steps.

    Parameters
    ----------
    noisy
        With independent noise of this variance, shape (steps, cells).

    Notes
    -----
    A Kalman filter of a random walk, without hindsight. How much counts vary is read from what has
    been published until then: the variance of differences beyond that of noise. It reads published
    numbers alone, so that it costs no privacy.
    """
    guess, doubt = noisy[0].copy(), variance
    found = np.zeros(noisy.shape)
    found[0] = guess
    squares = 0.0
    for t in range(1, len(noisy)):
        squares += float(((noisy[t] - noisy[t - 1]) ** 2).mean())
        # The mean of so many squares of noise alone is above its own by this, 1 time in 40.
        chance = 2 * variance * 2 * math.sqrt(3 / (t * noisy.shape[1]))
        drift = max(squares / t - 2 * variance - chance, _LEAST_DRIFT * variance)
        doubt += drift
        gain = doubt / (doubt + variance)
        guess = guess + gain * (noisy[t] - guess)
        doubt *= 1 - gain
        found[t] = guess
    return found
