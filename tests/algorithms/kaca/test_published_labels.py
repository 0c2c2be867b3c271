"""The labels of the published program beside ours, for the classes in the notes on KACA."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from anonymizer.algorithms.records.generalized_values import (
    Hours,
    Prefix,
    common_prefix,
    covering_hours,
    text,
)

PAGE = Path(__file__).parents[3] / "notes" / "reproduction.md"


def faults() -> list[tuple[str, list[str], str, str]]:
    """Return the rows of the page: the fault, the exits of a class, the source's label and ours."""
    _, _, part = PAGE.read_text().partition("### What is wrong in the labels of the source")
    table = [line for line in part.partition("\n## ")[0].splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    return [(fault, exits.split(", "), source, ours) for fault, exits, source, ours in rows]


def of_source(exits: Sequence[str]) -> str:
    """Return the source's label: three digits of most sections, the period of the first hour."""
    digits = ["".join(c for c in exit_.split()[0] if c.isdigit())[:3] for exit_ in exits]
    (most, n), *_ = Counter(digits).most_common(1)
    hours = sorted(_hour(exit_) for exit_ in exits)
    period = f"时段({hours[0]:02d}-{hours[-1]:02d})"
    if hours[-1] - hours[0] <= 6:
        named = ("凌晨时段(00-06)", "上午时段(06-12)", "下午时段(12-18)", "晚上时段(18-24)")
        period = named[hours[0] // 6]
    return f"G{most}{'区域' if n == len(exits) else '等区域'} {period}"


def of_ours(exits: Sequence[str]) -> str:
    area = Prefix(common_prefix(exit_.split()[0] for exit_ in exits), missing=False)
    return f"{text(area)} {text(Hours(covering_hours(map(_hour, exits)), missing=False))}"


def _hour(exit_: str) -> int:
    return int(exit_.split()[1].split(":", maxsplit=1)[0])


@pytest.mark.parametrize(("exits", "source", "ours"), [row[1:] for row in faults()])
def test_each_fault_of_the_source_is_shown_by_its_row(
    exits: list[str], source: str, ours: str
) -> None:
    assert of_source(exits) == source
    assert of_ours(exits) == ours
    prefix = ours.split("区域", maxsplit=1)[0]
    assert all(exit_.startswith(prefix) for exit_ in exits)


def test_the_page_has_the_faults_that_were_found() -> None:
    assert len(faults()) == 5
