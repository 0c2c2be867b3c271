"""Command `anonymizer anonymize`: publish a table."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.app.table_options import TableOptions
from anonymizer.cli.columns import takes_options
from anonymizer.extras import require

if TYPE_CHECKING:
    from rich.table import Table

    from anonymizer.app.anonymize.plan import ReleasePlan
    from anonymizer.app.anonymize.release_report import AnonymizeReport
    from anonymizer.cli.terminal import Terminal


@takes_options(
    TableOptions,
    order="table qi out k model method d l ... bands keep target labels language measures seed",
)
def anonymize(
    table: Annotated[
        Path, typer.Argument(help="csv, csv.gz (separated by `,` or `;`) or parquet.")
    ],
    out: Annotated[Path, typer.Option(help="The release: csv, csv.gz or parquet.")],
    options: TableOptions,
    report: Annotated[Path | None, typer.Option(help="The figures, as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(help="The figures and plots, as HTML.")] = None,
    auditor_map: Annotated[
        Path | None,
        typer.Option(help="Which row became which, as csv. For the auditor only."),
    ] = None,
    *,
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas",
            help="Write text such as `=A1` into a csv as it is. Otherwise it begins with `'`, and"
            " no spreadsheet runs it.",
        ),
    ] = False,
) -> None:
    r"""Publish a table in which nobody can be told apart from at least k - 1 others.

    Rows are sorted by class. Numbers become \[lo-hi], categories {a|b} or a label of their
    hierarchy; sensitive values are unchanged. Columns that are not named are left out.

    kaca publishes quasi-identifiers in the form of their --label. It adds a column
    `count`, the persons of the class. A --measure adds that, too, and `mean_COLUMN`. No two classes
    of kaca have the same labels.

    [bold]Examples[/bold]

        anonymizer anonymize people.csv -k 20 --qi age,zip,job --id name --out out.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --model kld --sa illness --out out.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --hierarchy job=jobs.csv --out out.csv

        anonymizer anonymize tolls.csv -k 5 --model kaca --qi section_id,exit_time --id plate
        --label section_id=prefix --label exit_time=hours --measure toll_money --out out.csv
    """
    from anonymizer.algorithms.models.registry import MODELS

    model = MODELS[options.model]
    require(*model.extras_of(options.method), *["plots"] * (page is not None))
    from anonymizer.algorithms.records.class_methods import search_is_compiled
    from anonymizer.algorithms.records.methods import searches
    from anonymizer.app.anonymize.plan import declared_of, make_plan
    from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
    from anonymizer.app.anonymize.table_anonymization import anonymize as run
    from anonymizer.cli.terminal import Terminal
    from anonymizer.files.tables import read_table

    places = ReleasePaths(
        table=table,
        out=out,
        report=report,
        page=page,
        auditor_map=auditor_map,
        formulas=formulas,
    )
    declared, plan = declared_of(options), make_plan(options)
    console = Terminal(stderr=True)
    with console.status("reading the table"):
        read = read_table(table, list(dict.fromkeys([*declared.columns, *plan.measures])))
    with (
        _progress(console, plan.time_budget_s) as report_progress,
        _not_waiting(plan, len(read.frame)),
    ):
        made = run(read, declared, plan, progress=report_progress)
        figures = made.report
        lacks_search = any(map(searches, model.methods)) and not search_is_compiled()
    write_release(made, places)
    console.print(_summary(figures, title=str(out)))
    for fold in figures.folds:
        console.print(f"one value: {fold}", markup=False, highlight=False, soft_wrap=True)
    for warning in (*figures.warnings, *([_NO_SEARCH] if lacks_search else [])):
        console.print(f"note: {warning}", markup=False, highlight=False, soft_wrap=True)


_NO_SEARCH = (
    "a search would lose less, and is not compiled on this machine: --method best does so, once, in"
    " about a minute"
)


_WORTH_COMPILING = 10_000
"""Rows from which the sweep loses more than a minute of compiling costs."""


def _not_waiting(plan: "ReleasePlan", n_rows: int) -> "AbstractContextManager[object]":
    """Let kernels run as plain Python where a small table is not asked to be searched."""
    from anonymizer.algorithms.records.methods import AUTO
    from anonymizer.kernel_background import compiling_in_background

    is_asked_for = plan.method != AUTO or plan.prefer_share < 1 or bool(plan.weights)
    needs_search = is_asked_for or n_rows >= _WORTH_COMPILING
    return nullcontext() if needs_search else compiling_in_background()


@contextmanager
def _progress(
    console: "Terminal", budget_s: float
) -> Iterator[Callable[[str, float, float | None], None]]:
    """Yield a function that shows the step, the time budget used so far, and the loss so far."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    # Where there is no terminal it would leave an empty line behind.
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("", total=budget_s or None, loss="")

        def report(step: str, used_s: float, loss: float | None) -> None:
            shown = "" if loss is None else f"loss {loss:.4f}"
            part = min(used_s, budget_s) if step == "partition" else None
            bar.update(task, description=step, completed=part, loss=shown)

        yield report


def _summary(report: "AnonymizeReport", *, title: str) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    from anonymizer.domain.criteria.registry import FURTHER

    size, loss = report.class_size, report.gcp
    table = Table(title=escape(title), show_header=False, box=None, title_justify="left")
    table.add_column(justify="left")
    table.add_column(justify="right", no_wrap=True)
    table.add_row("rows", f"{report.n:,}")
    table.add_row("  published", f"{report.n_published:,}")
    for reason, n in report.suppressed.items():
        table.add_row(f"  suppressed, {reason.replace('_', ' ').replace('qi', 'QI')}", f"{n:,}")
    table.add_row("classes", f"{report.n_classes:,}")
    table.add_row(
        "  size, smallest / median / largest", f"{size.min:,} / {size.median:g} / {size.max:,}"
    )
    for each in report.kept():
        if each.is_asked or each.criterion not in FURTHER:
            asked = f", asked {each.asked}" if each.is_asked else ""
            table.add_row(f"{escape(each.what)}{asked}", each.reached)
    table.add_row(f"rows with a value above {report.share:.0%}", f"{report.n_above:,}")
    table.add_row("GCP range", f"{loss.range:.4f}")
    table.add_row("GCP set", f"{loss.set:.4f}")
    table.add_row("GCP taxonomy", f"{loss.taxonomy:.4f}")
    if report.least_gcp is not None:
        table.add_row(f"  least possible, {report.settings.cost}", f"{report.least_gcp:.4f}")
    table.add_row("DM", f"{report.dm:,}")
    if report.dm_published != report.dm:
        table.add_row("  of the published rows", f"{report.dm_published:,}")
    if len(report.sources) > 1:
        table.add_row("values linked between sources", f"{report.n_learned(sensitive=False):,}")
    if report.sensitive:
        table.add_row("sensitive values linked", f"{report.n_learned(sensitive=True):,}")
    compiling_s = report.seconds.get("compile", 0.0)
    table.add_row("time", f"{sum(report.seconds.values()) - compiling_s:.1f} s")
    return table
