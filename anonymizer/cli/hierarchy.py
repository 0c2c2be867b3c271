"""Command `anonymizer hierarchy`: intervals of a number, as a file that `--hierarchy` reads."""

import csv
import io
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.app.table_options import ColumnOptions
from anonymizer.cli.columns import Many, assigned_numbers, option_of
from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.files.coded_columns import Coded


def hierarchy(
    table: Annotated[Path, typer.Argument(help="csv, csv.gz or parquet.")],
    column: Annotated[str, typer.Argument(help="A column of numbers.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")],
    width: Annotated[
        str | None, typer.Option(metavar="X", help="Intervals of this width, from its multiples.")
    ] = None,
    intervals: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="N intervals of the same width.")
    ] = None,
    quantiles: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="N intervals with about the same number of rows. Their ends reveal something about"
            " the table, which no promise covers.",
        ),
    ] = None,
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

    One of --width, --intervals and --quantiles says how narrow the intervals are on the first
    level. A line of the file has a number, its intervals from narrow to wide, and `*`.

    [bold]Examples[/bold]

        anonymizer hierarchy people.csv age --width 5 --out ages.csv

        anonymizer anonymize people.csv -k 20 --qi age,job --hierarchy age=ages.csv --cost taxonomy
        --out out.csv
    """
    require("tables")
    from anonymizer.algorithms.records.generalized_values import number
    from anonymizer.algorithms.records.interval_hierarchy import branches_of
    from anonymizer.domain.records import NO_CODE
    from anonymizer.domain.spellings import NO_VALUE
    from anonymizer.files.atomic_write import FileToWrite, check_distinct, write_whole
    from anonymizer.files.coded_table import Declared, code_declared, intervals_of
    from anonymizer.files.tables import no_column, read_table

    check_distinct([out], read=[table])
    if [width, intervals, quantiles].count(None) != 2:
        raise SettingsError("hierarchy: one of width, intervals and quantiles must be given")
    ends = dict(assigned_numbers("domain", [f"{column}={domain}"] if domain else []))
    declared = Declared(qis=[column], ranges=intervals_of(ends), markers=missing or NO_VALUE)
    read = read_table(table, declared.columns)
    if column not in read.frame.columns:
        raise no_column(table, column, read.frame.columns)
    coded = code_declared(read, declared, column)
    attribute = coded.attribute
    if not attribute.numeric or attribute.written:
        raise InputError(f"{table}: column {column}: holds no numbers")
    n = attribute.size - (attribute.missing != NO_CODE)
    leaves = [number(attribute.number(code)) for code in range(n)]
    branches = branches_of(
        leaves,
        _first_level(coded, leaves, width=width, intervals=intervals, quantiles=quantiles),
        n_levels=levels,
        joined=join,
    )
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(branches)
    write_whole({out: FileToWrite(lambda file: file.write(text.getvalue().encode()))})
    typer.echo(f"{out}: {len(branches):,} numbers, {max(map(len, branches)) - 2} levels")


def _first_level(
    coded: "Coded",
    leaves: list[str],
    *,
    width: str | None,
    intervals: int | None,
    quantiles: int | None,
) -> list[int]:
    """Return the interval of each number on the first level."""
    import numpy as np

    from anonymizer.algorithms.records import interval_hierarchy as made

    values = [Decimal(leaf) for leaf in leaves]
    if quantiles is not None:
        times = np.bincount(coded.code[coded.code >= 0], minlength=coded.attribute.size)
        return made.by_quantiles(times[: len(leaves)].tolist(), quantiles)
    if intervals is not None:
        return made.by_number(values, intervals)
    try:
        wide = Decimal(width or "")
    except InvalidOperation:
        wide = Decimal(0)
    if not (wide.is_finite() and wide > 0):
        raise SettingsError("width: must be a number above 0")
    return made.by_width(values, wide)
