"""Truth of windows: whether labels contain the members of classes, and the rest is as received.

Of windows that were recorded from end to end. The recorded vehicles that a class may have must be
as many as it says, and so must those with each value of its lists; its sums must be possible. A
recording does not say which parts were late, so each vehicle counts as it was after any of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from anonymizer.audit.attack import Attack, Subject
from anonymizer.audit.attacks.labels import LABELS, TRUTH
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.window_members import (
    Candidates,
    candidates_of,
    codes_of_list,
    told_sensitive,
)
from anonymizer.audit.window_releases import WindowRelease, WindowsCase
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.pipeline.records.declaration import Stream

_ROUNDING = 1e-6


def window_truth(case: WindowsCase) -> Iterator[Finding]:
    """Compare the classes of each whole window with what was received."""
    stream = case.stream
    n_false: Counter[str] = Counter()
    whole = [each._replace(joined=each.states) for each in case.windows if each.whole]
    for window in whole:
        n_false["of"] += any(each.of != len(window.classes) for each in window.classes)
        for each in candidates_of(window, stream):
            n_false["labels"] += each.n_vehicles < each.published.k
            n_false.update(_false_lists(window, stream, each))
            n_false.update(_false_sums(window, stream, each))
    n: dict[str, Figure] = {"n_windows": len(whole)}
    yield required(
        "labels", n | {"n_classes_outside": n_false["labels"]}, "fit as many as they say",
        holds=not n_false["labels"],
    )  # fmt: skip
    for name in ("of", *(a.name for a in (*stream.sensitive, *stream.measures))):
        what = "n_windows_false" if name == "of" else "n_classes_false"
        yield required(
            "truth", n | {what: n_false[name]}, "as received", holds=not n_false[name], of=name
        )


def _false_lists(window: WindowRelease, stream: Stream, each: Candidates) -> Iterator[str]:
    """Yield the attributes of which a value is listed more often than it was received."""
    n_qis = len(stream.schema.qis)
    for j in told_sensitive(window, stream):
        attribute = stream.sensitive[j]
        if n_qis + j in stream.open_columns:
            continue
        listed = codes_of_list(attribute, each.published.sensitive.get(attribute.name, ()))
        n_listed = np.bincount(listed, minlength=attribute.size)
        stated = np.column_stack(
            [window.joined.person[each.rows], window.joined.cells[each.rows, n_qis + j]]
        )
        received = np.unique(stated, axis=0)[:, 1]
        if (n_listed > np.bincount(received, minlength=attribute.size)).any():
            yield attribute.name


def _false_sums(window: WindowRelease, stream: Stream, each: Candidates) -> Iterator[str]:
    """Yield the measures whose total no members of the class could have."""
    first = len(stream.schema.qis) + len(stream.schema.sensitive)
    for j, attribute in enumerate(stream.measures, start=first):
        total = each.published.measures.get(attribute.name)
        code: Int32Array = window.joined.cells[each.rows, j]
        stated = code != attribute.missing
        value, person = attribute.position[code[stated]], window.joined.person[each.rows][stated]
        if total is not None and not _is_possible(total, value, person):
            yield attribute.name


def _is_possible(total: Mapping[str, float], value: FloatArray, person: Int32Array) -> bool:
    """Return whether one value each of some of these persons have a total."""
    n, found = int(total["n"]), total["sum"]
    order = np.lexsort((value, person))
    value, first = value[order], np.flatnonzero(np.diff(person[order], prepend=-1))
    if not 0 < n <= len(first):
        return False
    low, high = np.sort(value[first]), np.sort(value[np.append(first[1:], len(value)) - 1])
    slack = _ROUNDING * max(abs(found), float(np.abs(high).sum()), float(np.abs(low).sum()), 1.0)
    is_sum = low[:n].sum() - slack <= found <= high[len(high) - n :].sum() + slack
    return bool(is_sum) and abs(total["mean"] * n - found) <= slack * n


ATTACK = Attack("truth of windows", Subject.WINDOWS, window_truth, (LABELS, TRUTH))
