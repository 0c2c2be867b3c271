"""What `anonymizer tune` shows on the terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from anonymizer.app.tuning.running import Tuned
    from anonymizer.app.tuning.tune_report import Judged

_SHOWN = 12
"""Rows of the table."""


@contextmanager
def progress(console: "Console") -> Iterator[Callable[[int, int], None]]:
    """Yield what shows how many configurations are done, and when all will be."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("configurations", total=None)

        def tell(done: int, n: int) -> None:
            bar.update(task, completed=done, total=n)

        yield tell


def tell_of(console: "Console", tuned: "Tuned") -> None:
    """Print the best of the trials within the bounds, and what else there is to know."""
    report = tuned.report
    within, best = report.within, report.recommended
    shown = list(within[:_SHOWN])
    if best is not None and best not in shown:
        shown = [*shown[:-1], best]
    console.print(_table(shown, scored=report.target is not None))
    more = f", {len(shown)} of them above" if len(within) > len(shown) else ""
    console.print(
        f"{len(within):,} of {len(report.trials):,} configurations are within the bounds{more}",
        highlight=False,
    )
    if report.original_score is not None and report.min_score is not None:
        console.print(
            f"score of the records as they are {report.original_score:.4f}, "
            f"of guessing {report.guessing_score:.4f}, least {report.min_score:.4f}",
            highlight=False,
        )
    for reason, n in report.left_out.items():
        console.print(f"note: left out, {reason.replace('_', ' ')}: {n:,}", highlight=False)
    if best is None:
        console.print("note: none is recommended: relax the bounds, or look at results.csv")
    if tuned.why_no_setting is not None:
        said = "note: no settings are written, no stream has such attributes: "
        console.print(said + tuned.why_no_setting, markup=False, highlight=False, soft_wrap=True)
    written = ", ".join(str(path) for path in tuned.files)
    console.print(f"written: {written}", markup=False, highlight=False, soft_wrap=True)


def _table(trials: "Sequence[Judged]", *, scored: bool) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None)
    some_lack = any(trial.configuration.without for trial in trials)
    for name in ("", "model", *["without"] * some_lack):
        table.add_column(name, justify="left", no_wrap=not name)
    for name in ("k", "d", "l", "deleted", "GCP", *["score"] * scored, "linked", "alike"):
        table.add_column(name, justify="right")
    for trial in trials:
        promised = trial.configuration
        table.add_row(
            "recommended" if trial.recommended else "front" if trial.front else "",
            promised.model,
            *[escape(",".join(promised.without))] * some_lack,
            str(promised.k),
            str(promised.d),
            str(promised.l),
            "none" if trial.lossless else f"{trial.deletion:.2%}",
            f"{trial.gcp:.4f}",
            *[f"{trial.score:.4f}" if trial.score is not None else "-"] * scored,
            _share(trial.linked),
            _share(trial.homogeneous),
        )
    return table


def _share(of: float | None) -> str:
    return "-" if of is None else f"{of:.2%}"
