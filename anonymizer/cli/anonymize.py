"""Command `anonymizer anonymize`: publish a table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.algorithms.records.methods import MODELS, SHARE_PRICE, TIME_BUDGET_S
from anonymizer.cli.columns import (
    Bands,
    Categories,
    Domains,
    Hierarchies,
    Id,
    Kept,
    Labels,
    Many,
    Markers,
    Orders,
    Qis,
    Sensitive,
    Sources,
    bands_of,
    declared_columns,
    label_forms,
    least_spreads,
    times_of,
)
from anonymizer.domain.promises import SAFE_SHARE, SAFE_SOURCE_SHARE
from anonymizer.errors import SettingsError
from anonymizer.extras import extras_of_method, require

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from anonymizer.app.anonymize import AnonymizeReport


class _Lang(StrEnum):
    ZH = "zh"
    EN = "en"


class _Cost(StrEnum):
    RANGE = "range"
    SET = "set"
    TAXONOMY = "taxonomy"


def anonymize(
    table: Annotated[
        Path, typer.Argument(help="csv, csv.gz (separated by `,` or `;`) or parquet.")
    ],
    qi: Qis,
    out: Annotated[Path, typer.Option(help="The release: csv, csv.gz or parquet.")],
    k: Annotated[int, typer.Option("-k", min=2, help="Fewest distinct persons in a class.")],
    model: Annotated[
        str,
        typer.Option(
            help="kd; kld, with sensitive attributes; kaca, clusters; or cells, a decision tree."
        ),
    ] = "kd",
    method: Annotated[
        str | None,
        typer.Option(
            help="Of kd and kld: best, hilbert (as in the paper), mondrian, and for kld printed "
            "(the paper's Algorithm 3 as its listing is drawn up). "
            "Of kaca: fast or kmeans (as published). Of cells: tree.",
            show_default="the first; hilbert if the time budget is too short for best",
        ),
    ] = None,
    d: Annotated[
        int | None,
        typer.Option(
            "-d",
            min=1,
            help="Fewest distinct values of every quasi-identifier in a class.",
            show_default="2 in kd and kld, else 1",
        ),
    ] = None,
    l: Annotated[  # noqa: E741  the field's name for it
        int | None,
        typer.Option(
            "-l",
            min=1,
            help="Fewest distinct values of every sensitive attribute in a class.",
            show_default="2 in kld, else 1",
        ),
    ] = None,
    sa: Sensitive = "",
    id_: Id = None,
    source: Sources = None,
    hierarchy: Hierarchies = None,
    order: Orders = None,
    domain: Domains = None,
    category: Categories = None,
    missing: Markers = None,
    as_published: Annotated[  # noqa: FBT002  typer's
        bool,
        typer.Option(
            "--as-published",
            help="The paper's promise: a missing value is a value, shares have no bound.",
        ),
    ] = False,
    cost: Annotated[
        _Cost,
        typer.Option(help="Information loss to minimize; `taxonomy` publishes hierarchy labels."),
    ] = _Cost.RANGE,
    dm_weight: Annotated[
        float, typer.Option(min=0, help="Weight of the discernibility metric relative to it.")
    ] = 0.0,
    prefer_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="As many rows as possible in classes where no value has more than this share, of"
            " columns where none has more in the whole table.",
        ),
    ] = None,
    share_price: Annotated[
        float,
        typer.Option(
            min=0, help="What that may cost: GCP of a row for each column with such a value."
        ),
    ] = SHARE_PRICE,
    time_budget: Annotated[
        float, typer.Option(min=0, help="Longest search in seconds; 0: none.")
    ] = TIME_BUDGET_S,
    max_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Largest share of a class with the same value.",
            show_default=f"{SAFE_SHARE}, with -d 1: 1",
        ),
    ] = None,
    max_source_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Largest share with the same values of a whole source.",
            show_default=f"{SAFE_SOURCE_SHARE}, with -d 1: 1",
        ),
    ] = None,
    min_spread: Annotated[
        Many,
        typer.Option(
            metavar="A=X", help="Smallest distance between the ends of a number in a class."
        ),
    ] = None,
    entropy_l: Annotated[
        float,
        typer.Option(min=1, help="Smallest exp(entropy) of a sensitive attribute in a class."),
    ] = 1.0,
    t: Annotated[
        float | None,
        typer.Option(
            "--t", min=0, help="Largest distance of its distribution from the table's, 0 to 1."
        ),
    ] = None,
    bands: Bands = None,
    keep: Kept = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For cells: sensitive or kept column of the classes that a model will learn.",
        ),
    ] = None,
    label: Labels = None,
    lang: Annotated[_Lang, typer.Option(help="For kaca: language of the labels.")] = _Lang.ZH,
    measure: Annotated[
        Many,
        typer.Option(
            metavar="COLUMN",
            help="For kaca: publish its mean over each class in which k persons have a value.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
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
    r"""Publish a table in which every person is one of at least k.

    Rows are sorted by class. Numbers become \[lo-hi], categories {a|b} or a label of their
    hierarchy; sensitive values are unchanged. Columns that are not named are left out.

    kaca publishes quasi-identifiers in the form of their --label. It adds the `count` of persons of
    the class and the `mean_COLUMN` of each --measure. No two of its classes have the same labels.

    [bold]Examples[/bold]

        anonymizer anonymize people.csv -k 20 --qi age,zip,job --id name --out out.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --model kld --sa illness --out out.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --hierarchy job=jobs.csv --out out.csv

        anonymizer anonymize tolls.csv -k 5 --model kaca --qi section_id,exit_time --id plate
        --label section_id=prefix --label exit_time=hours --measure toll_money --out out.csv
    """
    require("tables", *extras_of_method(model, method), *["plots"] * (page is not None))
    from rich.console import Console

    from anonymizer.app.anonymize import Places, make_plan, write_release
    from anonymizer.app.anonymize import anonymize as run
    from anonymizer.files.tables import read_table

    if model not in MODELS:
        raise SettingsError(f"model: must be one of {', '.join(MODELS)}")
    places = Places(
        table=table,
        out=out,
        report=report,
        page=page,
        auditor_map=auditor_map,
        formulas=formulas,
    )
    forms = label_forms(label)
    declared = declared_columns(
        qi=qi,
        sa=sa,
        id_=id_,
        source=source,
        hierarchy=hierarchy,
        order=order,
        domain=domain,
        category=category,
        times=times_of(forms),
        missing=missing,
        keep=keep,
        missing_is_a_value=as_published,
    )
    plan = make_plan(
        model=model,
        method=method,
        k=k,
        d=d,
        l=l,
        max_share=max_share,
        max_source_share=max_source_share,
        min_spread=least_spreads(min_spread),
        entropy_l=entropy_l,
        t=t,
        as_published=as_published,
        cost=cost.value,
        dm_weight=dm_weight,
        prefer_share=prefer_share,
        share_price=share_price,
        time_budget_s=time_budget,
        seed=seed,
        target=target,
        labels=forms,
        language=lang.value,
        measures=measure or (),
        bands=bands_of(bands),
    )
    console = Console(stderr=True)
    with console.status("reading the table"):
        read = read_table(table, [*declared.columns, *plan.measures])
    with _progress(console, time_budget) as report_progress:
        made = run(read, declared, plan, progress=report_progress)
    write_release(made, places)
    console.print(_summary(made.report, title=str(out)))
    for warning in made.report.warnings:
        console.print(f"note: {warning}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _progress(
    console: "Console", budget_s: float
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

    size, loss = report.class_size, report.gcp
    table = Table(title=escape(title), show_header=False, box=None, title_justify="left")
    table.add_column(justify="left", no_wrap=True)
    table.add_column(justify="right")
    table.add_row("rows", f"{report.n:,}")
    table.add_row("  published", f"{report.n_published:,}")
    for reason, n in report.suppressed.items():
        table.add_row(f"  suppressed, {reason.replace('_', ' ')}", f"{n:,}")
    table.add_row("classes", f"{report.n_classes:,}")
    table.add_row(
        "  size, smallest / median / largest", f"{size.min:,} / {size.median:g} / {size.max:,}"
    )
    table.add_row("fewest persons in a class (k)", f"{report.k:,}")
    table.add_row("fewest values of a QI (d)", f"{min(qi.d for qi in report.qis)}")
    for sensitive in report.sensitive:
        table.add_row(f"fewest values of {escape(sensitive.name)} (l)", f"{sensitive.l}")
    table.add_row("largest share of a value", f"{max(qi.max_share for qi in report.qis):.1%}")
    table.add_row(f"rows with a value above {report.share:.0%}", f"{report.n_above:,}")
    table.add_row("GCP range", f"{loss.range:.4f}")
    table.add_row("GCP set", f"{loss.set:.4f}")
    table.add_row("GCP taxonomy", f"{loss.taxonomy:.4f}")
    table.add_row("DM", f"{report.dm:,}")
    if len(report.sources) > 1:
        table.add_row("values linked between sources", f"{report.n_learned(sensitive=False):,}")
    if report.sensitive:
        table.add_row("sensitive values linked", f"{report.n_learned(sensitive=True):,}")
    compiling_s = report.seconds.get("compile", 0.0)
    table.add_row("time", f"{sum(report.seconds.values()) - compiling_s:.1f} s")
    return table
