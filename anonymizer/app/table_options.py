"""Options of a table: each one's type, default, help and limits, stated once.

The command line derives its options from these classes (`anonymizer.cli.columns`), the public
functions take them as keywords (`anonymizer.api.keywords`), and both make one object that is
checked here. Cheap to import: every command loads this file.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from math import inf
from operator import index
from os import PathLike
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from anonymizer.algorithms.models.registry import LABELLED, LEARNING, MODELS, USUAL, named, told
from anonymizer.algorithms.records.methods import SHARE_PRICE, TIME_BUDGET_S
from anonymizer.domain.criteria.criterion import ClassCriterion
from anonymizer.domain.criteria.registry import FURTHER, with_fields
from anonymizer.errors import SettingsError

Names: TypeAlias = str | Sequence[str]
"""Column names; a text is one name."""
Hierarchy: TypeAlias = str | PathLike[str] | Mapping[str, Any]
"""A file of lines `leaf;...;root`, or `{group: [leaves] or groups}`; or levels of a calendar."""
LabelForm: TypeAlias = Literal["plain", "prefix", "hours"]
LanguageName: TypeAlias = Literal["zh", "en"]
CostName: TypeAlias = Literal["range", "set", "taxonomy"]


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of an option apart from its name, type and default."""

    help: str
    """One or two sentences."""
    flag: str | None = None
    metavar: str | None = None
    shown: str | None = None
    """`flag`, `metavar`, `shown`: on the command line: its names, separated by a space; what stands
    for its value; and what help says of the default. None: made of the name, the type, the
    default."""
    least: float | None = None
    most: float = inf
    """`least`, `most`: limits of a number, and of each number of a mapping."""
    choices: Sequence[str] = ()
    """Texts that it may be, unless the type says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options that are checked when they are made.

    Raises `SettingsError` if a number is out of its range, or a text is none of the choices.
    """

    def __post_init__(self) -> None:
        kinds = kinds_of(type(self))
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None or each.default is not None:
                checked = _checked(each.name, value, *kinds[each.name])
                object.__setattr__(self, each.name, checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions(Options):
    """What the columns of a table are."""

    qi: Annotated[
        Names,
        Option(
            "Quasi-identifiers. A name with a comma stands in quotes: 'age,\"name, first\"'.",
            metavar="A,B",
        ),
    ]
    sa: Annotated[Names, Option("Sensitive attributes.", metavar="S,T")] = ()
    id: Annotated[
        str | None, Option("Column that identifies the person; k counts persons.", metavar="COLUMN")
    ] = None
    sources: Annotated[
        Sequence[Sequence[str]],
        Option(
            "Quasi-identifiers of one source; repeat the option for each source.",
            flag="--source",
            metavar="A,B",
        ),
    ] = ()
    hierarchies: Annotated[
        Mapping[str, Hierarchy] | None,
        Option(
            "Generalization hierarchy: lines separated by `;`, leaf first; or a FILE.json of"
            " several; or `year-month-day-hour`, or some of these, for dates and times.",
            flag="--hierarchy",
            metavar="A=FILE",
        ),
    ] = None
    orders: Annotated[
        Mapping[str, Sequence[str]] | None,
        Option("JSON: {attribute: [categories in order]}.", flag="--order", metavar="FILE"),
    ] = None
    domains: Annotated[
        Mapping[str, Sequence[float]] | None,
        Option("Domain of a number, such as age=17:90.", flag="--domain", metavar="A=LO:HI[:STEP]"),
    ] = None
    categories: Annotated[
        Names,
        Option("Column of categories that look like numbers.", flag="--category", metavar="COLUMN"),
    ] = ()
    labels: Annotated[
        Mapping[str, LabelForm] | None,
        Option(
            f"Form of the label with {LABELLED}: plain; prefix (the common one); hours (of local"
            " times).",
            flag="--label",
            metavar="A=FORM",
        ),
    ] = None
    missing: Annotated[
        Names,
        Option(
            "Text that means `no value`, like an empty cell or `?`.",
            metavar="MARKER",
            shown="the words of usual programs: NA, #N/A, NULL, NaN, NaT, None, \\N, ., -, inf ...",
        ),
    ] = ()
    exact: Annotated[
        Names,
        Option(
            "Take this column as it is written: otherwise writings of one value count as one"
            " (case, blanks, Unicode, true and false, numbers, dates).",
            metavar="COLUMN",
        ),
    ] = ()
    as_published: Annotated[
        bool,
        Option("As in the paper: a missing value counts as a value, and shares have no bound."),
    ] = False
    bands: Annotated[
        Mapping[str, Sequence[float]] | None,
        Option("Edges of bands of a sensitive number; l then counts bands.", metavar="S=X:Y:Z"),
    ] = None
    keep: Annotated[
        Names,
        Option("Publish this column unchanged; no promise covers it.", metavar="COLUMN"),
    ] = ()
    measures: Annotated[
        Names,
        Option(
            "Publish the mean of this column over each class in which k persons have a value; for a"
            " quasi-identifier, in place of its range.",
            flag="--measure",
            metavar="COLUMN",
        ),
    ] = ()


def _criteria(*, of_audit: bool) -> Mapping[str, tuple[Any, Any]]:
    """Return an option for each criterion of a class besides k, d and l, with its default."""
    return {each.name: _of_criterion(each, of_audit=of_audit) for each in FURTHER}


def _of_criterion(each: ClassCriterion, *, of_audit: bool) -> tuple[Any, Any]:
    kind: Any = Mapping[str, float] if each.per_attribute else float
    is_stated = not each.per_attribute and (not each.unstated or (of_audit and each.safe))
    default = each.neutral if is_stated else None
    option = Option(
        each.meaning,
        metavar="A=X" if each.per_attribute else None,
        shown=None if is_stated else each.unstated or None,
        least=each.least,
        most=each.most,
    )
    return Annotated[kind if is_stated else kind | None, option], default


@with_fields(lambda: _criteria(of_audit=False))
@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(ColumnOptions):
    """How a table is anonymized; None: the default of the model, no goal or no limit."""

    k: Annotated[int, Option("Fewest distinct persons in a class.", flag="-k", least=2)]
    model: Annotated[
        str,
        Option(
            "; ".join(f"{each.name}: {each.heading}" for each in MODELS.values()) + ".",
            choices=tuple(MODELS),
        ),
    ] = USUAL
    method: Annotated[
        str | None,
        Option(
            told(lambda each: f"{', '.join(each.methods)}.")
            + " hilbert and kmeans are as published, printed as listed; sighted sees all values.",
            shown="the first; hilbert if the time budget is too short for best",
        ),
    ] = None
    d: Annotated[
        int | None,
        Option(
            "Fewest distinct values of every quasi-identifier in a class.",
            flag="-d",
            shown=f"2 in {named(lambda each: each.d == 2)}, else 1",
            least=1,
        ),
    ] = None
    l: Annotated[  # noqa: E741  the field's name for it
        int | None,
        Option(
            "Fewest distinct values of every sensitive attribute in a class.",
            flag="-l",
            shown=f"2 in {named(lambda each: each.l == 2)}, else 1",
            least=1,
        ),
    ] = None
    k_extra: Annotated[
        int,
        Option(
            "So many people of a class may be made up by an adversary: without any of them, the "
            "others meet every criterion. A class has so many more people and, where d is 2 or "
            "more, values.",
            least=0,
        ),
    ] = 0
    cost: Annotated[
        CostName, Option("Information loss to minimize; `taxonomy` publishes hierarchy labels.")
    ] = "range"
    dm_weight: Annotated[
        float, Option("Weight of the discernibility metric, relative to --cost.", least=0)
    ] = 0.0
    prefer_share: Annotated[
        float | None,
        Option(
            "Put as many rows as possible into classes in which no value has more than this share."
            " Columns in which a value has more in the whole table are ignored.",
            least=0,
            most=1,
        ),
    ] = None
    share_price: Annotated[
        float,
        Option(
            "What --prefer-share may cost, as GCP of a row, for each column that exceeds it.",
            least=0,
        ),
    ] = SHARE_PRICE
    weights: Annotated[
        Mapping[str, float] | None,
        Option(
            "How much the loss of a quasi-identifier counts in the search, for the methods best and"
            " mondrian; by default 1.",
            flag="--weight",
            metavar="A=X",
        ),
    ] = None
    suppress: Annotated[
        float | None,
        Option(
            "Largest share of the rows that may be left out: rows are chosen so that the"
            " others lose less.",
            shown="none is chosen; those that fit in no class are left out",
            least=0,
            most=1,
        ),
    ] = None
    time_budget_s: Annotated[
        float,
        Option("Work of a search, in seconds of a core; 0: none.", flag="--time-budget", least=0),
    ] = TIME_BUDGET_S
    target: Annotated[
        str | None,
        Option(
            f"For {LEARNING}: sensitive or kept column of the classes that a model will learn.",
            metavar="COLUMN",
        ),
    ] = None
    language: Annotated[
        LanguageName, Option(f"For {LABELLED}: language of the labels.", flag="--lang")
    ] = "zh"
    seed: Annotated[int, Option("Seed of everything random.", least=0)] = 0

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...  # noqa: ANN401  criteria, too
        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  likewise


AT_RISK = 0.2
"""Probability above which a record is at risk, unless the caller sets one: a class of four."""


@with_fields(lambda: _criteria(of_audit=True))
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(ColumnOptions):
    """What the audit of a table requires; the defaults demand nothing."""

    as_published: Annotated[bool, Option("Count a missing value as a value, as in the paper.")] = (
        False
    )
    keep: Annotated[Names, Option("Column that was published unchanged.", metavar="COLUMN")] = ()
    measures: Annotated[
        Names,
        Option(
            "Column whose mean over each class was published.", flag="--measure", metavar="COLUMN"
        ),
    ] = ()
    k: Annotated[int, Option("Fewest distinct persons in a class.", flag="-k", least=1)] = 1
    d: Annotated[
        int, Option("Fewest distinct values of every quasi-identifier.", flag="-d", least=0)
    ] = 0
    l: Annotated[  # noqa: E741  the field's name for it
        int, Option("Fewest distinct values of every sensitive attribute.", flag="-l", least=0)
    ] = 0
    k_extra: Annotated[
        int,
        Option("Without any so many people of a class, the others meet every criterion.", least=0),
    ] = 0
    own: Annotated[
        int,
        Option(
            "Also attack as somebody who owns the rows of this many people: some drawn by the seed,"
            " and some made up to come into the victim's class.",
            least=0,
        ),
    ] = 0
    seed: Annotated[int, Option("Seed of the people of --own.", least=0)] = 0
    at_risk: Annotated[
        float,
        Option(
            "Count the records whose person is named with a larger probability.", least=0, most=1
        ),
    ] = AT_RISK
    keep_anyway: Annotated[
        Mapping[str, str] | None,
        Option(
            "Why a column is published although it holds direct identifiers, such as e-mail"
            " addresses, or repeats a quasi-identifier: without a reason, which reports repeat, it"
            " fails.",
            metavar="COLUMN=REASON",
        ),
    ] = None
    target: Annotated[
        str | None,
        Option(
            "Sensitive attribute that a decision tree learns to predict, from the release and from "
            "the original.",
            metavar="S",
        ),
    ] = None

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...  # noqa: ANN401  criteria, too
        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  likewise


def kinds_of(model: type[Any]) -> Mapping[str, tuple[Any, Option]]:
    """Return the type of each field, without None, and what is known of it."""
    found = {}
    for name, hint in get_type_hints(model, include_extras=True).items():
        type_, option = get_args(hint)
        parts = [part for part in get_args(type_) if part is not NoneType]
        optional = NoneType in get_args(type_) and len(parts) == 1
        found[name] = (parts[0] if optional else type_, option)
    return found


def _checked(name: str, value: Any, kind: Any, option: Option) -> Any:  # noqa: ANN401  any field's
    """Return a value of an option, numbers as such.

    Raises `SettingsError` if it is out of its range, or none of the choices.
    """
    if get_origin(kind) is Mapping:
        each_kind = get_args(kind)[1]
        return {key: _checked(name, each, each_kind, option) for key, each in value.items()}
    choices = get_args(kind) if get_origin(kind) is Literal else option.choices
    if choices and value not in choices:
        raise SettingsError(f"{name}: must be one of {', '.join(choices)}")
    if option.least is not None and kind is int:
        return whole_number(name, value, int(option.least), option.most)
    if option.least is not None:
        return real_number(name, value, option.least, option.most)
    return value


def whole_number(name: str, value: int, least: int, most: float = inf) -> int:
    """Return a whole number that lies between two others.

    Raises `SettingsError` if it does not, or is no whole number; a truth value is none.
    """
    with suppress(TypeError):
        if least <= index(value) <= most and not isinstance(value, bool):
            return index(value)
    raise SettingsError(f"{name}: must be a whole number {_between(least, most)}")


def real_number(name: str, value: float, least: float, most: float = inf) -> float:
    """Return a number that lies between two others.

    Raises `SettingsError` if it does not, or is no number; a text or a truth value is none.
    """
    with suppress(TypeError, ValueError):
        if least <= float(value) <= most and not isinstance(value, str | bool):
            return float(value)
    raise SettingsError(f"{name}: must be a number {_between(least, most)}")


def _between(least: float, most: float) -> str:
    return f"of {least:g} or more" if most == inf else f"from {least:g} to {most:g}"


def names_of(names: Names) -> Sequence[str]:
    """Return names as a sequence."""
    return (names,) if isinstance(names, str | int) else tuple(names)
