"""Classes of a table: its problem, the method of the plan, and the rows that a limit leaves out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import ROUNDING, above_their_bound, why_impossible
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.methods import WORK_PER_S, searches
from anonymizer.algorithms.records.ordering import arranged, numbered
from anonymizer.algorithms.records.problem import Cost, Problem
from anonymizer.algorithms.records.task import ModelTarget, TimeBudget
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.table_options import CostName
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import InputError
from anonymizer.files.coded_table import CodedTable
from anonymizer.files.tables import TextTable

if TYPE_CHECKING:
    from anonymizer.algorithms.kaca.features import Feature

COSTS: dict[CostName, Cost] = {"range": Cost.RANGE, "set": Cost.SET, "taxonomy": Cost.TAXONOMY}
_COLUMNS = 6
"""Of the table by which `WORK_PER_S` was measured; each more makes a unit of work longer."""
_TRIALS = 8
"""How often classes are formed at most to see which rows it pays to leave out."""
_TIME_OF_TRIALS = (0.25, 0.75)
"""Searches form them this often, and divide their time so."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FormedClasses:
    """Classes of a table."""

    class_of: Int32Array
    """Class of each record, or `SUPPRESSED`, shape (n,)."""
    n_chosen: int
    """How many records were chosen to have none, under the limit of the plan."""
    in_time: bool
    """Whether no search was ended by its time budget."""
    work: int = 0
    """What the last search was given, 0 if there was none."""


def former_of(
    plan: ReleasePlan,
    schema: Schema,
    model: Model,
    *,
    features: "Sequence[Feature]" = (),
    usual_qi: Sequence[IntArray] | None = None,
    usual: Sequence[IntArray] | None = None,
) -> Former:
    """Return how a plan forms classes, its `method` being one of the model's; see `Former`."""
    return Former(
        schema=schema,
        promise=plan.promise,
        model=model,
        method=plan.method,
        cost=COSTS[plan.cost],
        weights=plan.weights,
        dm_weight=plan.dm_weight,
        prefer_share=plan.prefer_share,
        share_price=plan.share_price,
        seed=plan.seed,
        features=features if model.has_labels else (),
        usual_qi=usual_qi,
        usual=usual,
    )


def form_classes(
    table: TextTable,
    coded: CodedTable,
    plan: ReleasePlan,
    former: Former,
    *,
    clock: Callable[[], float],
    progress: Callable[..., None],
    measure: FloatArray | None = None,
) -> FormedClasses:
    """Return the classes of a table; they are not verified yet.

    Parameters
    ----------
    former
        As of `former_of`.
    clock, progress
        As for `anonymize`; progress is called with the information loss, or nothing.
    measure
        Measures of each record, of which means are published, NaN where it has none, shape
        (records, measures): without them, means would depend on the order of the table.

    Raises
    ------
    InputError
        If the table cannot meet the criteria, or no class was found.
    """
    whole_budget = TimeBudget(plan.time_budget_s, clock)
    ranks = None if measure is None else _ranks(measure)
    order = arranged(coded.records, coded.open_code, ranks)
    whole = coded.records.only(order)

    def problem_of(kept: IntArray) -> Problem:
        return former.problem(_only(whole, kept), table=whole)

    everyone = np.arange(whole.n)
    problem = problem_of(everyone)
    reason = why_impossible(problem, coded.schema)
    if reason is not None:
        raise InputError(f"{table.path}: the promise cannot be kept: {reason}")
    most = int((plan.suppress or 0.0) * whole.n + ROUNDING)
    divided = most > 0 and searches(former.method)
    budgets: list[TimeBudget] = []
    used_up: list[bool] = []
    given = 0

    def form(kept: IntArray, problem: Problem) -> Int32Array:
        nonlocal given
        budget, share = whole_budget, 1.0
        if divided:
            share = _TIME_OF_TRIALS[len(budgets)]
            budget = TimeBudget(plan.time_budget_s * share, clock)
        budgets.append(budget)
        given = work_in(plan.time_budget_s * share, problem)

        def time_left() -> float:
            progress()
            return budget()

        target = None
        if plan.target is not None:
            column = coded.open.columns.index(plan.target)
            target = ModelTarget(coded.open_code[order[kept], column])
        return former.classes(
            _only(whole, kept),
            problem,
            target=target,
            time_left=time_left,
            work=given if searches(former.method) else None,
            progress=progress,
            spent=lambda used: used_up.append(used >= given),
        )

    if most:
        from anonymizer.algorithms.records.suppression import (  # noqa: PLC0415  few tables need it
            form_within_limit,
        )

        kept, found = form_within_limit(
            problem_of,
            form,
            n=whole.n,
            most=most,
            n_trials=len(_TIME_OF_TRIALS) if divided else _TRIALS,
            again=divided,
            keep_going=lambda: not whole_budget.was_asked or whole_budget() > 0,
        )
    else:
        kept, found = everyone, form(everyone, problem)
    if not (found != SUPPRESSED).any():
        why = _why(problem, coded.schema)
        raise InputError(f"{table.path}: no class that keeps the promise was found{why}")
    class_of = np.full(whole.n, SUPPRESSED, np.int32)
    class_of[order[kept]] = found
    in_time = not any((*used_up, *(budget.ended_search for budget in budgets)))
    work = given if searches(former.method) else 0
    return FormedClasses(class_of, whole.n - len(kept), in_time, work)


def work_in(seconds: float, problem: Problem) -> int:
    """Return the work of a search that takes about so many seconds of one core, see `Task`."""
    return ceil(seconds * WORK_PER_S / max(len(problem.rule) / _COLUMNS, 1))


def _ranks(values: FloatArray) -> Int32Array:
    """Return the rank of each value in its column, shape of `values`."""
    ranks = np.empty(values.shape, np.int32)
    for j, column in enumerate(values.T):
        ranks[:, j] = np.unique(column, return_inverse=True)[1]
    return ranks


def _only(whole: Records, kept: IntArray) -> Records:
    """Return the kept records, in their order, the persons numbered without gaps."""
    if len(kept) == whole.n:
        return whole
    some = whole.only(kept)
    return replace(some, person=numbered(some.person[:, None]).astype(np.int32))


def _why(problem: Problem, schema: Schema) -> str:
    """Return why the whole table allows no classes, as the rest of a sentence."""
    from anonymizer.algorithms.records.suppression import (  # noqa: PLC0415  few tables need it
        least_dropped,
    )

    above = above_their_bound(problem, schema)
    n_least = 0 if len(problem.person) else least_dropped(problem)
    if n_least:
        share = ceil(1000 * n_least / problem.n) / 1000
        above.append(f"{n_least:,} rows at least must be left out for it (suppress = {share:g})")
    return f": {', '.join(above)}" if above else ""
