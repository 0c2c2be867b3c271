"""KACA over the records of a window: its classes, and their labels in messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.algorithms.kaca.coarsening import Total
from anonymizer.algorithms.kaca.features import Feature, Scale
from anonymizer.algorithms.records.classes import Classes, classes_of, join_identical
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
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records, Schema
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.window_model import WindowModel
from anonymizer.settings import AttributeSettings
from anonymizer.settings.stream_attributes import COUNT_FIELD, TRUCKS_FIELD

_DAY_MINUTES = 1440.0


@dataclass(frozen=True, slots=True)
class Clustering(WindowModel):
    """KACA: every vehicle has one record, so that joined classes hold as many as they did apart.

    A larger k can therefore be answered by joining classes, from the messages alone.
    """

    def features(self, schema: Schema) -> list[Feature]:
        """Return how records are compared."""
        return features_of(self.stream, schema)

    def joined(self, records: Records, class_of: Int32Array) -> Int32Array:
        """Return the classes, those with the same labels joined; see `WindowModel`."""
        classes = classes_of(class_of)
        if not len(classes):
            return class_of
        return join_identical(class_of, self._texts(self._values(records, classes)))

    def generalized(self, records: Records, classes: Classes) -> list[Mapping[str, Any]]:
        """Return the generalized values of each class; see `WindowModel`."""
        names = [qi.name for qi in self.stream.schema.qis]
        columns = self._values(records, classes)
        return [
            {name: to_json(column[c]) for name, column in zip(names, columns, strict=True)}
            for c in range(len(classes))
        ]

    def rejected(
        self, records: Records, class_of: Int32Array, values: Sequence[Mapping[str, Any]]
    ) -> set[int]:
        """Return the classes that a published value misses.

        Both are read back: the value in JSON, and the label in the stream's language.
        """
        found: set[int] = set()
        texts = self._texts(self._values(records, classes_of(class_of)))
        of_qis = zip(self.stream.schema.qis, self.readers(), strict=True)
        for j, (qi, reader) in enumerate(of_qis):
            for column in ([each[qi.name] for each in values], texts[j]):
                found.update(uncovered(records.qi[:, j], class_of, column, reader).tolist())
        return found

    def extra_fields(
        self,
        records: Records,
        classes: Classes,
        totals: Sequence[Mapping[str, Total | None]],
    ) -> list[Mapping[str, Any]]:
        """Return the flat fields of the message of each class, as in the source of KACA."""
        texts = self._texts(self._values(records, classes))
        each: list[Mapping[str, Any]] = []
        for c in range(len(classes)):
            n_vehicles = len(np.unique(records.person[classes[c]]))
            fields: dict[str, Any] = {
                qi.name: column[c] for qi, column in zip(self.stream.schema.qis, texts, strict=True)
            }
            fields |= {
                COUNT_FIELD: n_vehicles,
                TRUCKS_FIELD: self.stream.settings.n_trucks(n_vehicles),
            }
            fields |= {name: mean_of(total) for name, total in totals[c].items()}
            each.append(fields | {"own": n_vehicles, "k_anonymized": True, "algorithm": "KACA"})
        return each

    def readers(self) -> list[ValueReader]:
        """Return a reader of the labels of each quasi-identifier, in JSON and as text."""
        return [
            ValueReader(
                qi,
                areas_first=style.form is Form.PREFIX,
                per_day=style.per_day,
                midnight=style.midnight,
            )
            for qi, style in zip(self.stream.schema.qis, self.styles, strict=True)
        ]

    @property
    def styles(self) -> list[LabelStyle]:
        """How each quasi-identifier is labelled."""
        of = {
            attribute.name: Form(attribute.label) for attribute in self.stream.settings.attributes
        }
        qis = self.stream.schema.qis
        return [LabelStyle(form=of[qi.name], per_day=_DAY_MINUTES) for qi in qis]

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


def features_of(stream: Stream, schema: Schema) -> list[Feature]:
    """Return how KACA compares the values of quasi-identifiers of a stream."""
    of = {attribute.name: _feature(attribute) for attribute in stream.settings.attributes}
    return [of[qi.name] for qi in schema.qis]


def mean_of(total: Total | None) -> float | None:
    """Return a mean, rounded to hundredths."""
    return None if total is None else round(total.sum / total.n, 2)


def _feature(attribute: AttributeSettings) -> Feature:
    scale = Scale.DIGITS if attribute.label == "prefix" else None  # as in the source
    period = _DAY_MINUTES
    if not attribute.time_of_day and attribute.lo is not None and attribute.hi is not None:
        period = attribute.hi - attribute.lo
    return Feature(scale, 1.0, period)
