"""Who may be in the published classes of a window, by what was received."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.audit.window_releases import PublishedClass, WindowRelease
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.records import Attribute
from anonymizer.errors import InputError
from anonymizer.pipeline.records.declaration import Stream


@discreet
class Candidates(NamedTuple):
    """A published class, and the records that can be its members.

    `rows`: indices of the records whose values its labels allow, or may hide; `certain`: whether
    they are as many as the class says, each of another vehicle, and nothing is hidden: then they
    are its members.
    """

    published: PublishedClass
    rows: IntArray
    n_vehicles: int
    certain: bool


def candidates_of(window: WindowRelease, stream: Stream) -> Iterator[Candidates]:
    """Yield the candidates of each class: all records, if labels do not say what it holds.

    Where vehicles are in cohorts, a label with the missing marker may hide any value. O(classes
    times records).
    """
    joined, qis = window.joined, stream.schema.qis
    may_hide = stream.in_cohorts and stream.settings.enforces
    told = told_qis(window, stream)
    for c, each in enumerate(window.classes):
        fits, hides = np.ones(joined.n, bool), not told
        here = np.full(joined.n, c, np.int32)
        for j in told:
            none = np.array([qis[j].missing], np.int32)
            if may_hide and window.labels[j].covers(here[:1], none).any():
                hides = True
            else:
                fits &= window.labels[j].covers(here, joined.cells[:, j])
        rows = np.flatnonzero(fits)
        n = len(np.unique(joined.person[rows]))
        yield Candidates(each, rows, n, certain=not hides and len(rows) == n == each.k)


def told_qis(window: WindowRelease, stream: Stream) -> list[int]:
    """Return the quasi-identifiers of which some label of a window allows a value.

    The others are those of silent sources: nothing is told, and nothing promised, of them.
    """
    each = zip(window.labels, stream.schema.qis, strict=False)
    return [j for j, (labels, qi) in enumerate(each) if (labels.lo != qi.missing).any()]


def told_sensitive(window: WindowRelease, stream: Stream) -> list[int]:
    """Return the sensitive attributes of which some list of a window has a value, likewise."""
    return [
        j
        for j, attribute in enumerate(stream.sensitive)
        if any({*each.sensitive.get(attribute.name, ())} - {None} for each in window.classes)
    ]


def codes_of_list(attribute: Attribute, values: Sequence[str | float | None]) -> Int32Array:
    """Return the codes of published values; InputError if one is outside the domain."""
    code_of: dict[str | float | None, int] = {None: attribute.missing}
    if not attribute.numeric:
        code_of |= {label: code for code, label in enumerate(attribute.label)}
    found = []
    for value in values:
        code = code_of.get(value)
        if code is None and attribute.numeric and isinstance(value, float):
            code = _nearest(attribute, value)
        if code is None:
            raise InputError("a published class does not fit the declared attributes")
        found.append(code)
    return np.array(found, np.int32)


def _nearest(attribute: Attribute, value: float) -> int | None:
    """Return the code of a published number, None if there is none but for its rounding."""
    code = int(np.abs(attribute.position[: attribute.missing] - value).argmin())
    return code if np.isclose(attribute.position[code], value, atol=1e-6) else None
