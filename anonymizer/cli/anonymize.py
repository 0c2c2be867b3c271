"""`anonymizer anonymize`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from anonymizer.domain.promises import SAFE_SHARE, SAFE_SOURCE_SHARE, Promise, bounded_shares
from anonymizer.errors import SettingsError

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
    table: Annotated[Path, typer.Argument(help="csv, csv.gz (`,` or `;` between) or parquet.")],
    qi: Qis,
    out: Annotated[Path, typer.Option(help="The release: csv, csv.gz or parquet.")],
    k: Annotated[int, typer.Option("-k", min=2, help="Distinct persons of a class, at least.")],
    model: Annotated[
        str,
        typer.Option(help="kd; kld, for sensitive attributes too; kaca, by clusters; or cells."),
    ] = "kd",
    method: Annotated[
        str | None,
        typer.Option(
            help="How classes are formed: best, hilbert (as in the paper) or mondrian; "
            "of kaca fast or kmeans (as published).",
            show_default="best, fast, tree",
        ),
    ] = None,
    d: Annotated[
        int | None,
        typer.Option(
            "-d",
            min=1,
            help="Distinct values of every quasi-identifier.",
            show_default="2 in kd and kld, else 1",
        ),
    ] = None,
    l: Annotated[  # noqa: E741  the field's name for it
        int | None,
        typer.Option(
            "-l",
            min=1,
            help="Distinct values of every sensitive attribute.",
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
        typer.Option(help="Information loss to keep low; `taxonomy` publishes hierarchy labels."),
    ] = _Cost.RANGE,
    dm_weight: Annotated[
        float, typer.Option(min=0, help="What the discernibility of classes counts beside it.")
    ] = 0.0,
    time_budget: Annotated[
        float, typer.Option(min=0, help="Seconds that a method may search.")
    ] = 20.0,
    max_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of a class that may have one value.",
            show_default=f"{SAFE_SHARE}, with -d 1: 1",
        ),
    ] = None,
    max_source_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share that may have all values of one source in common.",
            show_default=f"{SAFE_SOURCE_SHARE}, with -d 1: 1",
        ),
    ] = None,
    min_spread: Annotated[
        Many,
        typer.Option(metavar="A=X", help="Distance of the ends of a number in a class, at least."),
    ] = None,
    entropy_l: Annotated[
        float, typer.Option(min=1, help="exp(entropy) of a sensitive attribute, at least.")
    ] = 1.0,
    t: Annotated[
        float | None,
        typer.Option(
            "--t", min=0, help="Distance of its distribution from the table's, 0 to 1, at most."
        ),
    ] = None,
    bands: Bands = None,
    keep: Kept = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="For cells: the classes that a model is to learn, sensitive or kept.",
        ),
    ] = None,
    label: Labels = None,
    lang: Annotated[_Lang, typer.Option(help="Language of the labels of kaca.")] = _Lang.ZH,
    measure: Annotated[
        Many,
        typer.Option(
            metavar="COLUMN",
            help="For kaca: publish its mean over each class, where k persons have one.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For what a method leaves to chance.")] = 0,
    report: Annotated[Path | None, typer.Option(help="The figures, as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(help="The figures and plots, as HTML.")] = None,
    auditor_map: Annotated[
        Path | None,
        typer.Option(help="Which row became which, as csv. For the auditor alone."),
    ] = None,
) -> None:
    r"""Publish a table in which every person hides among at least k.

    Rows come out sorted by class, numbers as \[lo-hi], categories as {a|b} or by their hierarchy,
    sensitive values as they are. Columns that are not named are left out.

    kaca tells quasi-identifiers by their --label, and beside each row the `count` of persons of
    its class and `mean_COLUMN` of each --measure. No two of its classes are told alike.

    [bold]Examples[/bold]

        anonymizer anonymize people.csv -k 20 --qi age,zip,job --id name --out out.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --model kld --sa illness --out out.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --hierarchy job=jobs.csv --out out.csv

        anonymizer anonymize tolls.csv -k 5 --model kaca --qi section_id,exit_time --id plate
        --label section_id=prefix --label exit_time=hours --measure toll_money --out out.csv
    """
    from rich.console import Console

    from anonymizer.app.anonymize import MODELS, Places, Plan, write_release
    from anonymizer.app.anonymize import anonymize as run
    from anonymizer.files.tables import read_table

    if model not in MODELS:
        raise SettingsError(f"model: must be one of {', '.join(MODELS)}")
    places = Places(table=table, out=out, report=report, page=page, auditor_map=auditor_map)
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
    chosen = MODELS[model]
    d = chosen.d if d is None else d
    shares = bounded_shares(1 if as_published else d, max_share, max_source_share)
    promise = Promise(
        k=k,
        d=d,
        l=chosen.l if l is None else l,
        max_share=shares[0],
        max_source_share=shares[1],
        min_spread=least_spreads(min_spread),
        entropy_l=entropy_l,
        t=float("inf") if t is None else t,
    )
    plan = Plan(
        model=model,
        method=chosen.default_method if method is None else method,
        promise=promise,
        cost=cost.value,
        dm_weight=dm_weight,
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
    with _progress(console, time_budget) as tell:
        made = run(read, declared, plan, progress=tell)
    write_release(made, places)
    console.print(_summary(made.report, title=str(out)))
    for warning in made.report.warnings:
        console.print(f"note: {warning}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _progress(
    console: "Console", budget_s: float
) -> Iterator[Callable[[str, float, float | None], None]]:
    """Yield what shows the step, the part of the time budget that is used, and the loss so far."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=budget_s or None, loss="")

        def tell(step: str, used_s: float, loss: float | None) -> None:
            shown = "" if loss is None else f"loss {loss:.4f}"
            part = min(used_s, budget_s) if step == "partition" else None
            bar.update(task, description=step, completed=part, loss=shown)

        yield tell


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
    table.add_row("  size, least / median / most", f"{size.min:,} / {size.median:g} / {size.max:,}")
    table.add_row("least persons of a class (k)", f"{report.k:,}")
    table.add_row("least values of a QI (d)", f"{min(qi.d for qi in report.qis)}")
    for sensitive in report.sensitive:
        table.add_row(f"least values of {escape(sensitive.name)} (l)", f"{sensitive.l}")
    table.add_row("largest share of a value", f"{max(qi.max_share for qi in report.qis):.1%}")
    table.add_row("GCP range", f"{loss.range:.4f}")
    table.add_row("GCP set", f"{loss.set:.4f}")
    table.add_row("GCP taxonomy", f"{loss.taxonomy:.4f}")
    table.add_row("DM", f"{report.dm:,}")
    table.add_row("values linked between sources", f"{report.n_learned(sensitive=False):,}")
    table.add_row("sensitive values linked", f"{report.n_learned(sensitive=True):,}")
    table.add_row("time", f"{sum(report.seconds.values()):.1f} s")
    return table
