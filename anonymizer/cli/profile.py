"""Command `anonymizer profile`: which columns name people, and what hiding them would cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from anonymizer.app.table_options import AT_RISK, ColumnOptions
from anonymizer.cli.audit import write_json
from anonymizer.cli.columns import Many, names, option_of
from anonymizer.cli.terminal import Terminal
from anonymizer.errors import InputError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.app.table_profile import Price, ProfileReport


def profile(
    table: Annotated[Path, typer.Argument(help="csv, csv.gz or parquet.")],
    qi: Annotated[str, option_of(ColumnOptions, "qi")] = "",
    sa: Annotated[str, option_of(ColumnOptions, "sa")] = "",
    id_: Annotated[str | None, option_of(ColumnOptions, "id")] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=2,
            help="Also say what a release with classes of k persons would lose, and what d, l, t, "
            "rows left out and weights would change.",
        ),
    ] = None,
    sampled: Annotated[
        float,
        typer.Option(
            min=0.0001, max=0.9999, help="Share of the population that the table is, for DIS-SUDA."
        ),
    ] = 0.1,
    at_risk: Annotated[
        float, typer.Option(min=0, max=1, help="Count the rows whose risk is larger.")
    ] = AT_RISK,
    missing: Annotated[Many, option_of(ColumnOptions, "missing")] = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="File for the profile as JSON; -: print it.")
    ] = None,
) -> None:
    """Say which columns of a table name people, before it is anonymized.

    Without --qi, all columns are examined except the sensitive ones and the identifier. Prices are
    those of the method mondrian, which is quick; best loses less.

    [bold]Example[/bold]

        anonymizer profile people.csv --id name --sa illness -k 20
    """
    require("tables")
    from anonymizer.app.table_profile import profile as profile_of
    from anonymizer.domain.spellings import NO_VALUE
    from anonymizer.files.atomic_write import check_distinct
    from anonymizer.files.coded_table import Declared
    from anonymizer.files.tables import read_table

    check_distinct([json_out], read=[table])
    read = read_table(table)
    sensitive = names(sa)
    asked = names(qi) or [name for name in read.frame.columns if name not in {*sensitive, id_}]
    if not asked:
        raise InputError(f"{table}: has no column to look at")
    declared = Declared(qis=asked, sensitive=sensitive, id=id_, markers=missing or NO_VALUE)
    console = Terminal(stderr=True)
    if k is not None:
        console.print(
            f"{table}: looking at {len(asked):,} columns, then at what classes of {k:,} lose; "
            "fewer columns (--qi) take less time",
            markup=False,
            soft_wrap=True,
        )
    with console.status("looking at columns") as status:
        found = profile_of(
            read,
            declared,
            sampled=sampled,
            at_risk=at_risk,
            k=k,
            chosen=bool(qi),
            progress=lambda words: status.update(f"forming classes: {words}"),
        )
    beside = write_json(found.model_dump_json(indent=2) + "\n", json_out)
    beside.print(*_tables(found, str(table)), sep="\n")


def _tables(found: "ProfileReport", title: str) -> list[Table]:
    columns = Table(
        Column("column", no_wrap=True),
        Column("values", justify="right"),
        Column("tells apart", justify="right"),
        Column("seems to be", no_wrap=True),
        "because",
        title=escape(title),
    )
    for each in found.columns:
        columns.add_row(
            escape(each.name),
            f"{each.n_distinct:,}",
            f"{each.separation:.1%}",
            each.suggestion,
            escape(each.why),
        )
    for name in found.not_read:
        columns.add_row(escape(name), "", "", "not read", "it holds lists, maps or structures")
    together = Table(title=escape(f"together: {', '.join(found.together)}"), show_header=False)
    together.add_row("rows", f"{found.n_rows:,}")
    together.add_row("unique rows", f"{found.share_unique:.1%}")
    together.add_row("risk of a row, average", f"{found.risk_average:.1%}")
    together.add_row("rows at risk", f"{found.share_at_risk:.1%}")
    together.add_row(
        f"DIS-SUDA, {found.sampled:g} of the population",
        f"highest {found.dis_highest:.3f}, average {found.dis_average:.4f}",
    )
    if not found.prices:
        return [columns, together]
    prices = Table("asked", *(Column(name, justify="right") for name in _PRICED), title="prices")
    for price in found.prices:
        if price.why_not is not None:
            prices.add_row(escape(price.asked), escape(price.why_not))
            continue
        prices.add_row(
            escape(price.asked + _bought(price, found.prices[0])),
            f"{price.gcp:.3f}",
            f"{price.suppressed_share:.1%}",
            f"{price.n_classes:,}",
            f"{price.risk_average:.2%}",
            "" if price.t is None else f"{price.t:.2f}",
        )
    return [columns, together, prices]


def _bought(price: "Price", plain: "Price") -> str:
    """Say how the loss of the column changes that a weight is for."""
    name = price.weighted
    if name is None or name not in plain.ncp:
        return ""
    return f": its loss {plain.ncp[name]:.3f} to {price.ncp[name]:.3f}"


_PRICED = ("GCP", "left out", "classes", "average risk", "t")
