"""Independent verification of what leaves: the promise, counted in the content of a class itself.

Whatever formed the class and wrote the content, a reader has nothing else: so persons, lists and
sums are counted here as a reader counts them. Shares no code with what makes classes.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anonymizer.algorithms.records.verification import HeldValues, held_by
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.promises import Promise, asked_of
from anonymizer.domain.records import Attribute


def broken_contents(
    contents: Iterable[Mapping[str, Any]],
    promise: Promise,
    bands: Mapping[str, Sequence[float]],
) -> set[int]:
    """Return which contents break the promise for whoever reads them, as their indices.

    Parameters
    ----------
    contents
        Fields of the message of each class.
    promise
        Of the stream. What cannot be read of a class alone is verified on the records.
    bands
        The sensitive attributes that the promise is about, and the rising edges of the bands of
        each: values of one band count as one.

    Notes
    -----
    Every vehicle weighs one: in the number of records, in each list, in each sum.
    """
    contents = list(contents)
    broken = {c for c, content in enumerate(contents) if not _has_persons(content, promise)}
    for name, edges in bands.items():
        told = (c for c, content in enumerate(contents) if name in content["sensitive"])
        whole = [c for c in told if c not in broken]
        asked = [one for one in asked_of(promise, Of.SENSITIVE, name) if one[0].is_read]
        if asked and whole:
            held = held_by_lists([contents[c]["sensitive"][name] for c in whole], edges)
            for criterion, bound in asked:
                fails = criterion.fails(held, bound, promise.margin)
                broken |= {c for c, breaks in zip(whole, fails, strict=True) if breaks}
    return broken


def _has_persons(content: Mapping[str, Any], promise: Promise) -> bool:
    """Return whether k persons are in a class, in each of its sums, and once in each list."""
    k = content["k"]
    if k < max(promise.k, 1) or content["count"] != k:
        return False
    for total in content.get("measures", {}).values():
        if total is not None and not promise.k <= total["n"] <= k:
            return False
    return all(len(values) == k for values in content["sensitive"].values())


def held_by_lists(
    lists: Sequence[Sequence[str | float | None]], edges: Sequence[float]
) -> HeldValues:
    """Return what classes hold by the lists of their values; none is a missing one."""
    of = np.repeat(np.arange(len(lists)), [len(values) for values in lists])
    shown = [
        value if value is None or not edges else bisect_right(edges, value)
        for values in lists
        for value in values
    ]
    numbers = sorted({each for each in shown if isinstance(each, int | float)})
    texts = sorted({each for each in shown if isinstance(each, str)})
    # Codes rise with numbers, as a spread is read off them; a text has no place.
    code_of = {value: code for code, value in enumerate((*numbers, *texts, None))}
    place = np.array([*numbers, *np.zeros(len(texts) + 1)])
    code = np.array([code_of[value] for value in shown])
    return held_by(of, code, np.zeros(0, np.int32), Attribute("", place, missing=code_of[None]))
