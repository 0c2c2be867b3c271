"""Tables that can be read on a narrow terminal and in a pipe."""

from collections.abc import Collection, Iterable, Sequence

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

_KEYS = {
    "by", "kind", "table", "algorithm", "reading", "method", "records", "k", "d", "l", "run",
    "targets", "devices", "mode", "setting", "model", "without", "place devices", "area devices",
    "min nodes",
}  # fmt: skip
"""Headings of the columns that say what a row is about."""


def print_table(
    console: Console,
    title: str,
    headings: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    words: Collection[str],
) -> None:
    """Print a table, in parts below each other where the console is too narrow for all columns.

    Only headings and the columns `words` are wrapped, and only between words: a number in two lines
    cannot be read. Every part repeats the columns that say what a row is about. Nothing is printed
    without rows.
    """
    if not cells:
        return
    columns = list(zip(*cells, strict=True))
    least = [
        max(map(len, [*heading.split(), *(_words(column) if heading in words else column)]))
        for heading, column in zip(headings, columns, strict=True)
    ]
    key = [j for j, heading in enumerate(headings) if heading in _KEYS]
    rest = [j for j in range(len(headings)) if j not in key]
    for part in _parts(key, rest, least, console.width):
        table = Table(title=title, title_justify="left", box=SIMPLE)
        spare = console.width - _width(least[j] for j in part)
        for j in part:
            more = 0
            if left := headings[j] in words:
                more = min(max(0, spare), max(map(len, [headings[j], *columns[j]])) - least[j])
                spare -= more
            table.add_column(
                headings[j], justify="left" if left else "right", width=least[j] + more
            )
        for row in cells:
            table.add_row(*(Text(row[j]) for j in part))
        console.print(table)
        title = ""


def _words(column: Sequence[str]) -> list[str]:
    return [word for cell in column for word in cell.split()]


def _width(columns: Iterable[int]) -> int:
    """Return the width of a table: each column has a space on both sides, and one between two."""
    return sum(width + 3 for width in columns) + 1


def _parts(
    key: Sequence[int], rest: Sequence[int], least: Sequence[int], width: int
) -> list[list[int]]:
    """Return the columns of each part: the key, and at least one of the others."""
    parts: list[list[int]] = [[]]
    for j in rest:
        part = [*key, *parts[-1], j]
        if parts[-1] and _width(least[each] for each in part) > width:
            parts.append([])
        parts[-1].append(j)
    return [sorted([*key, *part]) for part in parts]
