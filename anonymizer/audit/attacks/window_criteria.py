"""Criteria of windows: every part of a promise, by what is published and what was received.

A class is judged by its own words (k, lists of sensitive values), and by the recorded vehicles
that can be in it. Where these are as many as it has, they are its members, and everything is
judged; of the others what more members only better: k, d and the spread.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymizer.algorithms.records.content_verification import held_by_lists
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.verification import HeldValues, held_by, verify_classes
from anonymizer.audit.attack import Attack, Subject
from anonymizer.audit.attacks.criteria import QUESTIONS
from anonymizer.audit.criteria_rows import Reached, criteria_rows, reached_of
from anonymizer.audit.findings import Finding
from anonymizer.audit.window_members import (
    Candidates,
    candidates_of,
    codes_of_list,
    told_qis,
    told_sensitive,
)
from anonymizer.audit.window_releases import WindowRelease, WindowsCase
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, criteria_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.silence import Heard

_K = CRITERIA[0]
_MOST_ROWS = 2**20
"""Candidates held at a time."""


@dataclass
class _Tally:
    """The worst class of each criterion and attribute so far, and how many classes break it."""

    worst: dict[tuple[str, str | None], Reached] = field(default_factory=dict)
    n_broken: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, reached: Iterable[Reached]) -> None:
        for each in reached:
            key = each.criterion.name, each.attribute
            before = self.worst.get(key)
            if before is not None and before.value is not None and each.value is not None:
                pick = max if each.criterion.is_most else min
                each = each._replace(value=pick(before.value, each.value))  # noqa: PLW2901
            self.worst[key] = each


def window_criteria(case: WindowsCase) -> Iterator[Finding]:
    """Check every part of the promise, class by class."""
    tally, stream = _Tally(), case.stream
    for window in case.windows:
        candidates = list(candidates_of(window, stream))
        _judge_k(tally, window, candidates, stream.promise)
        for j in told_sensitive(window, stream):
            _judge_lists(tally, window, stream, j)
        if window.whole and window.labels:
            _judge_labels(tally, window, stream, candidates)
    order = {criterion.name: at for at, criterion in enumerate(CRITERIA)}
    rows = sorted(tally.worst.values(), key=lambda each: order[each.criterion.name])
    yield from criteria_rows(rows, stream.promise, tally.n_broken)


def _judge_k(
    tally: _Tally, window: WindowRelease, candidates: Sequence[Candidates], promise: Promise
) -> None:
    for each in candidates:
        n = min(each.published.k, each.n_vehicles) if window.whole else each.published.k
        tally.add([Reached(_K, None, n)])
        tally.n_broken[_K.name, ""] += n < promise.k


def _judge_lists(tally: _Tally, window: WindowRelease, stream: Stream, j: int) -> None:
    """Judge the lists of a sensitive attribute as a reader does, and t by what was received."""
    attribute, name = stream.schema.sensitive[j], stream.sensitive[j].name
    lists = [each.sensitive[name] for each in window.classes if each.sensitive.get(name)]
    is_known = len(stream.schema.qis) + j not in stream.open_columns
    if is_known:
        code = [stream.schema_code_of[j][codes_of_list(stream.sensitive[j], x)] for x in lists]
        of = np.repeat(np.arange(len(lists)), [len(each) for each in code])
        received = window.joined.cells[:, len(stream.schema.qis) + j]
        usual = np.bincount(stream.schema_code_of[j][received], minlength=attribute.size)
        value = np.concatenate(code).astype(np.int64)
        held = held_by(of, value, np.zeros(0, np.int32), attribute, usual)
    else:
        held = held_by_lists(lists, ())
    for criterion in criteria_of(Of.SENSITIVE):
        if criterion.is_read or (is_known and window.whole):
            _judge(tally, criterion, name, held, stream.promise)


def _judge(
    tally: _Tally, criterion: ClassCriterion, name: str, held: HeldValues, promise: Promise
) -> None:
    if criterion.per_attribute and not held.attribute.numeric:
        return
    bound = criterion.bound_for(getattr(promise, criterion.name), name)
    value = criterion.value(held, 0)
    worst = (value.max() if criterion.is_most else value.min()).item()
    tally.add([Reached(criterion, name, worst)])
    if bound != criterion.neutral:
        fails = criterion.fails(held, bound, promise.margin)
        tally.n_broken[criterion.name, name] += int(fails.sum())


def _judge_labels(
    tally: _Tally, window: WindowRelease, stream: Stream, candidates: Sequence[Candidates]
) -> None:
    """Judge the quasi-identifiers by the recorded vehicles that can be in each class."""
    heard = Heard(stream, (), tuple(told_qis(window, stream)), ())
    loose = {each.name: each.default for each in CRITERIA if each.is_most}
    certain = [each for each in candidates if each.certain]
    others = [each for each in candidates if not each.certain and len(each.rows)]
    cells = np.ascontiguousarray(window.joined.cells[:, : len(stream.schema.qis)])
    for some, promise in ((certain, heard.promise), (others, replace(heard.promise, **loose))):
        for batch in _batches(some):
            rows = np.concatenate([each.rows for each in batch])
            of = np.repeat(np.arange(len(batch), dtype=np.int32), [len(x.rows) for x in batch])
            person = np.arange(len(rows), dtype=np.int32)  # each class is judged alone
            told = heard.only(Records(cells[rows], np.zeros((len(rows), 0), np.int32), person))
            is_judged = {each.name for each in CRITERIA[1:] if some is certain or not each.is_most}
            reached = reached_of(heard.schema, measure(told, heard.schema, of))
            tally.add(each for each in reached if each.criterion.name in is_judged)
            found = verify_classes(told, heard.schema, promise, of)
            tally.n_broken.update(
                (each.part, each.attribute) for each in found if each.part in is_judged
            )


def _batches(candidates: Sequence[Candidates]) -> Iterator[list[Candidates]]:
    batch: list[Candidates] = []
    n = 0
    for each in candidates:
        batch.append(each)
        n += len(each.rows)
        if n >= _MOST_ROWS:
            yield batch
            batch, n = [], 0
    if batch:
        yield batch


ATTACK = Attack("criteria of windows", Subject.WINDOWS, window_criteria, QUESTIONS)
