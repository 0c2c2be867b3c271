"""The last look before anything leaves: from the records and the published words alone.

Nothing here is shared with the code that makes classes and labels. What fails is suppressed whole.
"""

import re
from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.kaca.labels import Form, Label
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Attribute

_ARC = re.compile(r"\((\d\d)-(\d\d)\)")
_RANGE = re.compile(r"\[(-?[\d.]+)-(-?[\d.]+)\]")
_ALTERNATIVE = re.compile(r"(?:[^\\|]|\\.)+", re.DOTALL)
_AREAS = ("区域", " area")
_EVERYWHERE = ("全部区域", "all areas")
_UNKNOWN = ("未知区域", "unknown area", "未知时段", "unknown time", "?")


def short_classes(class_of: Int32Array, person: Int32Array, k: int) -> IntArray:
    """Return the classes of fewer than k distinct persons, rising.

    Parameters
    ----------
    class_of, person
        Of each record, shape (n,); a class below 0 is none.
    """
    order = np.lexsort((person, class_of))
    c, who = class_of[order], person[order]
    fresh = np.ones(len(c), bool)
    fresh[1:] = (c[1:] != c[:-1]) | (who[1:] != who[:-1])
    found, n_persons = np.unique(c[fresh], return_counts=True)
    return found[(n_persons < k) & (found >= 0)].astype(np.int64)


def uncovered(
    code: Int32Array, class_of: Int32Array, qi: Attribute, published: Sequence[str], label: Label
) -> IntArray:
    """Return the classes whose label does not cover every member, rising.

    Parameters
    ----------
    code, class_of
        Of each record, the code of its value and its class, below 0 for none, shape (n,).
    published
        The label of each class.

    Notes
    -----
    O(n log n), and a label is read once for each different value in its class.
    """
    some = class_of >= 0
    pairs = np.unique(np.column_stack([class_of[some], code[some]]), axis=0)
    bad = {c for c, v in pairs.tolist() if not covers(published[c], v, qi, label)}
    return np.array(sorted(bad), np.int64)


def covers(text: str, code: int, qi: Attribute, label: Label) -> bool:
    """Return whether a published label covers a value."""
    if text.startswith("{") and text.endswith("}"):
        each = [re.sub(r"\\(.)", r"\1", part) for part in _ALTERNATIVE.findall(text[1:-1])]
        return any(_covers(part, code, qi, label) for part in each)
    return _covers(text, code, qi, label)


def _covers(text: str, code: int, qi: Attribute, label: Label) -> bool:
    if code == qi.missing:
        return text in _UNKNOWN or text in qi.label[code : code + 1]
    if label.form is Form.HOURS:
        return _in_arc(text, float(qi.position[code]), label)
    if label.form is Form.PREFIX:
        return text in _EVERYWHERE or any(
            text.endswith(area) and qi.label[code].startswith(text[: -len(area)]) for area in _AREAS
        )
    found = _RANGE.fullmatch(text)
    if qi.numeric and found:
        return float(found[1]) <= float(qi.position[code]) <= float(found[2])
    tree = qi.hierarchy
    above = [] if tree is None else [tree.label[node] for node in tree.ancestor[code].tolist()]
    return text in above or text in qi.label[code : code + 1]


def _in_arc(text: str, position: float, label: Label) -> bool:
    """Return whether the hours in brackets hold a position."""
    found = _ARC.search(text)
    if found is None:
        return False
    first, end = int(found[1]), int(found[2])
    # Six digits: 60 minutes are one hour, whatever a division makes of them.
    hour = round((position - label.midnight) / label.per_day * 24, 6) % 24
    return first <= hour < end if first < end else hour >= first or hour < end
