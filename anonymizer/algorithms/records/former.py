"""The one way from coded records to their classes: for tables, ranges, windows and `tune`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.task import ModelTarget, Task
from anonymizer.algorithms.records.verification import check_classes
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema

if TYPE_CHECKING:
    from anonymizer.algorithms.kaca.features import Feature


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Former:
    """How classes are formed, whatever the records."""

    schema: Schema
    """The attributes, with the domains of the whole table."""
    promise: Promise
    """The criteria of every class."""
    model: Model
    method: str
    """`model`, `method`: the model, and the name of one of its `methods`."""
    cost: Cost = Cost.RANGE
    """The information loss that is minimized."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much the loss of a quasi-identifier counts, by name; of others, 1."""
    dm_weight: float = 0.0
    """Weight of the discernibility metric relative to the information loss."""
    prefer_share: float = 1.0
    share_price: float = 0.0
    """`prefer_share`, `share_price`: preferred largest share of a value in a class, and its price,
    see `local_search.best`. Only a search uses them."""
    seed: int = 0
    """Seed of everything random."""
    features: "Sequence[Feature]" = ()
    """Distance between records, one entry per quasi-identifier. Empty: the defaults. Only a model
    of clusters uses it."""
    usual_qi: Sequence[IntArray] | None = None
    usual: Sequence[IntArray] | None = None
    """`usual_qi`, `usual`: where the records are a part of a table: how often each code of each
    quasi-identifier, and of each sensitive attribute, occurs in all of it. t-closeness compares
    with that, and cells weigh attributes by it. None: the records are the whole table."""

    def problem(self, records: Records, *, table: Records | None = None) -> Problem:
        """Return the criteria as arrays; `table`: see `make_problem`."""
        problem = make_problem(
            records, self.schema, self.promise, cost=self.cost, weights=self.weights, table=table
        )
        if not self.usual:
            return problem
        usual = problem.usual.copy()
        shares = np.concatenate([counts / max(counts.sum(), 1) for counts in self.usual])
        usual[len(usual) - len(shares) :] = shares
        return replace(problem, usual=usual)

    def classes(
        self,
        records: Records,
        problem: Problem | None = None,
        *,
        target: ModelTarget | None = None,
        time_left: Callable[[], float] | None = None,
        work: int | None = None,
        progress: Callable[[float], None] = lambda _loss: None,
        spent: Callable[[int], None] = lambda _work: None,
    ) -> Int32Array:
        """Return the class of each record, `SUPPRESSED` where it has none, shape (n,).

        `problem`: that of the records, if it is known already; for the others see `Task`. Classes
        are verified by `verify`, or by whoever publishes them.
        """
        task = Task(
            former=self,
            records=records,
            problem=self.problem(records) if problem is None else problem,
            target=target,
            time_left=time_left,
            work=work,
            progress=progress,
            spent=spent,
        )
        return self.model.methods[self.method](task)

    def verify(self, records: Records, class_of: Int32Array) -> None:
        """Raise `GuaranteeError` if independent verification finds a class below the promise."""
        check_classes(records, self.schema, self.promise, class_of, usual=self.usual)
