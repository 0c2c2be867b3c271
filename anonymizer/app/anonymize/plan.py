"""Plan of a release: its promise, model and settings; and bands of sensitive numbers."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from operator import index
from typing import TypeVar, get_args

from anonymizer.algorithms.records.attributes import in_bands
from anonymizer.algorithms.records.methods import AUTO, MODELS, SHARE_PRICE, TIME_BUDGET_S
from anonymizer.app.anonymize.class_labels import LabelForm, LanguageName
from anonymizer.app.anonymize.release_report import CostName
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise, bounded_shares
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import CodedTable

Choice = TypeVar("Choice", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Settings of a release, apart from the roles of the columns.

    Attributes
    ----------
    model, method
        Names in `MODELS` and in its `methods`. For `auto` see `Model.method_name`.
    promise
        The criteria of every class.
    cost
        The information loss that is minimized; `taxonomy` publishes labels of hierarchies.
    dm_weight
        Weight of the discernibility metric relative to the information loss.
    prefer_share, share_price
        A soft goal: no value has more than this share of a class, 1: none; and what it may cost,
        see `local_search.best`.
    time_budget_s
        Longest time that a search may take.
    seed
        Seed of everything random.
    target
        For `cells`: the sensitive or kept column of the classes that a model will learn from the
        release. None: there is no target.
    labels, language
        For `kaca`: the form of each quasi-identifier's labels (default `plain`), and their
        language. A column in the form `hours` must be declared as a time.
    measures
        For `kaca`: numeric columns whose mean over each class is published.
    bands
        Increasing edges of the bands of sensitive numbers, by name. Values in the same band
        count as one.
    """

    model: str
    promise: Promise
    method: str = AUTO
    cost: CostName = "range"
    dm_weight: float = 0.0
    prefer_share: float = 1.0
    share_price: float = SHARE_PRICE
    time_budget_s: float = TIME_BUDGET_S
    seed: int = 0
    target: str | None = None
    labels: Mapping[str, LabelForm] = field(default_factory=dict)
    language: LanguageName = "zh"
    measures: Sequence[str] = ()
    bands: Mapping[str, Sequence[float]] = field(default_factory=dict)


def make_plan(
    *,
    model: str,
    k: int,
    d: int | None = None,
    l: int | None = None,  # noqa: E741  the field's name for it
    method: str | None = None,
    cost: CostName = "range",
    dm_weight: float = 0.0,
    prefer_share: float | None = None,
    share_price: float = SHARE_PRICE,
    time_budget_s: float = TIME_BUDGET_S,
    max_share: float | None = None,
    max_source_share: float | None = None,
    min_spread: Mapping[str, float] | None = None,
    entropy_l: float = 1.0,
    t: float | None = None,
    as_published: bool = False,
    seed: int = 0,
    target: str | None = None,
    labels: Mapping[str, LabelForm] | None = None,
    language: LanguageName = "zh",
    measures: Sequence[str] = (),
    bands: Mapping[str, Sequence[float]] | None = None,
) -> Plan:
    """Return the plan that options ask for, with the defaults of the model.

    Parameters
    ----------
    d, l, method, max_share, max_source_share, t
        See `Plan` and `Promise`. None: the default of the model; no bound on t.
    prefer_share
        See `Plan`. None: no such goal.
    as_published
        Whether shares have no bound unless one is given, as in the paper.

    Raises
    ------
    SettingsError
        If there is no such model, or a number is out of its range.
    """
    if model not in MODELS:
        raise SettingsError(f"model: must be one of {', '.join(MODELS)}")
    chosen = MODELS[model]
    d = whole_number("d", chosen.d if d is None else d, 1)
    shares = bounded_shares(1 if as_published else d, max_share, max_source_share)
    return Plan(
        model=model,
        method=AUTO if method is None else method,
        promise=make_promise(
            k=whole_number("k", k, 2),
            d=d,
            l=whole_number("l", chosen.l if l is None else l, 1),
            max_share=shares[0],
            max_source_share=shares[1],
            min_spread=min_spread,
            entropy_l=entropy_l,
            t=t,
        ),
        cost=_one_of("cost", cost, CostName),
        dm_weight=real_number("dm_weight", dm_weight, 0),
        prefer_share=real_number("prefer_share", 1 if prefer_share is None else prefer_share, 0, 1),
        share_price=real_number("share_price", share_price, 0),
        time_budget_s=real_number("time_budget_s", time_budget_s, 0),
        seed=whole_number("seed", seed, 0),
        target=target,
        labels={name: _one_of("labels", f, LabelForm) for name, f in (labels or {}).items()},
        language=_one_of("language", language, LanguageName),
        measures=measures,
        bands=bands or {},
    )


def make_promise(
    *,
    k: int,
    d: int,
    l: int,  # noqa: E741  the field's name for it
    max_share: float,
    max_source_share: float,
    min_spread: Mapping[str, float] | None,
    entropy_l: float,
    t: float | None,
) -> Promise:
    """Return a promise; None: no bound.

    Raises
    ------
    SettingsError
        If a number is out of its range.
    """
    spreads = min_spread or {}
    return Promise(
        k=whole_number("k", k, 1),
        d=whole_number("d", d, 0),
        l=whole_number("l", l, 0),
        max_share=real_number("max_share", max_share, 0, 1),
        max_source_share=real_number("max_source_share", max_source_share, 0, 1),
        min_spread={name: real_number("min_spread", x, 0) for name, x in spreads.items()},
        entropy_l=real_number("entropy_l", entropy_l, 1),
        t=inf if t is None else real_number("t", t, 0),
    )


def whole_number(name: str, value: int, least: int) -> int:
    """Return a whole number that is not below the least one.

    Raises
    ------
    SettingsError
        If it is below, or is no whole number.
    """
    with suppress(TypeError):
        if index(value) >= least:
            return index(value)
    raise SettingsError(f"{name}: must be a whole number of {least} or more")


def real_number(name: str, value: float, least: float, most: float = inf) -> float:
    """Return a number that lies between two others.

    Raises
    ------
    SettingsError
        If it does not, or is no number.
    """
    with suppress(TypeError, ValueError):
        if least <= float(value) <= most:
            return float(value)
    bounds = f"of {least:g} or more" if most == inf else f"from {least:g} to {most:g}"
    raise SettingsError(f"{name}: must be a number {bounds}")


def _one_of(name: str, choice: Choice, choices: object) -> Choice:
    known = get_args(choices)
    if choice not in known:
        raise SettingsError(f"{name}: must be one of {', '.join(known)}")
    return choice


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

    Parameters
    ----------
    bands
        Increasing edges, by name.

    Raises
    ------
    SettingsError
        If a name is not that of a numeric sensitive attribute, or edges do not increase.
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
