"""Settings of the attributes of a record: their roles, domains, and labels under `kaca`."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from anonymizer.settings.base import (
    FieldName,
    Group,
    NonEmpty,
    Positive,
)
from anonymizer.settings.payloads import PayloadPath

Number = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]

COUNT_FIELD, TRUCKS_FIELD = "vehicle_count", "truck_count"
"""Fields of the number of vehicles of a class, in messages of `kaca`: all of them, and trucks."""
RESERVED = {
    *("stream", "window", "class", "of", "message", "k", "count", "own", "qis", "sensitive"),
    *("measures", "k_anonymized", "algorithm", COUNT_FIELD, TRUCKS_FIELD),
}
"""Fields that a message uses for the class itself."""


class AttributeSettings(Group):
    """One attribute of a record. Attributes that are not declared are dropped on arrival.

    Either a number (`lo`, `hi`, `step`), a category (`values` in their order, or a `hierarchy`), or
    the time of the day.
    """

    name: FieldName
    """Its name in messages, and in the payload unless `path` says otherwise."""
    path: PayloadPath | None = None
    """Where it is in the payload: `vehicle.type`, or a list of keys. None: under `name`."""
    role: Literal["qi", "sensitive", "measure"] = "qi"
    """`qi`: an adversary may know it, so it is generalized. `sensitive`: an adversary must not
    learn it. `measure`: a number whose sum and mean over each class are published."""
    lo: Number | None = None
    hi: Number | None = None
    """A number outside `lo` to `hi` makes the part invalid."""
    step: Positive = 1.0
    """Numbers are rounded to multiples of this, counted from `lo`."""
    values: tuple[NonEmpty, ...] | Literal["any", "time_of_day"] = ()
    """Categories, in an order that puts similar ones next to each other. Any other value makes
    the part invalid. `any`: every text of up to 64 characters is a category, so that a new one
    needs no restart. The domain of a window is what occurs in it, in alphabetical order. Whatever a
    source states can then be published in a class: only for sources that state no names of persons.
    `time_of_day`: the minute of the local day, taken from the time at `path`; without one, from
    that of the part."""
    hierarchy: Path | None = None
    """A file of `;`-separated lines, leaf first, or a JSON file of trees by attribute.
    None: no hierarchy."""
    bands: tuple[Number, ...] = ()
    """Rising edges of the bands of a sensitive number. Numbers of one band count as one value
    in every criterion; they are published unchanged. Empty: each step is a value of its
    own."""
    missing: FieldName = "?"
    """The text that means "no value", like null and a missing field. It never counts towards d
    or l."""
    lasting: bool = False
    """Whether a vehicle's value stays the same from window to window, so that an adversary can
    intersect windows."""
    label: Literal["plain", "prefix", "hours"] = "plain"
    """Form of the label under `kaca`. `plain`: a range or set. `prefix`: the common prefix, of
    values that are compared by the number in them. `hours`: hours of the day."""

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self.lo is not None

    @property
    def categories(self) -> tuple[str, ...]:
        """The declared categories."""
        return () if isinstance(self.values, str) else self.values

    @property
    def time_of_day(self) -> bool:
        """Whether it is the minute of the day, and not in the payload."""
        return self.values == "time_of_day"

    @property
    def domain_as_declared(self) -> tuple[object, ...]:
        """What its codes depend on: equal for attributes whose codes mean the same."""
        return (self.lo, self.hi, self.step, self.values, self.hierarchy, self.missing)

    @property
    def is_open(self) -> bool:
        """Whether any text is a value."""
        return self.values == "any"

    @model_validator(mode="after")
    def _an_open_domain_has_nothing_declared(self) -> Self:
        if not self.is_open:
            return self
        if self.numeric or self.hierarchy is not None:
            raise ValueError('values: "any" is for categories without a hierarchy')
        if self.lasting:  # its codes would have to mean the same in every window
            raise ValueError('values: "any" is not for a lasting attribute')
        return self

    @model_validator(mode="before")
    @classmethod
    def _a_day_has_1440_minutes(cls, table: Any) -> Any:  # noqa: ANN401  anything in the file
        if isinstance(table, dict) and table.get("values") == "time_of_day":
            if {"lo", "hi", "step", "hierarchy"} & table.keys():
                raise ValueError('values: "time_of_day" declares the whole domain')
            return table | {"lo": 0, "hi": 1439}
        return table

    @model_validator(mode="after")
    def _its_form_fits(self) -> Self:
        if self.role == "measure" and (not self.numeric or self.lasting):
            raise ValueError("role: a measure must be a number and must not be lasting")
        if self.label != "plain" and self.numeric is (self.label == "prefix"):
            raise ValueError("label: prefix is for categories, hours for times of day")
        if self.label == "hours" and not self.time_of_day:
            raise ValueError('label: hours needs values = "time_of_day"')
        return self

    @model_validator(mode="after")
    def _its_bands_fit(self) -> Self:
        if not self.bands:
            return self
        if self.role != "sensitive" or self.lo is None or self.hi is None:
            raise ValueError("bands: are for sensitive numbers")
        if self.lasting:  # the numbers are published unchanged and can be intersected
            raise ValueError("bands: are not for a lasting attribute")
        edges = (self.lo, *self.bands, self.hi)
        if any(low >= high for low, high in pairwise(edges[:-1])) or edges[-2] > self.hi:
            raise ValueError("bands: must rise, above lo and up to hi")
        return self

    @model_validator(mode="after")
    def _one_domain(self) -> Self:
        if (self.lo is None) != (self.hi is None):
            raise ValueError("lo and hi must be given together")
        if self.lo is not None and self.hi is not None:
            if self.categories:
                raise ValueError("must have either lo and hi or values")
            if not self.lo < self.hi:
                raise ValueError("lo must be below hi")
        elif not self.values and self.hierarchy is None and not self.is_open:
            raise ValueError("the domain must be declared: lo and hi, values, hierarchy, or any")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("values must hold each category once")
        if self.name in RESERVED:
            raise ValueError("name: is a field of the class itself; say in path what it is there")
        return self
