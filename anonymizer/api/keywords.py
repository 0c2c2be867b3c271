"""Keywords of the public functions of a table, for type checkers and editors.

They are the fields of the classes in `anonymizer.app.table_options`. A type checker cannot derive
them, so names and types stand here again, and a test compares them; defaults, limits and help do
not. Spark takes `RangeKeywords`: without what is chosen by looking at the whole table.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import ParamSpec, Required, TypedDict, TypeVar, get_args, get_type_hints

from anonymizer.app.table_options import (
    CostName,
    Hierarchy,
    LabelForm,
    LanguageName,
    Names,
    Options,
)
from anonymizer.domain.criteria.registry import FURTHER

P = ParamSpec("P")
R = TypeVar("R")


class CommonKeywords(TypedDict, total=False):
    """Keywords of all public functions of a table; see `TableOptions`."""

    qi: Required[Names]
    sa: Names
    id: str | None
    sources: Sequence[Sequence[str]]
    hierarchies: Mapping[str, Hierarchy] | None
    orders: Mapping[str, Sequence[str]] | None
    domains: Mapping[str, Sequence[float]] | None
    categories: Names
    labels: Mapping[str, LabelForm] | None
    missing: Names
    exact: Names
    as_published: bool
    bands: Mapping[str, Sequence[float]] | None
    keep: Names
    k_extra: int
    measures: Names
    min_spread: Mapping[str, float] | None
    entropy_l: float
    t: float | None


class RangeKeywords(CommonKeywords, total=False):
    """Those that need not look at a whole table, of `TableOptions`."""

    k: Required[int]
    model: str
    method: str | None
    d: int | None
    l: int | None  # noqa: E741  likewise
    cost: CostName
    dm_weight: float
    time_budget_s: float
    max_share: float | None
    max_source_share: float | None
    target: str | None
    language: LanguageName
    seed: int


class TableKeywords(RangeKeywords, total=False):
    """Those of `TableOptions`."""

    prefer_share: float | None
    share_price: float
    weights: Mapping[str, float] | None
    suppress: float | None


class AuditKeywords(CommonKeywords, total=False):
    """Those of `AuditOptions`."""

    k: int
    d: int
    l: int  # noqa: E741  likewise
    max_share: float
    max_source_share: float
    own: int
    keep_anyway: Mapping[str, str] | None
    seed: int
    at_risk: float
    target: str | None


def takes_keywords(model: type[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function the signature that its `**options: Unpack[...]` stand for.

    Types, defaults and, in a docstring, `further_criteria` are the model's; others a `TypeError`.
    """

    def derived(function: Callable[P, R]) -> Callable[P, R]:
        given = signature(function)
        *own, rest = given.parameters.values()
        further = [each.name for each in FURTHER]
        taken, types = get_args(rest.annotation)[0].__annotations__, get_type_hints(model)
        keywords = [
            each.replace(annotation=types[each.name])
            for each in signature(model).parameters.values()
            if each.name in taken or each.name in further
        ]
        keywords.sort(key=lambda each: each.default is not each.empty)  # required ones first
        whole = given.replace(parameters=[*own, *keywords])

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                whole.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        checked.__doc__ = (function.__doc__ or "").replace("further_criteria", ", ".join(further))
        checked.__dict__["__signature__"] = whole  # what `inspect.signature` returns
        return checked

    return derived
