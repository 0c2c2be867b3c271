"""Command `anonymizer hierarchy`: intervals of a number, as a file that `--hierarchy` reads."""

import csv
import io
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.app.table_options import ColumnOptions
from anonymizer.cli.columns import Many, assigned_numbers, option_of
from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import require


def hierarchy(
    table: Annotated[Path, typer.Argument(help="csv, csv.gz or parquet.")],
    column: Annotated[str, typer.Argument(help="A column of numbers.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")],
    width: Annotated[str, typer.Option(metavar="X", help="Of the intervals, from its multiples.")],
    levels: Annotated[int, typer.Option(min=1, help="Levels of intervals below `*`.")] = 3,
    join: Annotated[
        int, typer.Option(min=2, help="How many intervals are one on the next level.")
    ] = 2,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="LO:HI[:STEP]", help="All numbers that may occur; otherwise those of the table."
        ),
    ] = None,
    missing: Annotated[Many, option_of(ColumnOptions, "missing")] = None,
) -> None:
    """Write a generalization hierarchy of a column of numbers.

    A line of the file has a number, its intervals from narrow to wide, and `*`.

    [bold]Examples[/bold]

        anonymizer hierarchy people.csv age --width 5 --out ages.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --hierarchy age=ages.csv --cost taxonomy
        --out out.csv
    """
    require("tables")
    from anonymizer.algorithms.records.generalized_values import number
    from anonymizer.algorithms.records.interval_hierarchy import branches_of, by_width
    from anonymizer.domain.records import NO_CODE
    from anonymizer.domain.spellings import NO_VALUE
    from anonymizer.files.atomic_write import check_distinct, of_content, write_whole
    from anonymizer.files.coded_table import Declared, code_declared, intervals_of
    from anonymizer.files.tables import no_column, read_table

    check_distinct([out], read=[table])
    try:
        wide = Decimal(width)
    except InvalidOperation:
        wide = Decimal(0)
    if not (wide.is_finite() and wide > 0):
        raise SettingsError("width: must be a number above 0")
    ends = dict(assigned_numbers("domain", [f"{column}={domain}"] if domain else []))
    declared = Declared(qis=[column], ranges=intervals_of(ends), markers=missing or NO_VALUE)
    read = read_table(table, declared.columns)
    if column not in read.frame.columns:
        raise no_column(table, column, read.frame.columns)
    attribute = code_declared(read, declared, column).attribute
    if not attribute.numeric or attribute.written:
        raise InputError(f"{table}: column {column}: holds no numbers")
    n = attribute.size - (attribute.missing != NO_CODE)
    leaves = [number(attribute.number(code)) for code in range(n)]
    branches = branches_of(
        leaves,
        by_width(list(map(Decimal, leaves)), wide),
        n_levels=levels,
        joined=join,
    )
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(branches)
    write_whole({out: of_content(text.getvalue())})
    typer.echo(f"{out}: {len(branches):,} numbers, {max(map(len, branches)) - 2} levels")
