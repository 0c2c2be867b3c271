"""Published labels as text: which codes of an attribute each one allows."""

import math
import re

import numpy as np

from anonymizer.domain.records import NO_CODE, Attribute

MISSING = "?"
_RANGE = re.compile(r"\[(-?[0-9]+(?:\.[0-9]+)?)-(-?[0-9]+(?:\.[0-9]+)?)\]")
_PART = re.compile(r"(?:[^\\|}]|\\.)+")
_HOURS = re.compile(r"[^()]+\((\d\d)-(\d\d)\)")
_AREAS = ("区域", " area")
_EVERYWHERE = ("全部区域", "all areas")
_UNKNOWN = (("未知区域", "unknown area"), ("未知时段", "unknown time"))
"""What stands for no category, and for no time."""
_CLOSE = 1e-9
"""How far a number may lie beside its place, as a share of the domain's greatest number."""

Run = tuple[int, int]
"""First and last of codes that follow each other."""


def runs_of(label: str, attribute: Attribute) -> list[Run]:
    r"""Return the codes that a label allows, as rising runs that do not touch.

    Parameters
    ----------
    label
        `[lo-hi]`, a number, a category or a node of the hierarchy; or several of these, or `?`,
        as `{a|b}`, in which a `\` stands before each `\`, `|` and `}` of a name. Or a label of
        KACA in either language: a region, or the hours of a day whose minutes are the domain.

    Raises
    ------
    ValueError
        If it is none of these, or allows nothing.

    Notes
    -----
    A node allows its leaves; the missing marker is allowed only by name.
    """
    inside = label[1:-1] if label.startswith("{") and label.endswith("}") else None
    if inside is None:
        parts = [label]
    else:
        found = _PART.findall(inside)
        if not found or "|".join(found) != inside:
            raise ValueError("is no label")
        parts = [re.sub(r"\\(.)", r"\1", part) for part in found]
    return _merged([run for part in parts for run in _runs_of_part(part, attribute)])


def _runs_of_part(part: str, attribute: Attribute) -> list[Run]:
    if part in attribute.label:
        code = attribute.label.index(part)
        return [(code, code)]
    if part == MISSING and attribute.missing != NO_CODE:
        return [(attribute.missing, attribute.missing)]
    tree = attribute.hierarchy
    if tree is not None and part in tree.label:
        below = (tree.ancestor == tree.label.index(part)).any(axis=1)
        return [(int(c), int(c)) for c in np.flatnonzero(below) if c != attribute.missing]
    if (told := _codes_of_words(part, attribute)) is not None:
        return [(code, code) for code in told]
    if not attribute.numeric:
        raise ValueError("is no label")
    ends = _RANGE.fullmatch(part)
    try:
        lo, hi = (float(ends[1]), float(ends[2])) if ends else (float(part), float(part))
    except ValueError:
        raise ValueError("is no label") from None
    place = attribute.position[: None if attribute.missing == NO_CODE else attribute.missing]
    if not len(place) or not (math.isfinite(lo) and math.isfinite(hi)):
        raise ValueError("is no label")
    close = _CLOSE * max(1.0, float(np.abs(place).max()))
    first = int(np.searchsorted(place, lo - close))
    last = int(np.searchsorted(place, hi + close, side="right")) - 1
    if last < first:
        raise ValueError("lies outside its domain")
    return [(first, last)]


def _codes_of_words(part: str, attribute: Attribute) -> list[int] | None:
    """Return the codes that a region or a part of the day allows; None: it is neither."""
    if part in _UNKNOWN[attribute.numeric] and attribute.missing != NO_CODE:
        return [attribute.missing]
    if attribute.numeric:
        return _codes_of_hours(part, attribute)
    area = next((area for area in _AREAS if part.endswith(area)), None)
    begin = "" if part in _EVERYWHERE else part.removesuffix(area or "")
    if part not in _EVERYWHERE and (area is None or not begin):
        return None
    there = enumerate(attribute.label)
    return [c for c, name in there if c != attribute.missing and name.startswith(begin)] or None


def _codes_of_hours(part: str, attribute: Attribute) -> list[int] | None:
    found = _HOURS.fullmatch(part)
    if found is None:
        return None
    first, end = int(found[1]), int(found[2])
    real = np.flatnonzero(np.arange(attribute.size) != attribute.missing)
    hour = attribute.position[real] / 60
    if not (first < 24 and 0 < end <= 24 and ((hour >= 0) & (hour < 24)).all()):
        return None
    within = (hour >= first) & (hour < end) if first < end else (hour >= first) | (hour < end)
    return real[within].tolist() or None


def _merged(runs: list[Run]) -> list[Run]:
    merged: list[Run] = []
    for lo, hi in sorted(runs):
        if merged and lo <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], hi))
        else:
            merged.append((lo, hi))
    return merged
