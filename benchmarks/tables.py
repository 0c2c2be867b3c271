"""Tables of results for the terminal, as Markdown and as JSON."""

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from rich.table import Table as RichTable

from anonymizer.transport.local_brokers import find_mosquitto
from tests.mosquitto import version_of

Cell: TypeAlias = str | int | float
Tables: TypeAlias = Mapping[str, Sequence["Table"]]
"""The tables of each benchmark, by its name."""

_HOW = (
    "Figures depend on the machine, ratios less so. Times are the best of several runs, "
    "compiled and warm; peers run in the same process."
)
_LIBRARIES = ("numpy", "numba", "scipy", "msgspec", "pydantic", "networkx", "paho-mqtt")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of results, with notes that explain them."""

    title: str
    """What is measured."""
    columns: tuple[str, ...]
    """Names, with the unit."""
    rows: Sequence[tuple[Cell, ...]]
    """One cell for each column."""
    notes: tuple[str, ...] = ()
    """A sentence each."""
    ratios: Mapping[str, float] = field(default_factory=dict)
    """By name: times compared with a peer's in the same run, see `benchmarks.ratios`."""


def machine() -> dict[str, str]:
    """Return the machine and the versions that the figures depend on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{name: version(name) for name in _LIBRARIES},
        "mosquitto": _mosquitto(),
        "load at the start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def as_rich(table: Table) -> RichTable:
    """Return a table for the terminal."""
    shown = RichTable(title=table.title, caption="\n".join(table.notes), title_justify="left")
    for number, column in enumerate(table.columns):
        shown.add_column(column, justify="right" if _is_numeric(table, number) else "left")
    for row in table.rows:
        shown.add_row(*map(text_of, row))
    return shown


def as_markdown(table: Table) -> str:
    """Return a table, its title and its notes as Markdown."""
    rules = ["--:" if _is_numeric(table, i) else "---" for i in range(len(table.columns))]
    rows = [table.columns, rules, *([text_of(cell) for cell in row] for row in table.rows)]
    lines = [f"### {table.title}", "", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([*lines, *([""] if table.notes else []), *(f"- {n}" for n in table.notes), ""])


def as_json(table: Table) -> dict[str, Any]:
    """Return a table as plain data."""
    rows = [dict(zip(table.columns, map(_plain, row), strict=True)) for row in table.rows]
    return {"title": table.title, "rows": rows, "notes": list(table.notes)}


def document(tables: Tables, facts: Mapping[str, str], *, command: str) -> str:
    """Return the whole report as Markdown.

    Parameters
    ----------
    tables, facts
        The results and the machine they come from.
    command
        What makes this page anew.
    """
    parts = [
        "# Benchmarks\n",
        f"Made by `{command}`. {_HOW}\n",
        "\n".join(["| machine | |", "|---|---|", *(f"| {k} | {v} |" for k, v in facts.items())]),
    ]
    for name, each in tables.items():
        parts += [f"\n## {name}\n", "\n".join(map(as_markdown, each)).rstrip()]
    return "\n".join(parts) + "\n"


def _plain(cell: Cell) -> Cell | None:
    """Return a value that JSON can represent."""
    return cell if isinstance(cell, str) or math.isfinite(cell) else None


def _is_numeric(table: Table, column: int) -> bool:
    return not any(isinstance(row[column], str) for row in table.rows)


def text_of(cell: Cell) -> str:
    """Return a cell as a reader sees it."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 100:
        return f"{cell:,.0f}"
    return f"{cell:#.2g}".rstrip(".") if abs(cell) < 10 else f"{cell:.0f}"


def _mosquitto() -> str:
    program = find_mosquitto()
    return ".".join(map(str, version_of(program))) if program else "none"


def _processor() -> str:
    """Return the name of the processor, if the system states it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
