"""Units of one kind that are exact multiples of each other: `0.09 g` is `90 mg`.

Miles, pounds, degrees and currencies are no exact multiples of others here, and stay apart.
"""

from decimal import Decimal
from itertools import product

_TENS = {"k": 3, "": 0, "d": -1, "c": -2, "m": -3, "\u03bc": -6, "u": -6, "n": -9}
"""Prefixes of units, with powers of ten."""
_BASES = {
    "g": ("k", "", "m", "\u03bc", "u", "n"),
    "m": ("k", "", "d", "c", "m", "\u03bc", "u", "n"),
    "l": ("", "d", "c", "m", "\u03bc", "u"),
    "mol": ("", "m", "\u03bc", "u", "n"),
    "w": ("k", ""),
    "wh": ("k", ""),
    "j": ("k", ""),
}
"""By folded unit: the prefixes that it has. Not what small and capital letters tell apart."""
_EXACT = {
    f"{prefix}{base}": (Decimal(1).scaleb(_TENS[prefix]), base)
    for base, prefixes in _BASES.items()
    for prefix in prefixes
} | {
    "mcg": (Decimal("1e-6"), "g"),
    "ms": (Decimal("1e-3"), "s"),
    **{word: (Decimal(1), "s") for word in ("s", "sec", "second", "seconds")},
    **{word: (Decimal(60), "s") for word in ("min", "mins", "minute", "minutes")},
    **{word: (Decimal(3600), "s") for word in ("h", "hr", "hrs", "hour", "hours")},
}
_KNOWN = _EXACT | {
    f"{above}/{below}": (a / b, f"{of}/{per}")
    for (above, (a, of)), (below, (b, per)) in product(_EXACT.items(), _EXACT.items())
    if of in {"g", "mol"} and per == "l"
}
"""With concentrations."""


def in_base_units(number: Decimal, unit: str) -> tuple[Decimal, str]:
    """Return a number in the base unit of its kind; as it is, if its unit is not known.

    `unit` is folded.
    """
    times, base = _KNOWN.get(unit, (Decimal(1), unit))
    return number * times, base
