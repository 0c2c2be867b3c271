"""Options of a table on the command line: derived from `anonymizer.app.table_options`, and parsed.

A command that is decorated with `takes_options` has an option for each field of a class of options,
with its name, help, default and limits, and gets an object of the class.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import partial, wraps
from inspect import Parameter, signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from anonymizer.app.table_options import Hierarchy, Option, Options, kinds_of
from anonymizer.cli.completion import method_names, model_names
from anonymizer.domain.criteria.registry import BY_NAME
from anonymizer.errors import SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    from typer.models import OptionInfo

    from anonymizer.app.table_options import LabelForm

Many: TypeAlias = list[str] | None


def takes_options(
    model: type[Options], *, order: str = "", without: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a class, in place of its parameter `options`.

    Parameters
    ----------
    order
        Names of parameters and fields in the order of help. `...` stands for the other fields;
        the other parameters are last.
    without
        Names of fields that keep their defaults.
    """

    def derived(command: Callable[..., None]) -> Callable[..., None]:
        own = {each.name: each for each in signature(command).parameters.values()}
        del own["options"]
        kinds = kinds_of(model)
        asked = {each.name: each for each in fields(model) if each.name not in without.split()}
        first, _, last = (part.split() for part in order.partition("..."))
        others = [name for name in asked if name not in last]
        names = dict.fromkeys([*first, *others, *last, *own])
        parameters = [
            own[name].replace(kind=Parameter.KEYWORD_ONLY)
            if name in own
            else _parameter(asked[name], *kinds[name])
            for name in names
        ]

        @wraps(command)
        def parsed(**given: Any) -> None:  # noqa: ANN401  of any option
            require("tables")
            rest = {name: given.pop(name) for name in own}
            command(**rest, options=model(**values_of(given)))

        # What typer reads.
        parsed.__dict__["__signature__"] = signature(command).replace(parameters=parameters)
        parsed.__annotations__ = {each.name: each.annotation for each in parameters}
        return parsed

    return derived


def option_of(model: type[Options], name: str) -> "OptionInfo":
    """Return the option of a command that stands for a field."""
    _, known = kinds_of(model)[name]
    return _option(name, known)


def _option(name: str, known: Option) -> "OptionInfo":
    flag = known.flag or f"--{name.replace('_', '-')}"
    made: OptionInfo = typer.Option(
        *flag.split(),
        help=known.help.replace("[", r"\["),
        metavar=known.metavar,
        show_default=known.shown or True,
        autocompletion=_completed(name, known),
        min=None if name in _PARSERS else known.least,
        max=known.most if isfinite(known.most) else None,
    )
    return made


def _completed(name: str, known: Option) -> Callable[[], list[str]] | None:
    """Return what tells a shell the values of an option, if there are few."""
    if name in _NAMES_OF:
        return _NAMES_OF[name]
    return (lambda: list(known.choices)) if known.choices else None


def _parameter(field: "Field[Any]", kind: Any, known: Option) -> Parameter:  # noqa: ANN401  any type
    default = field.default
    if field.name in _PARSERS:
        kind, default = _GIVEN.get(field.name, list[str]), None
    if field.default is MISSING:
        default = Parameter.empty
    made = _option(field.name, known)
    return Parameter(
        field.name,
        Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind | None if default is None else kind, made],
    )


def values_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options by field, parsed; read the files that they name.

    Raises `InputError` or `SettingsError` if a file cannot be read, or an option has another form.
    """
    values = {n: _PARSERS[n](value) if n in _PARSERS else value for n, value in given.items()}
    if "hierarchies" in values:
        roles = (*values.get("qi", ()), *values.get("sa", ()))
        values["hierarchies"] = _hierarchies(values["hierarchies"], roles)
    return values


def _several(given: Many) -> Sequence[str]:
    return given or ()


def _hierarchies(given: Sequence[str], roles: Sequence[str]) -> dict[str, Hierarchy]:
    from anonymizer.algorithms.records.time_columns import calendar_levels
    from anonymizer.files.hierarchies import read_trees

    calendars: dict[str, Hierarchy] = {}
    others: dict[str, Hierarchy] = {}
    for each in given:
        attribute, assigned, path = each.partition("=")
        if assigned and calendar_levels(path) is not None:
            calendars[attribute] = path
        elif assigned and attribute in roles:
            others[attribute] = path
        elif each.lower().endswith(".json"):
            others |= read_trees(each)
        else:
            raise SettingsError("hierarchy: must be ATTRIBUTE=FILE, or a FILE.json of several")
    if both := [name for name in calendars if name in others]:
        raise SettingsError(f"{both[0]}: a calendar is the hierarchy of dates and times alone")
    return calendars | others


def _orders(given: Sequence[Path] | None) -> dict[str, Sequence[str]]:
    from anonymizer.files.hierarchies import read_orders

    orders: dict[str, Sequence[str]] = {}
    for path in given or ():
        orders |= read_orders(path)
    return orders


_HIDDEN_BREAKS = {ord("\n"): "\ue000", ord("\r"): "\ue001"}
_SHOWN_BREAKS = {ord(hidden): chr(mark) for mark, hidden in _HIDDEN_BREAKS.items()}


def names(listed: str) -> list[str]:
    """Return the names in a comma-separated list; one that has a comma stands in double quotes."""
    # Line breaks are of a name, as in headings of spreadsheets, and end no row.
    rows = csv.reader([listed.translate(_HIDDEN_BREAKS)], skipinitialspace=True)
    shown = [name.translate(_SHOWN_BREAKS).strip() for row in rows for name in row]
    return [name for name in shown if name]


def _all_names(given: Many) -> list[str]:
    return [name for listed in given or () for name in names(listed)]


def label_forms(given: Many) -> dict[str, "LabelForm"]:
    """Return the label form of each named quasi-identifier, given as A=FORM.

    Raises `SettingsError` if an option has another form, or a name is given twice.
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


def assigned_numbers(option: str, given: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield the name and the numbers of each NAME=NUMBER[:NUMBER...].

    Raises `SettingsError` if an option has another form, or a name is given twice.
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

    Raises `SettingsError` if an option has another form.
    """
    return dict(assigned_numbers("bands", given or ()))


def numbers_of(option: str, given: Many) -> dict[str, float]:
    """Return the number that an option gives each name, as A=X.

    Raises `SettingsError` if an option has another form.
    """
    found = dict(assigned_numbers(option, given or ()))
    if any(len(numbers) > 1 or not numbers[0] >= 0 for numbers in found.values()):
        raise SettingsError(f"{option}: must be a name, = and a number of at least 0")
    return {name: numbers[0] for name, numbers in found.items()}


def reasons_of(given: Many) -> dict[str, str]:
    """Return the reason for each named column, given as COLUMN=REASON.

    Raises `SettingsError` if an option has another form.
    """
    found = {}
    for each in given or ():
        name, _, reason = (part.strip() for part in each.partition("="))
        if not name or not reason:
            raise SettingsError("keep-anyway: must be a column, = and a reason")
        found[name] = reason
    return found


_NAMES_OF = {"method": method_names, "model": model_names}
"""By field: the values that depend on others, or of which an option takes several."""
_GIVEN: Mapping[str, Any] = {"orders": list[Path]}
"""By field: what its option is given, if not a list of texts."""
_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "qi": _all_names,
    "sa": _all_names,
    "sources": lambda given: [names(each) for each in given or ()],
    "hierarchies": _several,
    "orders": _orders,
    "domains": lambda given: dict(assigned_numbers("domain", given or ())),
    "categories": _several,
    "missing": _several,
    "exact": _several,
    "bands": bands_of,
    "keep": _several,
    "labels": label_forms,
    "measures": _several,
    "keep_anyway": reasons_of,
    "weights": lambda given: numbers_of("weight", given),
    **{each.name: partial(numbers_of, each.name.replace("_", "-")) for each in BY_NAME},
}
"""By field: makes its value of what its option was given. Of other fields, that is the value."""
