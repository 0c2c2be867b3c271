"""The words in which classes are told, and a last look at them before they leave."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from anonymizer.algorithms.kaca.features import Feature, Scale
from anonymizer.algorithms.kaca.label_verification import short_classes, uncovered
from anonymizer.algorithms.kaca.labels import Form, Label, Language, join_same, texts
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.generalization import Generalized, generalize
from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import CodedTable, Declared

LabelForm: TypeAlias = Literal["plain", "prefix", "hours"]
LanguageName: TypeAlias = Literal["zh", "en"]

_SCALE_OF = {Form.PREFIX: Scale.DIGITS, Form.HOURS: Scale.LINE}


@dataclass(frozen=True, slots=True)
class Wording:
    """How each quasi-identifier is told, and in which language."""

    labels: tuple[Label, ...]
    language: Language = Language.ZH

    @property
    def features(self) -> list[Feature]:
        """How each quasi-identifier counts where records are compared, as the source has it."""
        return [Feature(_SCALE_OF.get(label.form)) for label in self.labels]

    def texts(self, told: Generalized, j: int) -> list[str]:
        """Return what is published of quasi-identifier j in each class."""
        return texts(told, j, self.labels[j], self.language)

    def rank(self, told: Generalized) -> Int32Array:
        """Return a number for each published text of a column, see `Generalized.rank`."""
        rank = told.rank()
        for j, label in enumerate(self.labels):
            if label.form is not Form.PLAIN:  # what is beneath a label must not order the classes
                rank[:, j] = np.unique(self.texts(told, j), return_inverse=True)[1]
        return rank


def wording_of(
    schema: Schema, declared: Declared, forms: Mapping[str, LabelForm], language: LanguageName
) -> Wording:
    """Return how the quasi-identifiers are told.

    Raises
    ------
    SettingsError
        If a form is of what is no quasi-identifier, or does not suit it.
    """
    if astray := [name for name in forms if name not in declared.qis]:
        raise SettingsError(f"label: {astray[0]} is no quasi-identifier")
    for qi in schema.qis:
        form = forms.get(qi.name, "plain")
        if form == "prefix" and qi.numeric:
            raise SettingsError(f"label: {qi.name}: a prefix is for categories, and it has numbers")
        if form == "hours" and qi.name not in declared.times:
            raise SettingsError(f"label: {qi.name}: hours are for what is declared to be a time")
    labels = tuple(Label(Form(forms.get(qi.name, "plain"))) for qi in schema.qis)
    return Wording(labels, Language(language))


def joined(coded: CodedTable, class_of: Int32Array, cost: Cost, wording: Wording) -> Int32Array:
    """Return classes of which no two are told alike, see `join_same`."""
    told = generalize(coded.records.qi, classes_of(class_of), coded.schema, cost)
    return join_same(class_of, [wording.texts(told, j) for j in range(len(wording.labels))])


def n_faulty(
    coded: CodedTable, class_of: Int32Array, columns: list[list[str]], k: int, wording: Wording
) -> int:
    """Return how often a class is too small, or a label does not cover every member.

    Parameters
    ----------
    class_of
        Published class of each record, negative where there is none.
    columns
        Of each quasi-identifier, the published label of each class.
    """
    faults = len(short_classes(class_of, coded.records.person, k))
    each = zip(coded.schema.qis, columns, wording.labels, strict=True)
    for j, (qi, published, label) in enumerate(each):
        faults += len(uncovered(coded.records.qi[:, j], class_of, qi, published, label))
    return faults
