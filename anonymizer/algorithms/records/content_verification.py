"""Independent verification of what leaves: the promise, counted in the content of a class itself.

Whatever formed the class and wrote the content, a reader has nothing else: so persons, lists and
sums are counted here as a reader counts them. Shares no code with what makes classes.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

from anonymizer.domain.promises import Promise

_TOLERANCE = 1e-9


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
        Of the stream. Shares of quasi-identifiers, d and t cannot be read of a class alone: they
        are verified on the records.
    bands
        The sensitive attributes that the promise is about, and the rising edges of the bands of
        each: values of one band count as one.

    Notes
    -----
    Every vehicle weighs one: in the number of records, in each list, in each sum.
    """
    return {c for c, content in enumerate(contents) if not _holds(content, promise, bands)}


def _holds(
    content: Mapping[str, Any], promise: Promise, bands: Mapping[str, Sequence[float]]
) -> bool:
    k = content["k"]
    if k < promise.k or content["count"] != k:
        return False
    for total in content.get("measures", {}).values():
        if total is not None and not promise.k <= total["n"] <= k:
            return False
    for name, values in content["sensitive"].items():
        if len(values) != k:
            return False
        if name in bands and not _is_diverse(values, promise, bands[name]):
            return False
    return True


def _is_diverse(
    values: Sequence[str | float | None], promise: Promise, edges: Sequence[float]
) -> bool:
    """Return whether a list has l values and the entropy, whoever of the margin leaves."""
    shown = [v if v is None or not edges else bisect_right(edges, v) for v in values]
    times = Counter(shown)
    margin = promise.margin
    real = sorted(n for value, n in times.items() if value is not None)
    if len(_without(real, margin if promise.l > 1 else 0)) < promise.l:
        return False
    left = _without(sorted(times.values()), margin)
    n = sum(left)
    entropy = sum(t / n * log(n / t) for t in left)
    return n > 0 and entropy >= log(promise.entropy_l) - _TOLERANCE


def _without(times: Sequence[int], margin: int) -> list[int]:
    """Return rising frequencies when `margin` persons with the rarest values leave."""
    left = []
    for n in times:
        gone = min(n, margin)
        margin -= gone
        if n > gone:
            left.append(n - gone)
    return left
