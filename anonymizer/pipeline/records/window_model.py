"""Window models: how a stream forms the classes of a window and generalizes them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.models.registry import MODELS, USUAL
from anonymizer.algorithms.records.classes import Classes
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.generalized_values import to_json
from anonymizer.algorithms.records.methods import AUTO
from anonymizer.algorithms.records.problem import Cost, Problem
from anonymizer.algorithms.records.published_values import ValueReader, uncovered
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.pipeline.records.declaration import Stream

if TYPE_CHECKING:
    from anonymizer.algorithms.kaca.features import Feature


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Asked:
    """Attributes and criteria for classes, where they are not those of the whole stream."""

    schema: Schema
    """The attributes of the records."""
    promise: Promise
    problem: Problem | None = None
    """`promise`, `problem`: the criteria, as numbers and as arrays. None: the problem follows from
    the others."""
    by_loss: bool = False
    """Whether classes are to lose little, whatever the model looks at besides, as usual ones."""


@dataclass(frozen=True, slots=True)
class WindowModel:
    """Forms classes that lose little, and generalizes their quasi-identifiers by their values.

    That is all of (k,d)-anonymity and (k,l,d)-diversity.
    """

    stream: Stream

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
        stream = self.stream
        settings, asked = stream.settings, asked or Asked(stream.schema, stream.promise)
        schema, promise, problem = asked.schema, asked.promise, asked.problem
        model, method = MODELS[settings.model], settings.method
        if asked.by_loss and not model.forms_classes_like(MODELS[USUAL]):
            model, method = MODELS[USUAL], AUTO
        has_time = stream.work is not None or time_left() > 0
        budget_s = settings.budget_s if has_time else 0.0
        name = model.method_name(method, n=records.n, time_budget_s=budget_s)
        former = Former(
            schema=schema,
            promise=promise,
            model=model,
            method=name,
            cost=cost_of(stream),
            seed=seed,
            features=self.features(schema),
        )
        return former.classes(
            records,
            problem,
            target=self.target(records, measures, schema),
            time_left=time_left,
            work=stream.work,
        )

    def features(self, schema: Schema) -> "Sequence[Feature]":  # noqa: ARG002  none by default
        """Return how records are compared, see `Former`."""
        return ()

    def target(
        self,
        records: Records,  # noqa: ARG002  none by default
        measures: Int32Array,  # noqa: ARG002  likewise
        schema: Schema,  # noqa: ARG002  likewise
    ) -> ModelTarget | None:
        """Return what classes follow besides the values, see `Task`."""
        return None

    def joined(
        self,
        records: Records,  # noqa: ARG002  unused by default
        class_of: Int32Array,
    ) -> Int32Array:
        """Return the classes, those joined that the model does not publish apart."""
        return class_of

    def generalized(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
        """Return the generalized values of each class, by the names of the QIs, as JSON."""
        general = generalize(records.qi, classes, self.stream.schema, cost_of(self.stream))
        return [
            {qi.name: to_json(general.value(c, j)) for j, qi in enumerate(general.qis)}
            for c in range(len(classes))
        ]

    def rejected(
        self, records: Records, class_of: Int32Array, values: Sequence[Mapping[str, Any]]
    ) -> Collection[int]:
        """Return the classes whose generalized values are not true of every member.

        Independent verification before publishing: it shares no code with `generalized`.
        """
        found: set[int] = set()
        for j, (qi, reader) in enumerate(zip(self.stream.schema.qis, self.readers(), strict=True)):
            column = [each[qi.name] for each in values]
            found.update(uncovered(records.qi[:, j], class_of, column, reader).tolist())
        return found

    def readers(self) -> list[ValueReader]:
        """Return a reader of the published values of each quasi-identifier."""
        return [ValueReader(qi) for qi in self.stream.schema.qis]

    def extra_fields(
        self,
        records: Records,  # noqa: ARG002  unused by default
        classes: Classes,
        totals: Sequence[Mapping[str, Total | None]],  # noqa: ARG002  likewise
    ) -> Sequence[Mapping[str, Any]]:
        """Return additional fields for the message of each class, by name, as JSON.

        `totals` are those of each class's measures.
        """
        return [{}] * len(classes)


def cost_of(stream: Stream) -> Cost:
    """Return the information loss that a stream minimizes."""
    return Cost[stream.settings.cost.upper()]


def label_cost_of(stream: Stream) -> Cost:
    """Return the information loss of the labels that a stream publishes.

    A model with labels of its own publishes sets, and no node of a hierarchy.
    """
    cost, has_labels = cost_of(stream), MODELS[stream.settings.model].has_labels
    return Cost.SET if has_labels and cost is Cost.TAXONOMY else cost
