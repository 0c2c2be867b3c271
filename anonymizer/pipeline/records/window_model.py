"""Window models: how a stream forms the classes of a window and generalizes them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.generalized_values import to_json
from anonymizer.algorithms.records.methods import AUTO, MODELS, Task
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.published_values import ValueReader, uncovered
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.pipeline.records.declaration import Stream

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from anonymizer.algorithms.kaca.features import Feature


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Asked:
    """Attributes and criteria for classes, where they are not those of the whole stream.

    Attributes
    ----------
    schema
        The attributes of the records.
    promise, problem
        The criteria, as numbers and as arrays. None: the problem follows from the others.
    by_loss
        Whether classes are to lose little, whatever the model looks at besides: as those of `kd`.
    """

    schema: Schema
    promise: Promise
    problem: Problem | None = None
    by_loss: bool = False


class WindowModel(Protocol):
    """Forms classes and generalizes their quasi-identifiers."""

    def classes(
        self,
        records: Records,
        measures: Int32Array,
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,
    ) -> Int32Array:
        """Return the class of each record, `SUPPRESSED` where it has none, shape (n,).

        Every class meets the criteria; they are verified independently all the same. `measures`
        are the codes of the measures, shape (n, measures). `time_left` returns the share of the
        search time that is left. `asked`: the attributes and criteria, if not the stream's.
        """

    def joined(
        self,
        records: Records,  # noqa: ARG002  unused by default
        class_of: Int32Array,
    ) -> Int32Array:
        """Return the classes, those joined that the model does not publish apart."""
        return class_of

    def generalized(
        self, records: Records, classes: Classes, *, seed: int
    ) -> list[Mapping[str, Any]]:
        """Return the generalized values of each class, by the names of the QIs, as JSON."""

    def rejected(
        self,
        records: Records,
        class_of: Int32Array,
        values: Sequence[Mapping[str, Any]],
        *,
        seed: int,
    ) -> Collection[int]:
        """Return the classes whose generalized values are not true of every member.

        Independent verification before publishing: it shares no code with `generalized`.
        """

    def extra_fields(
        self,
        records: Records,  # noqa: ARG002  unused by default
        classes: Classes,
        totals: Sequence[Mapping[str, Total | None]],  # noqa: ARG002  likewise
        *,
        seed: int,  # noqa: ARG002  likewise
    ) -> Sequence[Mapping[str, Any]]:
        """Return additional fields for the message of each class, by name, as JSON.

        `totals` are those of each class's measures.
        """
        return [{}] * len(classes)


def form_classes(
    stream: Stream,
    records: Records,
    *,
    time_left: Callable[[], float],
    seed: int,
    target: "ArrayLike | None" = None,
    numeric_target: bool = False,
    features: "Sequence[Feature]" = (),
    asked: Asked | None = None,
) -> Int32Array:
    """Return the class of each record, formed by the model and method of a stream; see `Task`."""
    settings, asked = stream.settings, asked or Asked(stream.schema, stream.promise)
    schema, promise, problem = asked.schema, asked.promise, asked.problem
    model = MODELS[settings.model]
    method: str = settings.method
    if asked.by_loss and not model.forms_classes_like(MODELS["kd"]):
        model, method = MODELS["kd"], AUTO
    has_time = stream.work is not None or time_left() > 0
    budget_s = settings.budget_s if has_time else 0.0
    name = model.method_name(method, n=records.n, time_budget_s=budget_s)
    return model.methods[name](
        Task(
            records=records,
            schema=schema,
            promise=promise,
            problem=problem or make_problem(records, schema, promise, cost=cost_of(stream)),
            time_left=time_left,
            work=stream.work,
            seed=seed,
            target=target,
            numeric_target=numeric_target,
            features=features,
        )
    )


def cost_of(stream: Stream) -> Cost:
    """Return the information loss that a stream minimizes."""
    return Cost[stream.settings.cost.upper()]


def label_cost_of(stream: Stream) -> Cost:
    """Return the information loss of the labels that a stream publishes.

    `kaca` publishes sets, and no node of a hierarchy.
    """
    cost = cost_of(stream)
    return Cost.SET if stream.settings.model == "kaca" and cost is Cost.TAXONOMY else cost


def generalized_values(
    stream: Stream, records: Records, classes: Classes
) -> list[Mapping[str, Any]]:
    """Return the generalized values of each class, by the names of the QIs, as JSON."""
    general = generalize(records.qi, classes, stream.schema, cost_of(stream))
    return [
        {qi.name: to_json(general.value(c, j)) for j, qi in enumerate(general.qis)}
        for c in range(len(classes))
    ]


def uncovered_classes(
    stream: Stream, records: Records, class_of: Int32Array, values: Sequence[Mapping[str, Any]]
) -> set[int]:
    """Return the classes whose generalized values, as JSON, do not cover every member."""
    found: set[int] = set()
    for j, qi in enumerate(stream.schema.qis):
        column = [each[qi.name] for each in values]
        found.update(uncovered(records.qi[:, j], class_of, column, ValueReader(qi)).tolist())
    return found
