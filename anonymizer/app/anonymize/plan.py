"""What options ask for: columns, promise and plan of a release; and bands of sensitive numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from os import PathLike, fspath

from anonymizer.algorithms.models.registry import MODELS, USUAL
from anonymizer.algorithms.records.attributes import Branch, in_bands
from anonymizer.algorithms.records.methods import AUTO, SHARE_PRICE, TIME_BUDGET_S
from anonymizer.algorithms.records.time_columns import Level, calendar_levels
from anonymizer.app.table_options import (
    AuditOptions,
    ColumnOptions,
    CostName,
    LabelForm,
    LanguageName,
    TableOptions,
    names_of,
    real_number,
)
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.criteria.registry import FURTHER, bounds_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, intervals_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """Settings of a release, apart from the roles of the columns."""

    model: str = USUAL
    promise: Promise
    """The criteria of every class."""
    method: str = AUTO
    """`model`, `method`: names in `MODELS` and in its `methods`. For `auto` see
    `Model.method_name`."""
    cost: CostName = "range"
    """The information loss that is minimized; `taxonomy` publishes labels of hierarchies."""
    dm_weight: float = 0.0
    """Weight of the discernibility metric relative to the information loss."""
    prefer_share: float = 1.0
    share_price: float = SHARE_PRICE
    """`prefer_share`, `share_price`: a soft goal: no value has more than this share of a class, 1:
    none; and what it may cost, see `local_search.best`."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much the loss of a quasi-identifier counts, by name; of others, 1."""
    suppress: float | None = None
    """Largest share of the rows with an identifier that may be left out: rows are chosen so that
    the others lose less. None: no row is chosen, and those that fit in no class have no limit."""
    time_budget_s: float = TIME_BUDGET_S
    """Longest time that a search may take."""
    seed: int = 0
    """Seed of everything random."""
    target: str | None = None
    """Of a model that learns: the sensitive or kept column of the classes that will be learned from
    the release. None: there is no target."""
    labels: Mapping[str, LabelForm] = field(default_factory=dict)
    language: LanguageName = "zh"
    """`labels`, `language`: of a model with labels: the form of each quasi-identifier's (default
    `plain`), and their language. A column in the form `hours` must be declared as a time."""
    measures: Sequence[str] = ()
    """Numeric columns whose mean over each class is published; that of a quasi-identifier in place
    of its range."""
    bands: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Increasing edges of the bands of sensitive numbers, by name. Values in the same band count as
    one."""


_AS_ASKED = (
    *("model", "cost", "dm_weight", "share_price", "suppress", "time_budget_s", "seed", "target"),
    "language",
)


def make_plan(options: TableOptions) -> ReleasePlan:
    """Return the plan that options ask for, with the defaults of the model.

    Raises `SettingsError` if a weight is out of its range.
    """
    chosen = MODELS[options.model]
    d = chosen.d if options.d is None else options.d
    l = chosen.l if options.l is None else options.l  # noqa: E741  the field's name for it
    return ReleasePlan(
        method=AUTO if options.method is None else options.method,
        promise=_promise(options, options.k, d, l, by_d=1 if options.as_published else d),
        prefer_share=1.0 if options.prefer_share is None else options.prefer_share,
        weights=_weights(options.weights or {}),
        labels=options.labels or {},
        measures=names_of(options.measures),
        bands=options.bands or {},
        **{name: getattr(options, name) for name in _AS_ASKED},
    )


def _weights(given: Mapping[str, float]) -> dict[str, float]:
    weights = {name: real_number("weight", weight, 0) for name, weight in given.items()}
    if inf in weights.values():
        raise SettingsError("weight: must be finite")
    return weights


def make_promise(options: AuditOptions) -> Promise:
    """Return the promise that an audit requires."""
    return _promise(options, options.k, options.d, options.l, by_d=1)


def _promise(
    options: TableOptions | AuditOptions,
    k: int,
    d: int,
    l: int,  # noqa: E741  likewise
    *,
    by_d: int,
) -> Promise:
    """Return a promise; `by_d`: on which bounds depend that are not stated."""
    extra = options.k_extra
    stated = {each.name: getattr(options, each.name) for each in FURTHER}
    bounds = bounds_of(stated, by_d)
    d += extra if d > 1 else 0  # each of the made up has a value
    return Promise(k=k + extra, d=d, l=l, margin=extra, **bounds)


def declared_of(options: ColumnOptions) -> Declared:
    """Return the declaration that options make; read the hierarchies that they name.

    Raises
    ------
    InputError
        If a file of a hierarchy cannot be used.
    SettingsError
        If options do not fit each other.
    """
    given = options.hierarchies or {}
    if given:
        from anonymizer.files.hierarchies import (  # noqa: PLC0415  few tables have one
            hierarchies_of,
            read_hierarchy,
        )
    read: dict[str, Sequence[Branch]] = {}
    calendars: dict[str, Sequence[Level]] = {}
    for name, hierarchy in given.items():
        if isinstance(hierarchy, str) and (levels := calendar_levels(hierarchy)) is not None:
            calendars[name] = levels
        elif isinstance(hierarchy, str | PathLike):
            read[name] = read_hierarchy(fspath(hierarchy))
        else:
            read |= hierarchies_of({name: hierarchy})
    return Declared(
        qis=names_of(options.qi),
        sensitive=names_of(options.sa),
        id=options.id,
        sources=[names_of(each) for each in options.sources],
        hierarchies=read,
        hierarchy_files={
            name: fspath(each)
            for name, each in given.items()
            if name in read and isinstance(each, str | PathLike)
        },
        calendars=calendars,
        orders=options.orders or {},
        ranges=intervals_of(options.domains or {}),
        categories=names_of(options.categories),
        times=[name for name, form in (options.labels or {}).items() if form == "hours"],
        markers=names_of(options.missing) or NO_VALUE,
        markers_are_values=options.as_published,
        keep=names_of(options.keep),
        exact=names_of(options.exact),
    )


def banded(
    sensitive: Mapping[str, Attribute], name: str, edges: Sequence[float]
) -> tuple[Attribute, Int32Array]:
    """Return a sensitive number in bands, and the band of each of its codes.

    Parameters
    ----------
    sensitive
        The sensitive attributes by name.
    edges
        Increasing.

    Raises
    ------
    SettingsError
        If the name is not that of a numeric sensitive attribute, or edges do not increase.
    """
    if name not in sensitive or not sensitive[name].numeric:
        raise SettingsError(f"bands: {name} is not a numeric sensitive attribute")
    try:
        return in_bands(sensitive[name], edges)
    except ValueError as error:
        raise SettingsError(f"bands: {name}: {error}") from None


def with_bands(coded: CodedTable, bands: Mapping[str, Sequence[float]]) -> CodedTable:
    """Return a table with bands in place of sensitive numbers; published values do not change.

    `bands`: increasing edges, by name.

    Raises `SettingsError` if a name is not that of a numeric sensitive attribute, or edges do not
    increase.
    """
    attributes = {attribute.name: attribute for attribute in coded.schema.sensitive}
    columns = coded.records.sensitive.copy()
    for name, edges in bands.items():
        attributes[name], band_of = banded(attributes, name, edges)
        j = list(attributes).index(name)
        columns[:, j] = band_of[columns[:, j]]
    return replace(
        coded,
        records=Records(coded.records.qi, columns, coded.records.person),
        schema=Schema(coded.schema.qis, tuple(attributes.values()), coded.schema.sources),
    )
