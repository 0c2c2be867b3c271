"""Units of one kind that are exact multiples of each other: `0.09 g` is `90 mg`.

Miles, pounds, degrees and currencies are no exact multiples of others here, and stay apart. So do
units that letter case alone tells apart: `10 mW` is no `10 MW`.
"""

import re
from collections.abc import Iterable, Mapping
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
    "s": (Decimal(1), "s"),
    "min": (Decimal(60), "s"),
    "h": (Decimal(3600), "s"),
    "day": (Decimal(86_400), "s"),
    "week": (Decimal(604_800), "s"),
    "year": (Decimal(12), "month"),
}
_KNOWN = _EXACT | {
    f"{above}/{below}": (a / b, f"{of}/{per}")
    for (above, (a, of)), (below, (b, per)) in product(_EXACT.items(), _EXACT.items())
    if of in {"g", "mol"} and per == "l"
}
"""With concentrations."""


_CASED = frozenset(
    f"{prefix}{base}"
    for prefixes, bases in (
        ("mM", "W Wh Wp V VA Hz J Pa N eV Bq \u03a9"),
        ("kMGT", "b B"),
        ("nN", "m M"),
        ("mp", "m M"),
    )
    for prefix, base in product(prefixes, bases.split())
)
"""Units as they are defined, of which case tells two apart that are in use."""
_UNIT = re.compile(r"(?<=\d) ?([a-zA-Z]{1,2}[a-zA-Z\u03a9\u03c9]{1,2})(?![^\W\d_])")


def usual_units(texts: Iterable[str]) -> dict[str, str]:
    """Return how a column writes units of which the case counts, by the folded ones.

    What is written as none is defined (`mw`) is taken for it. Of several, those of small letters.
    """
    found = _CASED.intersection(_UNIT.findall("\n".join(texts)))
    return {unit.casefold(): unit for unit in sorted(found)}


def other_unit(text: str, usual: Mapping[str, str]) -> str:
    """Return a unit of a text that its case alone tells from the usual one; empty: it has none."""
    for unit in _UNIT.findall(text):
        if unit in _CASED and usual.get(unit.casefold(), unit) != unit:
            return str(unit)
    return ""


def in_base_units(number: Decimal, unit: str) -> tuple[Decimal, str]:
    """Return a number in the base unit of its kind; as it is, if its unit is not known.

    `unit` is folded, and in the writing of `SAME_UNIT`.
    """
    times, base = _KNOWN.get(unit, (Decimal(1), unit))
    return number * times, base
