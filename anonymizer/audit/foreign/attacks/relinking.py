"""Linking: an id goes on as another one, where and when the first ended.

Ids that change are linked to the id that begins nearest; the truth says whether it is the same
person's. If ids do not change, or nobody knows, each id is cut in two, and its second half is
sought among all: what a change of ids would be worth.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.audit.foreign.attack import FEWEST, ForeignAttack, NotMounted, Trials
from anonymizer.audit.foreign.persons import by_person, owners, rows_by_id
from anonymizer.audit.foreign.release import ForeignCase, PointRelease, plane_of
from anonymizer.domain.arrays import FloatArray, IntArray

_WITHIN_S = 86_400.0
_MOST_LINKS = 1000
_FEWEST_ROWS = 4
_SILENT_S = 600.0


class _Pieces(NamedTuple):
    """When and where ids begin and end, in seconds and metres, and whose they are."""

    begins_s: FloatArray
    ends_s: FloatArray
    begins_m: FloatArray
    ends_m: FloatArray
    person: IntArray


def _relinking(case: ForeignCase) -> Trials | NotMounted:
    trace = case.points
    plane, rng = plane_of(trace), np.random.default_rng(case.seed)
    first, rows = rows_by_id(trace)
    xy_m, ts = plane.of(trace.lat, trace.lon)[rows], trace.ts[rows]
    owner = None if case.truth is None else owners(case)
    of_truth = owner is not None and np.bincount(owner[owner >= 0]).max(initial=0) > 1
    if owner is not None and of_truth:
        begin, end, person = first[:-1], first[1:] - 1, owner
        note = "ids that change, judged by the truth"
    else:
        long = np.flatnonzero(np.diff(first) >= _FEWEST_ROWS)
        cut = np.array(
            [_cut(ts, a, b, rng) for a, b in zip(first[long], first[long + 1], strict=True)],
            np.int64,
        )
        begin, end = np.concatenate([first[long], cut]), np.concatenate([cut, first[long + 1]]) - 1
        person = np.concatenate([long, long])
        note = "ids that were cut in two for this trial, where they were silent"
    pieces = _Pieces(ts[begin], ts[end], xy_m[begin], xy_m[end], person)
    who, success, control = _linked(pieces, rng)
    if len(np.unique(who)) < FEWEST:
        return NotMounted(f"fewer than {FEWEST} ids are followed by another one")
    return Trials(by_person(success[:, None], who), by_person(control[:, None], who), note)


def _cut(ts: FloatArray, begin: int, end: int, rng: np.random.Generator) -> int:
    """Return the row at which an id is cut: behind one of its silences, if it has any."""
    silent = np.flatnonzero(np.diff(ts[begin:end]) > _SILENT_S) + begin + 1
    inside = silent[(silent >= begin + 2) & (silent <= end - 2)]
    return int(rng.choice(inside)) if len(inside) else int(rng.integers(begin + 2, end - 1))


def _linked(pieces: _Pieces, rng: np.random.Generator) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return whose each link is, whether it is right, and how probable that was by time alone.

    A link is sought where the person has a further id that begins within a day.
    """
    begins_s, ends_s, begins_m, ends_m, person = pieces
    order = np.argsort(begins_s, kind="stable")
    who, success, control = [], [], []
    for i in rng.permutation(len(ends_s)).tolist():
        a, b = np.searchsorted(begins_s[order], [ends_s[i], ends_s[i] + _WITHIN_S])
        later = order[a:b]
        later = later[later != i]
        mine = person[later] == person[i]
        if person[i] < 0 or not mine.any() or mine.all():
            continue
        next_one = later[mine][0]
        far_m = np.hypot(*(begins_m[later] - ends_m[i]).T)
        # Somebody who is near at once is the same sooner than somebody who is near tomorrow.
        cost = far_m + (begins_s[later] - ends_s[i]) / 60.0
        best = np.flatnonzero(cost <= cost.min() + 1e-6)
        who.append(int(person[i]))
        success.append(float(len(best) == 1 and later[best[0]] == next_one))
        soonest = np.flatnonzero(begins_s[later] == begins_s[later].min())
        control.append(float((later[soonest] == next_one).sum() / len(soonest)))
        if len(who) == _MOST_LINKS:
            break
    return np.array(who, np.int64), np.array(success), np.array(control)


ATTACK = ForeignAttack(
    "linking",
    PointRelease,
    _relinking,
    found="are followed from one id into the next",
    against="by taking whichever id begins next",
    asks="Is a changed id found again where and when the former one ended?",
)
