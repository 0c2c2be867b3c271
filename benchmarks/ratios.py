"""Comparison of the ratios of a run with stored ones: they move less between machines than times.

A ratio compares a time with that of a peer in the same run, such as `json.loads` on the same
messages or a bare relay on the same broker. Smaller is better.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from benchmarks.tables import Table

STORED = Path(__file__).with_name("ratios.json")
WORSE = 1.2
"""A ratio that is larger than the stored one by more than this factor fails."""


def read(file: Path = STORED) -> dict[str, float]:
    """Return the stored ratios by name; none if there is no such file."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def store(found: Mapping[str, float], file: Path = STORED) -> None:
    """Store the ratios of a run, and keep the others that are stored.

    Raises
    ------
    ValueError
        If a ratio is not a positive number: it could never be compared.
    """
    for name, ratio in found.items():
        if not _is_measured(ratio):
            raise ValueError(f"{name}: {ratio} is no ratio")
    kept = read(file) | {name: float(f"{ratio:.3g}") for name, ratio in found.items()}
    file.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def worse(found: Mapping[str, float], stored: Mapping[str, float]) -> list[str]:
    """Return the names of the ratios that are at least 20 % worse than stored, in order.

    A ratio that could not be measured is worse than any. One that is not stored is new.
    """
    return [
        name
        for name, ratio in found.items()
        if name in stored and not (_is_measured(ratio) and ratio < WORSE * stored[name])
    ]


def compared(found: Mapping[str, float], stored: Mapping[str, float]) -> Table:
    """Return a table of the ratios of a run beside the stored ones."""
    failed = worse(found, stored)
    rows = [
        (
            name,
            ratio,
            stored.get(name, math.nan),
            ratio / stored[name] if name in stored else math.nan,
            "worse" if name in failed else "" if name in stored else "new",
        )
        for name, ratio in found.items()
    ]
    notes = (
        "each compares a time with that of a peer in the same run; smaller is better.",
        f"a ratio is worse if it is {WORSE - 1:.0%} above the stored one.",
    )
    return Table("Ratios", ("ratio", "now", "stored", "now/stored", ""), rows, notes)


def _is_measured(ratio: float) -> bool:
    return math.isfinite(ratio) and ratio > 0
