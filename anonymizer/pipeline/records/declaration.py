"""From the settings of a stream to what its flow works with."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.records.attributes import (
    Branch,
    Interval,
    categories,
    in_bands,
    numbers,
    places_of,
)
from anonymizer.algorithms.windows import WindowRule
from anonymizer.codecs.record_parts import PartReader, ReportedValues
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Attribute, Schema
from anonymizer.errors import SettingsError
from anonymizer.settings import AttributeSettings, StreamSettings

_HOUR_S = 3600.0
MOST_CLASSES = 100
"""Categories of what a tree learns: with more it is no class."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stream:
    """One stream of records, as declared.

    Attributes
    ----------
    settings, promise, rule
        As set.
    schema
        What is judged; of sensitive numbers with bands these.
    sensitive, measures
        The columns of a joined record are its quasi-identifiers, then its sensitive attributes,
        then its measures.
    judged_as
        Of each sensitive attribute, the code in `schema` of each of its codes.
    readers
        Of each source.
    columns_of
        The columns that each source tells, in the order in which its reader does.
    shape
        Equal for two declarations under which stored parts mean the same.
    """

    settings: StreamSettings
    schema: Schema
    sensitive: tuple[Attribute, ...]
    measures: tuple[Attribute, ...]
    judged_as: tuple[Int32Array, ...]
    promise: Promise
    rule: WindowRule
    readers: tuple[PartReader, ...]
    columns_of: tuple[tuple[int, ...], ...]
    shape: str

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns of a joined record."""
        return (*self.schema.qis, *self.sensitive, *self.measures)

    def judged(self, codes: Int32Array) -> Int32Array:
        """Return codes of the sensitive attributes as `schema` has them, shape as `codes`."""
        judged = np.empty_like(codes)
        for j, judged_as in enumerate(self.judged_as):
            judged[:, j] = judged_as[codes[:, j]]
        return judged

    @property
    def shown_as(self) -> dict[str, str]:
        """What messages call each attribute, by its name."""
        return {a.name: a.shown_as for a in self.settings.attributes}

    @property
    def lasting(self) -> tuple[str, ...]:
        """Names of the attributes that stay the same from window to window."""
        return tuple(a.name for a in self.settings.attributes if a.lasting)


def declare(
    settings: StreamSettings, *, branches: Mapping[str, Sequence[Branch]] | None = None
) -> Stream:
    """Return the stream that the settings declare.

    Parameters
    ----------
    branches
        Of the hierarchy of each attribute that has one, by its name.

    Raises
    ------
    SettingsError
        If a domain cannot be, or no class could ever keep the promise.
    """
    trees = branches or {}
    of: dict[str, Attribute] = {}
    for declared in settings.attributes:
        try:
            of[declared.name] = _attribute(declared, trees.get(declared.name, ()))
        except ValueError as error:
            raise _mistake(settings, f"attributes: {declared.name}: {error}") from None
    by_role = {
        role: [a.name for a in settings.attributes if a.role == role]
        for role in ("qi", "sensitive", "measure")
    }
    _possible(settings, [of[name] for name in by_role["qi"]], settings.promise.d, "d")
    bands_of = {a.name: a.bands for a in settings.attributes}
    sensitive = [of[name] for name in by_role["sensitive"]]
    judged = [_judged(attribute, bands_of[attribute.name]) for attribute in sensitive]
    _possible(settings, [attribute for attribute, _ in judged], settings.promise.l, "l")
    learned = of.get(settings.learned or "") if settings.model == "cells" else None
    if learned is not None and len(learned.label) > MOST_CLASSES + 1:  # the marker beside
        raise _mistake(settings, f"target: {learned.name} has more than {MOST_CLASSES} values")
    place = {name: i for i, name in enumerate(name for role in by_role.values() for name in role)}
    n_qis = len(by_role["qi"])
    columns_of = tuple(tuple(place[name] for name in s.tells) for s in settings.sources)
    step_of = {a.name: (a.step, a.missing, a.time_of_day) for a in settings.attributes}
    known = (tuple(c for c in columns if c < n_qis) for columns in columns_of)
    return Stream(
        settings=settings,
        schema=Schema(
            qis=tuple(of[name] for name in by_role["qi"]),
            sensitive=tuple(attribute for attribute, _ in judged),
            sources=tuple(columns for columns in known if columns),
        ),
        sensitive=tuple(sensitive),
        measures=tuple(of[name] for name in by_role["measure"]),
        judged_as=tuple(judged_as for _, judged_as in judged),
        promise=settings.promise.promise,
        rule=WindowRule(
            length_s=settings.window_s,
            offset_s=settings.begin_s,
            lateness_s=settings.lateness_s,
            silence_s=settings.silence_s,
            max_open=settings.max_open_windows,
            max_ahead_s=settings.max_ahead_s,
        ),
        readers=tuple(
            PartReader(
                [ReportedValues(of[name], *step_of[name]) for name in source.tells],
                time=source.time,
                utc_offset_s=settings.utc_offset_h * _HOUR_S,
            )
            for source in settings.sources
        ),
        columns_of=columns_of,
        shape=_shape(settings, of),
    )


def _attribute(declared: AttributeSettings, branches: Sequence[Branch]) -> Attribute:
    if declared.lo is not None and declared.hi is not None:
        interval = Interval(declared.lo, declared.hi, declared.step)
        places = places_of(interval, np.zeros(0))
        return numbers(declared.name, places, branches=branches, missing=True)
    order = declared.values or [branch[0] for branch in branches]
    return categories(declared.name, order, branches=branches, marker=declared.missing)


def _judged(attribute: Attribute, bands: Sequence[float]) -> tuple[Attribute, Int32Array]:
    """Return what an attribute is judged as, and its code there for each of its codes."""
    if bands:
        return in_bands(attribute, bands)
    return attribute, np.arange(attribute.size, dtype=np.int32)


def _possible(
    settings: StreamSettings, attributes: Sequence[Attribute], least: int, name: str
) -> None:
    """Refuse a promise that not even all records of the world could keep."""
    for attribute in attributes:
        n_values = attribute.size - (attribute.missing != NO_CODE)
        if n_values < least:
            raise _mistake(
                settings,
                f"promise.{name}: {attribute.name} has {n_values} values, {name} = {least}",
            )


def _mistake(settings: StreamSettings, what: str) -> SettingsError:
    return SettingsError(f"streams: {settings.name}: {what}")


def _shape(settings: StreamSettings, of: Mapping[str, Attribute]) -> str:
    """Return a digest of what gives codes, columns and windows their meaning."""
    said = [
        (settings.window_s, settings.begin_s, settings.utc_offset_h, settings.per),
        [(s.name, s.tells) for s in settings.sources],
        [(a.name, a.role) for a in settings.attributes if a.lasting],
        [
            (name, a.label, a.missing, (a.size, float(a.position[0]), float(a.position[-1])))
            for name, a in of.items()
        ],
    ]
    return hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest()
