"""What is asked of a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anonymizer.app.anonymize.class_labels import LabelForm, LanguageName
from anonymizer.app.anonymize.release_report import CostName
from anonymizer.domain.promises import Promise


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
