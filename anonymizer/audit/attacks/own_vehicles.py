"""Own vehicles: who has some of a published class subtracts them.

An adversary subtracts its own vehicles from a class. Those that tell most are the worst choice for
the others, see `verify_classes`. Lists are attacked as published; quasi-identifiers where the
recorded vehicles whom the labels of a class cover are as many as it has: they are its members.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, log

import numpy as np

from anonymizer.algorithms.records.content_verification import broken_contents
from anonymizer.algorithms.records.verification import PARTS, verify_classes
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.window_members import candidates_of, told_qis
from anonymizer.audit.window_releases import (
    PublishedClass,
    WindowRelease,
    WindowsCase,
    says_what_it_holds,
)
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.declaration import Stream


def own_vehicles(case: WindowsCase) -> Iterator[Finding]:
    """Attack every class as who has the worst `n_owned` of its vehicles, if that is any."""
    if not case.n_owned:
        return
    yield from _list_findings(case.classes, case.stream, case.n_owned)
    if says_what_it_holds(case.stream):
        yield from _member_findings(case.windows, case.stream, case.n_owned)


def _list_findings(
    classes: Sequence[PublishedClass], stream: Stream, n_own: int
) -> Iterator[Finding]:
    """Attack the lists of all classes as who has the worst `n_own` vehicles of each."""
    promise = _left_to(stream, n_own)
    bands_of = {a.name: a.bands for a in stream.settings.attributes}
    asked = stream.settings.promise.k_extra >= n_own
    for attribute in stream.sensitive:
        name = attribute.name
        shown = [
            {"k": each.k, "count": each.k, "sensitive": {name: each.sensitive[name]}}
            for each in classes
            if name in each.sensitive
        ]
        # A source that was silent has no values: nothing was promised of them.
        told = [each for each in shown if {*each["sensitive"][name]} - {None}]  # type: ignore[index]
        left = [_left(each["sensitive"][name], n_own) for each in told]  # type: ignore[index]
        broken = broken_contents(told, promise, {name: bands_of[name]})
        figures: dict[str, Figure] = {
            "values_min": min((n for n, _ in left), default=0),
            "entropy_l_min": min((entropy for _, entropy in left), default=0.0),
            "n_read": sum(n == 1 for n, _ in left),
            "n_classes_broken": len(broken),
        }
        yield required(
            f"own vehicles: {n_own} in each class", figures, "keeps what a reader can verify",
            holds=not broken, asked=asked, of=name,
        )  # fmt: skip


def _member_findings(
    windows: Sequence[WindowRelease],
    stream: Stream,
    n_own: int,
) -> Iterator[Finding]:
    """Attack every criterion of the classes whose members are certain, likewise."""
    promise, n_classes = _left_to(stream, n_own), 0
    broken: Counter[str] = Counter()
    n_qis = len(stream.schema.qis)
    for window in windows:
        if len(told_qis(window, stream)) < n_qis:  # nothing is promised of what is withheld
            continue
        joined = window.joined
        class_of = np.full(joined.n, -1, np.int32)
        for c, each in enumerate(candidates_of(window, stream)):
            if each.certain:
                class_of[each.rows] = c
        cells = joined.cells[:, n_qis : n_qis + len(stream.schema.sensitive)]
        records = Records(
            np.ascontiguousarray(joined.cells[:, :n_qis]),
            stream.schema_codes(np.ascontiguousarray(cells)),
            joined.person,
        )
        n_classes += len(np.unique(class_of[class_of >= 0]))
        found = verify_classes(records, stream.schema, promise, class_of)
        broken.update(part for part in PARTS if any(one.part == part for one in found))
    for part in PARTS:
        figures: dict[str, Figure] = {"n_classes": n_classes, "n_windows_broken": broken[part]}
        yield required(
            f"own vehicles: {n_own} against {part.replace('_', ' ')}", figures, "none",
            holds=not broken[part],
            asked=stream.settings.promise.k_extra >= n_own and n_classes > 0,
        )  # fmt: skip


def _left_to(stream: Stream, n_own: int) -> Promise:
    """Return what must hold without any `n_own` vehicles of a class."""
    asked = stream.settings.promise
    d = asked.d + n_own if asked.d > 1 else asked.d
    return replace(stream.promise, k=asked.k + n_own, d=d, margin=n_own)


def _left(values: Sequence[str | float | None], n_own: int) -> tuple[int, float]:
    """Return how many values are left of a list without the rarest `n_own`, and exp(entropy)."""
    rising = sorted(Counter(values).items(), key=lambda each: each[1])
    there: list[tuple[object, int]] = []
    for value, n in rising:
        gone = min(n, n_own)
        n_own -= gone
        there += [(value, n - gone)] if n > gone else []
    n_left = sum(n for _, n in there)
    entropy = sum(n / n_left * log(n_left / n) for _, n in there)
    return sum(value is not None for value, _ in there), exp(entropy)


ATTACK = Attack(
    "own vehicles",
    Subject.WINDOWS,
    own_vehicles,
    (
        Question(
            "own vehicles",
            Criterion.INFERENCE,
            "Does somebody who owns some of the vehicles of a group learn about the others?",
            bar="every criterion, as far as k_extra promises it",
        ),
    ),
)
