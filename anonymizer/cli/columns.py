"""Options that say what the columns of a table are."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from anonymizer.errors import SettingsError

if TYPE_CHECKING:
    from anonymizer.algorithms.records.attributes import Branch, Interval
    from anonymizer.app.anonymize.class_labels import LabelForm
    from anonymizer.files.coded_table import Declared

Many: TypeAlias = list[str] | None

Qis = Annotated[str, typer.Option("--qi", metavar="A,B", help="Quasi-identifiers.")]
Sensitive = Annotated[str, typer.Option("--sa", metavar="S,T", help="Sensitive attributes.")]
Id = Annotated[
    str | None,
    typer.Option("--id", metavar="COLUMN", help="Whose row it is: k counts these, not rows."),
]
Sources = Annotated[
    Many,
    typer.Option(
        "--source",
        metavar="A,B",
        help="Quasi-identifiers that one source tells; give one for each source.",
    ),
]
Hierarchies = Annotated[
    Many,
    typer.Option(
        "--hierarchy",
        metavar="A=FILE",
        help="Generalization hierarchy: lines of `;`, leaf first; or a FILE.json of several.",
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
    typer.Option("--category", metavar="COLUMN", help="Holds no numbers, though it looks like it."),
]
Markers = Annotated[
    Many,
    typer.Option(
        "--missing", metavar="MARKER", help="Means `no value`, as an empty cell and `?` do."
    ),
]
Bands = Annotated[
    Many,
    typer.Option(metavar="S=X:Y:Z", help="Edges of bands of a sensitive number: l counts bands."),
]
Labels = Annotated[
    Many,
    typer.Option(
        "--label",
        metavar="A=FORM",
        help="How kaca tells it: plain; prefix, what all begin with; hours, of local times.",
    ),
]
Kept = Annotated[
    Many,
    typer.Option(
        "--keep", metavar="COLUMN", help="Publish this column as it is, outside every promise."
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
    """Return what the options above say, and read the files that they name.

    Raises
    ------
    InputError, SettingsError
        If a file cannot be read, or an option makes no sense.
    """
    from anonymizer.files.coded_table import Declared
    from anonymizer.files.hierarchies import (
        read_hierarchies,
        read_hierarchy,
        read_orders,
    )

    qis, sensitive = names(qi), names(sa)
    hierarchies: dict[str, Sequence[Branch]] = {}
    for each in hierarchy or ():
        attribute, assigned, path = each.partition("=")
        if assigned and attribute in (*qis, *sensitive):
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
        orders=orders,
        ranges=dict(_intervals(domain or ())),
        categories=category or (),
        times=times,
        markers=missing or (),
        markers_are_values=missing_is_a_value,
        keep=keep or (),
    )


def names(listed: str) -> list[str]:
    """Return the names of a list with commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def label_forms(given: Many) -> dict[str, "LabelForm"]:
    """Return the form of label of each quasi-identifier that is named, as A=FORM.

    Raises
    ------
    SettingsError
        If one is something else, or a name is there twice.
    """
    forms: dict[str, LabelForm] = {"plain": "plain", "prefix": "prefix", "hours": "hours"}
    found: dict[str, LabelForm] = {}
    for each in given or ():
        name, _, form = each.rpartition("=")
        if not name or form not in forms:
            raise SettingsError(f"label: must be a name, = and one of {', '.join(forms)}")
        if name in found:
            raise SettingsError(f"label: {name} is there twice")
        found[name] = forms[form]
    return found


def times_of(forms: "Mapping[str, LabelForm]") -> list[str]:
    """Return the columns that hold times."""
    return [name for name, form in forms.items() if form == "hours"]


def assigned_numbers(option: str, given: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield the name and the numbers of each NAME=NUMBER[:NUMBER...].

    Raises
    ------
    SettingsError
        If it is something else, or a name is there twice.
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
            raise SettingsError(f"{option}: {name} is there twice")
        seen.add(name)
        yield name, parts


def bands_of(given: Many) -> dict[str, list[float]]:
    """Return the edges of the bands of each number that is named, as S=X:Y:Z.

    Raises
    ------
    SettingsError
        If one is something else.
    """
    return dict(assigned_numbers("bands", given or ()))


def least_spreads(given: Many) -> dict[str, float]:
    """Return the smallest spread of each number that is named, as A=X.

    Raises
    ------
    SettingsError
        If one is something else.
    """
    found = dict(assigned_numbers("min-spread", given or ()))
    if any(len(numbers) > 1 or not numbers[0] >= 0 for numbers in found.values()):
        raise SettingsError("min-spread: must be a name, = and a number that is not below 0")
    return {name: numbers[0] for name, numbers in found.items()}


def _intervals(given: Sequence[str]) -> Iterator[tuple[str, "Interval"]]:
    from anonymizer.algorithms.records.attributes import Interval

    for name, parts in assigned_numbers("domain", given):
        if not 2 <= len(parts) <= 3:
            raise SettingsError(f"domain: {name}: must be LO:HI or LO:HI:STEP")
        try:
            yield name, Interval(*parts)
        except ValueError as error:
            raise SettingsError(f"domain: {name}: {error}") from None
