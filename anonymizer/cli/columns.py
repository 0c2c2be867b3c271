"""Command-line options that declare the columns of a table, and their parsing."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from anonymizer.errors import SettingsError

if TYPE_CHECKING:
    from anonymizer.algorithms.records.attributes import Branch
    from anonymizer.app.anonymize.class_labels import LabelForm
    from anonymizer.files.coded_table import Declared
    from anonymizer.files.time_columns import Level

Many: TypeAlias = list[str] | None

Qis = Annotated[
    str,
    typer.Option(
        "--qi",
        metavar="A,B",
        help="Quasi-identifiers. A name with a comma stands in quotes: 'age,\"name, first\"'.",
    ),
]
Sensitive = Annotated[str, typer.Option("--sa", metavar="S,T", help="Sensitive attributes.")]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", help="Column that identifies the person; k counts persons."
    ),
]
Sources = Annotated[
    Many,
    typer.Option(
        "--source",
        metavar="A,B",
        help="Quasi-identifiers of one source; repeat the option for each source.",
    ),
]
Hierarchies = Annotated[
    Many,
    typer.Option(
        "--hierarchy",
        metavar="A=FILE",
        help="Generalization hierarchy: lines separated by `;`, leaf first; or a FILE.json of"
        " several; or `year-month-day-hour`, or some of these, for dates and times.",
    ),
]
Orders = Annotated[
    list[Path] | None,
    typer.Option("--order", metavar="FILE", help="JSON: {attribute: [categories in order]}."),
]
Domains = Annotated[
    Many,
    typer.Option(
        "--domain", metavar="A=LO:HI[:STEP]", help="Domain of a number, such as age=17:90."
    ),
]
Categories = Annotated[
    Many,
    typer.Option(
        "--category", metavar="COLUMN", help="Column of categories that look like numbers."
    ),
]
Markers = Annotated[
    Many,
    typer.Option(
        "--missing",
        metavar="MARKER",
        help="Text that means `no value`, like an empty cell or `?`.",
        show_default="NA, N/A, NaN, null, None, -, inf and their spellings",
    ),
]
Bands = Annotated[
    Many,
    typer.Option(
        metavar="S=X:Y:Z", help="Edges of bands of a sensitive number; l then counts bands."
    ),
]
Labels = Annotated[
    Many,
    typer.Option(
        "--label",
        metavar="A=FORM",
        help="Form of the label with kaca: plain; prefix (the common one); hours (of local times).",
    ),
]
Kept = Annotated[
    Many,
    typer.Option(
        "--keep", metavar="COLUMN", help="Publish this column unchanged; no promise covers it."
    ),
]


def declared_columns(
    *,
    qi: str,
    sa: str = "",
    id_: str | None = None,
    source: Many = None,
    hierarchy: Many = None,
    order: Sequence[Path] | None = None,
    domain: Many = None,
    category: Many = None,
    times: Sequence[str] = (),
    missing: Many = None,
    keep: Many = None,
    missing_is_a_value: bool = False,
) -> "Declared":
    """Return the declaration given by the options above; read the files that they name.

    Raises
    ------
    InputError, SettingsError
        If a file cannot be read, or an option is invalid.
    """
    from anonymizer.files.coded_columns import DEFAULT_MARKERS
    from anonymizer.files.coded_table import Declared, intervals_of
    from anonymizer.files.hierarchies import (
        read_hierarchies,
        read_hierarchy,
        read_orders,
    )
    from anonymizer.files.time_columns import calendar_levels

    qis, sensitive = names(qi), names(sa)
    hierarchies: dict[str, Sequence[Branch]] = {}
    calendars: dict[str, Sequence[Level]] = {}
    for each in hierarchy or ():
        attribute, assigned, path = each.partition("=")
        if assigned and (levels := calendar_levels(path)) is not None:
            calendars[attribute] = levels
        elif assigned and attribute in (*qis, *sensitive):
            hierarchies[attribute] = read_hierarchy(path)
        elif each.lower().endswith(".json"):
            hierarchies |= read_hierarchies(each)
        else:
            raise SettingsError("hierarchy: must be ATTRIBUTE=FILE, or a FILE.json of several")
    orders: dict[str, Sequence[str]] = {}
    for path_ in order or ():
        orders |= read_orders(path_)
    return Declared(
        qis=qis,
        sensitive=sensitive,
        id=id_,
        sources=[names(each) for each in source or ()],
        hierarchies=hierarchies,
        calendars=calendars,
        orders=orders,
        ranges=intervals_of(dict(assigned_numbers("domain", domain or ()))),
        categories=category or (),
        times=times,
        markers=missing or DEFAULT_MARKERS,
        markers_are_values=missing_is_a_value,
        keep=keep or (),
    )


def names(listed: str) -> list[str]:
    """Return the names in a comma-separated list; one that has a comma stands in double quotes."""
    rows = csv.reader([listed], skipinitialspace=True)
    return [name.strip() for row in rows for name in row if name.strip()]


def label_forms(given: Many) -> dict[str, "LabelForm"]:
    """Return the label form of each named quasi-identifier, given as A=FORM.

    Raises
    ------
    SettingsError
        If an option has another form, or a name is given twice.
    """
    forms: dict[str, LabelForm] = {"plain": "plain", "prefix": "prefix", "hours": "hours"}
    found: dict[str, LabelForm] = {}
    for each in given or ():
        name, _, form = each.rpartition("=")
        if not name or form not in forms:
            raise SettingsError(f"label: must be a name, = and one of {', '.join(forms)}")
        if name in found:
            raise SettingsError(f"label: {name} is given twice")
        found[name] = forms[form]
    return found


def times_of(forms: "Mapping[str, LabelForm]") -> list[str]:
    """Return the columns of times."""
    return [name for name, form in forms.items() if form == "hours"]


def assigned_numbers(option: str, given: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield the name and the numbers of each NAME=NUMBER[:NUMBER...].

    Raises
    ------
    SettingsError
        If an option has another form, or a name is given twice.
    """
    seen = set()
    for each in given:
        name, _, numbers = each.rpartition("=")
        try:
            parts = [float(part) for part in numbers.split(":")]
        except ValueError:
            parts = []
        if not name or not parts:
            raise SettingsError(f"{option}: must be a name, = and numbers")
        if name in seen:
            raise SettingsError(f"{option}: {name} is given twice")
        seen.add(name)
        yield name, parts


def bands_of(given: Many) -> dict[str, list[float]]:
    """Return the edges of the bands of each named number, given as S=X:Y:Z.

    Raises
    ------
    SettingsError
        If an option has another form.
    """
    return dict(assigned_numbers("bands", given or ()))


def least_spreads(given: Many) -> dict[str, float]:
    """Return the smallest spread of each named number, given as A=X.

    Raises
    ------
    SettingsError
        If an option has another form.
    """
    found = dict(assigned_numbers("min-spread", given or ()))
    if any(len(numbers) > 1 or not numbers[0] >= 0 for numbers in found.values()):
        raise SettingsError("min-spread: must be a name, = and a number of at least 0")
    return {name: numbers[0] for name, numbers in found.items()}
