"""Tables that `anonymizer experiment` prints."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from rich.columns import Columns
from rich.console import Console
from rich.table import Table

from anonymizer.narrow_tables import print_table

Row: TypeAlias = dict[str, Any]
_UTILITY = ("classes", "suppressed", "gcp_range", "gcp_set", "gcp_taxonomy", "dm")
_TIMES = ("records", "method", "k", "d", "l", "mean_s", "least_s", "greatest_s", "paper_s")
_MOST_LISTED = 100
"""Largest network whose nodes are listed one by one; of larger ones, nodes are counted by users."""
_MOST_NAMED = 12
"""Largest number of nodes of a region in a row of the table of runs."""


def print_users(console: Console, names: list[int | str], n_at: list[int]) -> None:
    """Print how many users are at each node, or at how many nodes of a large network."""
    console.print(f"{sum(n_at):,} users on {len(names):,} nodes", style="bold")
    if len(names) <= _MOST_LISTED:
        cells = [f"{name}: {n}" for name, n in zip(names, n_at, strict=True)]
        width = max(map(len, cells))
        console.print(Columns([cell.rjust(width) for cell in cells], padding=(0, 3)))
        return
    for users, nodes in sorted(Counter(n_at).items()):
        console.print(f"  {users:,} at {nodes:,} nodes")


def print_target(console: Console, first: Row) -> None:
    """Print the target of the first run and its region."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("target", str(first["target"]))
    table.add_row("density", str(first["density"]))
    table.add_row("selected k", str(first["k"]))
    table.add_row("region", _named(first, at_most=_MOST_LISTED))
    console.print()
    console.print(table)


def print_runs(console: Console, rows: list[Row]) -> None:
    """Print a row for each run."""
    numbers = ("run", "target", "density", "k", "region_size", "users_in_region")
    cells = [
        [*(str(row[name]) for name in numbers), _named(row, at_most=_MOST_NAMED)] for row in rows
    ]
    headings = ["run", "target", "density", "k", "nodes", "users", "region"]
    print_table(console, "Runs", headings, cells, words={"region"})


def print_by_k(console: Console, report: Row) -> None:
    """Print how often each k is selected, in this draw and over all, and the mean regions."""
    headings = ["targets", "k", "number", "share", "suppressed", "mean nodes", "mean users"]
    drawn_from = report["targets"]
    cells = [
        [
            f"{report[series]['n']:,} {targets}",
            f"{row['k']}",
            f"{row['n']:,}",
            f"{row['n'] / report[series]['n']:.1%}",
            f"{row['n'] - row['n_cloaked']:,}",
            *(_decimal(row[name]) for name in ("mean_region_size", "mean_users_in_region")),
        ]
        for series, targets in (("over_runs", "runs"), (f"over_{drawn_from}", drawn_from))
        for row in report[series]["by_k"]
    ]
    cells += [
        ["over all draws", f"{row['k']}", "", f"{row['share']:.1%}", "", "", ""]
        for row in report["expected"]
    ]
    print_table(console, "Regions by k", headings, cells, words={"targets"})


def _named(row: Row, *, at_most: int) -> str:
    """Return the nodes of a run's region, or the reason why it has none."""
    if row["outcome"] != "cloaked":
        return f"suppressed: {row['outcome'].replace('_', ' ')}"
    names = " ".join(map(str, row["region"][:at_most]))
    more = len(row["region"]) - at_most
    return f"{names} and {more:,} more" if more > 0 else names


def _decimal(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.1f}"


def print_multisource(console: Console, report: Row, times: Sequence[Row]) -> None:
    """Print the leaks of all algorithms, and the first repeat of the trials over k, d and l."""
    runs = [row for row in report["runs"] if row["repeat"] == 0]

    def over(name: str, test: Callable[[Row], bool], columns: Sequence[str]) -> None:
        for table in report["tables"]:
            some = [row for row in runs if row["table"] == table["table"] and test(row)]
            whole = [row for row in some if row["records"] == table["records"]]
            most = max((row["qis"] for row in whole), default=0)
            shown = [row for row in whole if row["qis"] == most]
            print_rows(console, f"{table['table']}: {name}", shown, columns)

    for table in report["tables"]:
        console.print(f"{table['table']}: {table['records']:,} records", style="bold")
    leaks = report["leaks"]
    counted = [name for name in leaks[0] if name not in {"promise", "suppressed"}]
    print_rows(console, "Classes with a single value, and leaks (tables 4 to 7)", leaks, counted)
    usual = runs[0]["reading"]
    over(
        "over k",
        lambda row: row["reading"] == usual and row["l"] == 1 and row["d"] in {1, 2},
        ("method", "k", "d", *_UTILITY),
    )
    over(
        "over d",
        lambda row: row["k"] == 20 and row["l"] == 1,
        ("reading", "method", "d", *_UTILITY),
    )
    over(
        "over l, d = 2",
        lambda row: row["l"] > 1 and row["d"] == 2 and row["k"] in {20, 200},
        ("method", "l", *_UTILITY),
    )
    print_rows(console, "Times beside the paper's", [t for t in times if t["paper_s"]], _TIMES)
    console.print(report["note"])


def print_rows(console: Console, title: str, rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Print a table without the columns that are empty in all rows; print nothing if all are."""
    filled = [name for name in columns if any(row[name] is not None for row in rows)]
    if not filled:
        return
    cells = [[_shown(row[name]) for name in filled] for row in rows]
    words = {name.replace("_", " ") for name in filled if isinstance(rows[0][name], str)}
    print_table(console, title, [name.replace("_", " ") for name in filled], cells, words=words)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
