"""The tables of `anonymizer experiment multisource`, as the terminal shows them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

Row: TypeAlias = dict[str, Any]

_UTILITY = ("classes", "suppressed", "gcp_range", "gcp_set", "gcp_taxonomy", "dm")
_PAPER = ("paper_classes", "paper_gcp_range", "paper_gcp_set", "paper_gcp_taxonomy")
_LEAKS = ("cells_1_to_2", "people_1_to_2", "cells_2_to_1", "people_2_to_1")
_TIMES = ("records", "method", "k", "d", "l", "classes", "seconds", "paper_seconds")


def print_multisource(console: Console, report: Row, times: Sequence[Row]) -> None:
    """Print utility over k, over d and over l, what leaks, and the times."""
    runs = report["runs"]
    usual = runs[0]["reading"]

    def some(test: Callable[[Row], bool]) -> list[Row]:
        return [row for row in runs if test(row)]

    def over_k(row: Row) -> bool:
        return (row["reading"], row["l"]) == (usual, 1) and row["d"] in {1, 2}

    console.print(f"{report['table']}: {report['records']:,} records", style="bold")
    _print(console, "Over k", some(over_k), ("method", "k", "d", *_UTILITY))
    over_d = some(lambda row: row["k"] == 20 and row["l"] == 1)
    _print(console, "Over d, k = 20", over_d, ("reading", "method", "d", *_UTILITY))
    known = [row for row in over_d if any(row[name] is not None for name in _PAPER)]
    _print(console, "Known of the paper, k = 20", known, ("method", "d", *_PAPER))
    over_l = some(lambda row: row["l"] > 1)
    _print(console, "Over l, k = 20, d = 2", over_l, ("method", "l", *_UTILITY))
    title = "Leaks of one source to the other, by Algorithm 1"
    _print(console, title, some(over_k), ("method", "k", "d", *_LEAKS))
    _print(console, "Times", times, _TIMES)
    console.print(report["note"])


def _print(console: Console, title: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Print rows, if there are any, without the columns that are empty in all of them."""
    filled = [name for name in columns if any(row[name] is not None for row in rows)]
    if not filled:
        return
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for name in filled:
        left = isinstance(rows[0][name], str)
        table.add_column(name.replace("_", " "), justify="left" if left else "right")
    for row in rows:
        table.add_row(*(_shown(row[name]) for name in filled))
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
