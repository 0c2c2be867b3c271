"""Homes: where devices vanish on several days.

It is mounted if the release lasts for two days (UTC) or more and its regions are made of public
pieces.
"""

import numpy as np

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, mean, of_any
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.days import (
    day_of,
    n_days_with,
    pieces_held_at,
    pieces_within,
    vanishings,
)
from anonymizer.domain.arrays import IntArray

FEWEST_DAYS = 2
"""Days on which a device vanishes in a piece that is taken for somebody's home."""


SILENT_INTERVALS = 6
"""A device that was not seen for this many of its reporting intervals, in which its group would
have published it, has vanished."""


MOST_TIMES_BASE = 1.5


def homes(case: Case) -> list[Finding]:
    """Guess where homes are from the pieces where devices vanish on several days."""
    day = day_of(case.observed.time)
    if case.piece_of is None or day.max() < FEWEST_DAYS - 1:
        return []
    held = pieces_held_at(case.observed, case.pieces(), case.piece_of[0])
    # By then every group has published again, and a device has not gone farther than this.
    beat_s = max(case.observed.interval_s, case.tick_s)
    silent_s = SILENT_INTERVALS * max(case.reports.interval_s, case.tick_s)
    lost = vanishings(
        held,
        pieces_within(case.network, case.piece_of[0], reach_s=beat_s),
        case.observed.time,
        within_s=max(silent_s, beat_s + case.tick_s),
    )
    guessed = n_days_with(lost, day) >= FEWEST_DAYS
    home = _homes(case, case.piece_of[0])
    is_home = np.isin(np.arange(len(guessed)), home)
    precision, base = of_any(np.mean, is_home[guessed]), mean(is_home)
    return [
        Finding(
            attack="homes",
            figures={
                "found_share": of_any(np.mean, guessed[home]),
                "precision": precision,
                "base_rate": base,
                "n_homes": len(home),
                "n_guesses": int(guessed.sum()),
                "n_days": int(day.max()) + 1,
            },
            bar=_BAR,
            holds=None if precision is None else precision <= MOST_TIMES_BASE * base,
        )
    ]


def _homes(case: Case, piece_of: IntArray) -> IntArray:
    """Return the piece where each device's day ended most often, at least twice."""
    device, ts, node = case.reports
    order = np.lexsort((ts, day_of(ts), device))
    order = order[node[order] >= 0]
    pair = np.stack((device[order], day_of(ts[order])))
    last = order[(np.diff(pair, append=-1) != 0).any(axis=0)]
    ended, n = np.unique(np.stack((device[last], piece_of[node[last]])), axis=1, return_counts=True)
    kept = (n >= FEWEST_DAYS) & (ended[1] >= 0)
    who, piece, n = ended[0][kept], ended[1][kept], n[kept]
    most = np.lexsort((-n, who))
    first = np.diff(who[most], prepend=-1) != 0
    homes: IntArray = piece[most][first]
    return homes


_BAR = f"precision <= {MOST_TIMES_BASE:g} base rate"
ATTACK = Attack(
    "homes",
    Subject.POSITIONS,
    homes,
    (
        Question(
            "homes",
            Criterion.INFERENCE,
            "Are homes found where devices vanish on several days?",
            ("precision",),
            ("base_rate",),
            "n_guesses",
            bar=_BAR,
        ),
    ),
)
