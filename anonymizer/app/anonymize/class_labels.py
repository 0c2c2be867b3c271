"""Labels of the classes of a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from anonymizer.algorithms.records.classes import classes_of, join_identical
from anonymizer.algorithms.records.generalization import Generalized, generalize
from anonymizer.algorithms.records.generalized_values import Form, LabelStyle, Language
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.table_options import LabelForm, LanguageName
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import CodedTable, Declared

if TYPE_CHECKING:
    from anonymizer.algorithms.kaca.features import Feature


@dataclass(frozen=True, slots=True)
class Labelling:
    """How each quasi-identifier is labelled, and in which language."""

    styles: tuple[LabelStyle, ...]
    language: Language = Language.ZH

    @property
    def features(self) -> "list[Feature]":
        """The features by which KACA compares records, as in its source."""
        from anonymizer.algorithms.kaca.features import (  # noqa: PLC0415  no other model compares so
            Feature,
            Scale,
        )

        scale_of = {Form.PREFIX: Scale.DIGITS, Form.HOURS: Scale.LINE}
        return [Feature(scale_of.get(style.form)) for style in self.styles]

    def texts(self, general: Generalized, j: int) -> list[str]:
        """Return the published label of quasi-identifier j in each class."""
        return general.texts(j, self.styles[j], self.language)

    def rank(self, general: Generalized) -> Int32Array:
        """Return a number for each published label of a column, see `Generalized.rank`."""
        rank = general.rank()
        for j, style in enumerate(self.styles):
            if style.form is not Form.PLAIN:  # the values behind a label must not order the classes
                rank[:, j] = np.unique(self.texts(general, j), return_inverse=True)[1]
        return rank


def labelling_of(
    schema: Schema, declared: Declared, forms: Mapping[str, LabelForm], language: LanguageName
) -> Labelling:
    """Return how the quasi-identifiers are labelled.

    Raises `SettingsError` if a form is given for something other than a quasi-identifier, or does
    not suit it.
    """
    if astray := [name for name in forms if name not in declared.qis]:
        raise SettingsError(f"label: {astray[0]} is no quasi-identifier")
    for qi in schema.qis:
        form = forms.get(qi.name, "plain")
        if form == "prefix" and qi.numeric:
            raise SettingsError(f"label: {qi.name}: a prefix is for categories, and it has numbers")
        if form == "hours" and qi.name not in declared.times:
            raise SettingsError(f"label: {qi.name}: hours are for what is declared to be a time")
    styles = tuple(LabelStyle(Form(forms.get(qi.name, "plain"))) for qi in schema.qis)
    return Labelling(styles, Language(language))


def joined(coded: CodedTable, class_of: Int32Array, cost: Cost, labelling: Labelling) -> Int32Array:
    """Return the classes with those that have the same labels joined, see `join_identical`."""
    general = generalize(coded.records.qi, classes_of(class_of), coded.schema, cost)
    return join_identical(
        class_of, [labelling.texts(general, j) for j in range(len(labelling.styles))]
    )
