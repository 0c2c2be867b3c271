"""What a record says of a vehicle: attributes, their domains, and how `kaca` tells them."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from anonymizer.settings.group import Group

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]

RESERVED = {
    *("stream", "window", "class", "of", "message", "k", "count", "own", "qis", "sensitive"),
    *("measures", "k_anonymized", "algorithm"),
}
"""What a message says of a class itself."""


class PeriodSettings(Group):
    """A named part of the day, through midnight where it ends before it begins."""

    from_h: Annotated[int, Field(ge=0, le=23)]
    to_h: Annotated[int, Field(ge=1, le=24)]
    zh: Annotated[str, Field(min_length=1)]
    en: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _it_lasts(self) -> Self:
        if self.from_h == self.to_h:
            raise ValueError("from_h and to_h must differ")
        return self


class AttributeSettings(Group):
    """One attribute of a record; what is not declared is dropped on arrival.

    A number (`lo`, `hi`, `step`), or a category (`values` in their order, or a `hierarchy`).
    """

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """As the payload calls it."""
    role: Literal["qi", "sensitive", "measure"] = "qi"
    """`qi`: an adversary may know it, it is generalized; `sensitive`: he must not learn it;
    `measure`: a number of which the sum and the mean over each class are told."""
    time_of_day: bool = False
    """The minute of the local day, from the time of the part; the payload need not hold it."""
    lo: Number | None = None
    hi: Number | None = None
    """A number outside `lo` to `hi` makes the part invalid."""
    step: Positive = 1.0
    """Numbers are rounded to multiples of this, counted from `lo`."""
    values: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Categories, neighbours beside each other; any other makes the part invalid."""
    hierarchy: Path | None = None
    """A file of `;`-separated lines, leaf first, or a JSON of trees by attribute. None: none."""
    bands: tuple[Number, ...] = ()
    """Of a sensitive number, rising edges of bands: numbers of one band count as one value towards
    l, entropy_l and t, and are told as they are. Empty: each step is a value of its own."""
    missing: Annotated[str, Field(min_length=1, max_length=64)] = "?"
    """The text that means "no value", as null and a missing field do. It never counts towards d
    or l."""
    lasting: bool = False
    """Whether it stays the same from window to window, so that windows can be intersected."""
    published_as: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """What messages call it. None: `name`."""
    scale: Literal["auto", "line", "circle", "digits", "apart"] = "auto"
    """How `kaca` compares values: by where they lie in their domain, on the clock (so that 23:59
    and 0:01 may share a class), by the number in them, or all alike. `auto`: on a line where
    there is an order, else alike."""
    weight: NotNegative = 1.0
    """How much it counts when `kaca` compares records; each attribute spans 1 before it."""
    label: Literal["plain", "prefix", "hours"] = "plain"
    """How `kaca` tells it: as a range or set, by what all begin with, or by hours of the day."""
    prefix_chars: Annotated[int, Field(ge=1)] | None = None
    """Characters of a `prefix` at the most. None: all that is common."""
    periods: tuple[PeriodSettings, ...] = ()
    """Names of parts of the day for `hours`. None: four of six hours each."""

    @property
    def shown_as(self) -> str:
        """What messages call it."""
        return self.published_as or self.name

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self.lo is not None

    @model_validator(mode="before")
    @classmethod
    def _a_day_has_1440_minutes(cls, said: Any) -> Any:  # noqa: ANN401  whatever is in the file
        if isinstance(said, dict) and said.get("time_of_day") is True:
            if {"lo", "hi", "step", "values", "hierarchy"} & said.keys():
                raise ValueError("time_of_day: its domain is declared by that")
            return said | {"lo": 0, "hi": 1439}
        return said

    @model_validator(mode="after")
    def _its_form_fits(self) -> Self:
        if self.role == "measure" and (not self.numeric or self.lasting):
            raise ValueError("role: a measure is a number, and lasts for no longer than its record")
        if self.label != "plain" and self.numeric is (self.label == "prefix"):
            raise ValueError("label: prefix is for categories, hours for times of day")
        if self.label == "hours" and not self.time_of_day:
            raise ValueError("label: hours is for what has time_of_day = true")
        if self.numeric is (self.scale in {"digits", "apart"}) and self.scale not in {
            "auto",
            "line",
        }:
            raise ValueError("scale: circle is for numbers, digits and apart are for categories")
        return self

    @model_validator(mode="after")
    def _its_bands_fit(self) -> Self:
        if not self.bands:
            return self
        if self.role != "sensitive" or self.lo is None or self.hi is None:
            raise ValueError("bands: are for sensitive numbers")
        if self.lasting:  # the numbers themselves are told, and can be intersected
            raise ValueError("bands: are not for what is lasting")
        edges = (self.lo, *self.bands, self.hi)
        if any(low >= high for low, high in pairwise(edges[:-1])) or edges[-2] > self.hi:
            raise ValueError("bands: must rise, above lo and up to hi")
        return self

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        if (self.lo is None) != (self.hi is None):
            raise ValueError("lo and hi belong together")
        if self.lo is not None and self.hi is not None:
            if self.values:
                raise ValueError("must have either lo and hi or values")
            if not self.lo < self.hi:
                raise ValueError("lo must be below hi")
        elif not self.values and self.hierarchy is None:
            raise ValueError("the domain must be declared: lo and hi, values, or hierarchy")
        if len(set(self.values)) < len(self.values):
            raise ValueError("values must hold each category once")
        if self.shown_as in RESERVED:
            raise ValueError("published_as: is said of a class itself")
        return self
