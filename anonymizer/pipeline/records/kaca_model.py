"""KACA over the records of a window: its classes, and their labels in messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.kaca.features import Feature, Scale, features, means, nearest
from anonymizer.algorithms.records.classes import (
    SUPPRESSED,
    Classes,
    classes_of,
    join_identical,
)
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.generalized_values import (
    Form,
    JoinableValue,
    LabelStyle,
    Language,
    text,
    to_json,
)
from anonymizer.algorithms.records.problem import Cost
from anonymizer.algorithms.records.published_values import ValueReader, uncovered
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.records import Records, Schema
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.window_model import Asked, WindowModel, form_classes
from anonymizer.settings import AttributeSettings
from anonymizer.settings.stream_attributes import COUNT_FIELD, TRUCKS_FIELD

_DAY_MINUTES = 1440.0


@dataclass(frozen=True, slots=True)
class Clustering(WindowModel):
    """KACA.

    If a vehicle has several records, one of them, drawn by the seed, is its own. Classes are formed
    of own records, at least k in each; the other records join the nearest class. No vehicle is thus
    counted as own twice, and several classes together hold at least as many distinct vehicles as
    they have own records: a larger k can be answered by joining classes, from the messages
    alone.

    `own`: which of the records are own records; None: they are drawn. Where a window is anonymized
    in ranges, they are drawn before, so that nobody has one in two ranges.
    """

    stream: Stream
    own: BoolArray | None = None

    def classes(
        self,
        records: Records,
        measures: Int32Array,  # noqa: ARG002  classes do not depend on them
        *,
        time_left: Callable[[], float],
        seed: int,
        asked: Asked | None = None,
    ) -> Int32Array:
        """Return the class of each record; see `WindowModel`."""
        schema = self.stream.schema if asked is None else asked.schema
        how = features_of(self.stream, schema)
        own = self._own(records, seed)
        first = records.only(own)
        one_each = Records(first.qi, first.sensitive, np.arange(first.n, dtype=np.int32))
        class_of = np.full(records.n, SUPPRESSED, np.int32)
        class_of[own] = form_classes(
            self.stream, one_each, time_left=time_left, seed=seed, features=how, asked=asked
        )
        published = own & (class_of != SUPPRESSED)
        if not own.all() and published.any():
            feature = features(records, schema, how)
            mean = means(feature[published], class_of[published])
            class_of[~own] = nearest(mean, feature[~own], 1)[1][:, 0]
        return class_of

    def joined(self, records: Records, class_of: Int32Array) -> Int32Array:
        """Return the classes, those with the same labels joined; see `WindowModel`."""
        classes = classes_of(class_of)
        if not len(classes):
            return class_of
        return join_identical(class_of, self._texts(self._values(records, classes)))

    def generalized(
        self,
        records: Records,
        classes: Classes,
        *,
        seed: int,  # noqa: ARG002  nothing is random
    ) -> list[Mapping[str, Any]]:
        """Return the generalized values of each class; see `WindowModel`."""
        names = [qi.name for qi in self.stream.schema.qis]
        columns = self._values(records, classes)
        return [
            {name: to_json(column[c]) for name, column in zip(names, columns, strict=True)}
            for c in range(len(classes))
        ]

    def rejected(
        self,
        records: Records,
        class_of: Int32Array,
        values: Sequence[Mapping[str, Any]],
        *,
        seed: int,
    ) -> set[int]:
        """Return the classes of fewer than k own records, or that a published value misses.

        Both are read back: the value in JSON, and the label in the stream's language.
        """
        own = self._own(records, seed) & (class_of != SUPPRESSED)
        there, n_own = np.unique(class_of[own], return_counts=True)
        enough = set(there[n_own >= self.stream.promise.k].tolist())
        found = set(class_of[class_of != SUPPRESSED].tolist()) - enough
        texts = self._texts(self._values(records, classes_of(class_of)))
        of_qis = zip(self.stream.schema.qis, readers(self.stream), strict=True)
        for j, (qi, reader) in enumerate(of_qis):
            for column in ([each[qi.name] for each in values], texts[j]):
                found.update(uncovered(records.qi[:, j], class_of, column, reader).tolist())
        return found

    def extra_fields(
        self,
        records: Records,
        classes: Classes,
        totals: Sequence[Mapping[str, Total | None]],
        *,
        seed: int,
    ) -> list[Mapping[str, Any]]:
        """Return the flat fields of the message of each class, as in the source of KACA."""
        settings = self.stream.settings
        texts = self._texts(self._values(records, classes))
        is_own = self._own(records, seed)
        each: list[Mapping[str, Any]] = []
        for c in range(len(classes)):
            member = classes[c]
            n_vehicles = len(np.unique(records.person[member]))
            fields: dict[str, Any] = {
                qi.name: column[c] for qi, column in zip(self.stream.schema.qis, texts, strict=True)
            }
            fields |= {COUNT_FIELD: n_vehicles, TRUCKS_FIELD: settings.n_trucks(n_vehicles)}
            fields |= {name: mean_of(total) for name, total in totals[c].items()}
            own = n_vehicles
            if (
                settings.per == "record"
            ):  # in steps of k, so that nobody's other records are revealed
                own = int(is_own[member].sum()) // self.stream.promise.k * self.stream.promise.k
            each.append(fields | {"own": own, "k_anonymized": True, "algorithm": "KACA"})
        return each

    @property
    def styles(self) -> list[LabelStyle]:
        """How each quasi-identifier is labelled."""
        return label_styles(self.stream)

    def _values(self, records: Records, classes: Classes) -> list[list[JoinableValue]]:
        """Return the generalized value of each quasi-identifier in each class."""
        general = generalize(records.qi, classes, self.stream.schema, Cost.SET)
        return [
            [general.joinable_value(c, j, style) for c in range(len(classes))]
            for j, style in enumerate(self.styles)
        ]

    def _texts(self, columns: Sequence[Sequence[JoinableValue]]) -> list[list[str]]:
        language = Language(self.stream.settings.language)
        return [[text(value, language) for value in column] for column in columns]

    def _own(self, records: Records, seed: int) -> BoolArray:
        return own_records(records.person, seed) if self.own is None else self.own


def features_of(stream: Stream, schema: Schema) -> list[Feature]:
    """Return how KACA compares the values of quasi-identifiers of a stream."""
    of = {attribute.name: _feature(attribute) for attribute in stream.settings.attributes}
    return [of[qi.name] for qi in schema.qis]


def own_records(person: Int32Array, seed: int) -> BoolArray:
    """Return which records are own records: one of each person, drawn by the seed, shape (n,)."""
    order = np.random.default_rng(seed).permutation(len(person))
    own = np.zeros(len(person), np.bool_)
    own[order[np.unique(person[order], return_index=True)[1]]] = True
    return own


def label_styles(stream: Stream) -> list[LabelStyle]:
    """Return how each quasi-identifier of a stream is labelled."""
    return [
        LabelStyle(
            form=Form(attribute.label),
            per_day=_DAY_MINUTES,
        )
        for attribute in _qis(stream)
    ]


def readers(stream: Stream) -> list[ValueReader]:
    """Return a reader of the labels of each quasi-identifier, in JSON and as text."""
    return [
        ValueReader(
            qi,
            areas_first=style.form is Form.PREFIX,
            per_day=style.per_day,
            midnight=style.midnight,
        )
        for qi, style in zip(stream.schema.qis, label_styles(stream), strict=True)
    ]


def mean_of(total: Total | None) -> float | None:
    """Return a mean, rounded to hundredths."""
    return None if total is None else round(total.sum / total.n, 2)


def _qis(stream: Stream) -> list[AttributeSettings]:
    of = {attribute.name: attribute for attribute in stream.settings.attributes}
    return [of[qi.name] for qi in stream.schema.qis]


def _feature(attribute: AttributeSettings) -> Feature:
    scale = Scale.DIGITS if attribute.label == "prefix" else None  # as in the source
    period = _DAY_MINUTES
    if not attribute.time_of_day and attribute.lo is not None and attribute.hi is not None:
        period = attribute.hi - attribute.lo
    return Feature(scale, 1.0, period)
