"""What is asked of a release.

Bands of sensitive numbers: values of one band count as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from anonymizer.algorithms.records.attributes import in_bands
from anonymizer.app.anonymize.class_labels import LabelForm, LanguageName
from anonymizer.app.anonymize.release_report import CostName
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import CodedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked for, besides what the columns are.

    Attributes
    ----------
    model, method
        Names in `MODELS` and in its `methods`.
    promise
        What every class must keep.
    cost
        Which information loss is kept low, and whether hierarchies are published.
    dm_weight
        What the discernibility of classes counts beside it.
    time_budget_s
        How long a method that could go on for ever may take.
    seed
        For what a method leaves to chance.
    target
        Column, sensitive or kept, of the classes that a model is to learn from the release; None:
        there is none. For `cells`.
    labels, language
        For `kaca`: in which form each quasi-identifier is told (not named: `plain`), and in which
        language. What is told in `hours` must be declared as a time.
    measures
        For `kaca`: columns of numbers whose mean over each class is published.
    bands
        Rising edges of the bands of sensitive numbers, by name: values of one band count as one.
    """

    model: str
    method: str
    promise: Promise
    cost: CostName = "range"
    dm_weight: float = 0.0
    time_budget_s: float = 20.0
    seed: int = 0
    target: str | None = None
    labels: Mapping[str, LabelForm] = field(default_factory=dict)
    language: LanguageName = "zh"
    measures: Sequence[str] = ()
    bands: Mapping[str, Sequence[float]] = field(default_factory=dict)


def with_bands(coded: CodedTable, bands: Mapping[str, Sequence[float]]) -> CodedTable:
    """Return a table whose sensitive numbers are their bands; what is published stays as it is.

    Parameters
    ----------
    bands
        Rising edges, by name.

    Raises
    ------
    SettingsError
        If one is no sensitive attribute with numbers, or its edges do not rise.
    """
    attributes = list(coded.schema.sensitive)
    columns = coded.records.sensitive.copy()
    for name, edges in bands.items():
        places = [j for j, attribute in enumerate(attributes) if attribute.name == name]
        if not places or not attributes[places[0]].numeric:
            raise SettingsError(f"bands: {name} is no sensitive attribute with numbers")
        j = places[0]
        try:
            attributes[j], band_of = in_bands(attributes[j], edges)
        except ValueError as error:
            raise SettingsError(f"bands: {name}: {error}") from None
        columns[:, j] = band_of[columns[:, j]]
    return replace(
        coded,
        records=Records(coded.records.qi, columns, coded.records.person),
        schema=Schema(coded.schema.qis, tuple(attributes), coded.schema.sources),
    )
