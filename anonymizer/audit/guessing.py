"""Guessing compared with chance among k."""

import numpy as np

from anonymizer.audit.case import mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.domain.arrays import BoolArray, FloatArray

SIGMAS = 3.0
GUESSING_BAR = f"<= mean(1/k) + {SIGMAS:g} sigma"


def guessing(
    attack: str, right: BoolArray | FloatArray, by_chance: FloatArray, **more: Figure
) -> Finding:
    """Compare the success of guesses (or its probability) with chance among k devices, 1/k.

    The guesses within one group depend on each other. Of k pseudonyms that cannot be
    distinguished, the number of right guesses has variance k * 1/k * (1 - 1/k) if each is guessed
    independently, and 1 = k * 1/k if they are guessed as a permutation. The variance over all is
    taken as the sum of 1/k, which covers both.
    """
    figures: dict[str, Figure] = {"success": None, "expected": None, "sigma": None}
    holds = None
    n = len(right)
    if n:
        success, expected, sigma = mean(right), mean(by_chance), float(np.sqrt(by_chance.sum())) / n
        figures = {"success": success, "expected": expected, "sigma": sigma}
        holds = success <= expected + SIGMAS * sigma
    return Finding(attack=attack, figures=figures | {"n": n} | more, bar=GUESSING_BAR, holds=holds)
