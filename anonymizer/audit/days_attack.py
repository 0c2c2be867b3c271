"""Attacks on a release over several days: homes, and when they are left.

They are mounted if the release lasts for two days (UTC) or more and its regions are made of public
pieces.
"""

import numpy as np

from anonymizer.audit.case import Case, mean, of_any
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.days import (
    day_of,
    n_days_with,
    pieces_held_at,
    pieces_within,
    vanishings,
)
from anonymizer.audit.mathematics.departures import Departures, auc, departures, n_held_after
from anonymizer.domain.arrays import FloatArray, IntArray

FEWEST_DAYS = 2
"""Days on which a device vanishes in a piece that is taken for somebody's home."""
SILENT_INTERVALS = 6
"""A device that was not seen for this many of its reporting intervals, in which its group would
have published it, has vanished."""
PARKED_S = 1800.0
"""A device that was silent for so long has been parked, and leaves when it reports again."""
LEAVES_S = 120.0
"""For so long after a departure the adversary watches the place."""
AROUND_S = 3600.0
"""The other moments, of which nobody left, are so near to a departure: traffic is then alike."""
_N_OTHERS = 20
REMOTE_SHARE = 0.1
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
            bar=f"precision <= {MOST_TIMES_BASE:g} base rate",
            holds=None if precision is None else precision <= MOST_TIMES_BASE * base,
        )
    ]


def leaving(case: Case) -> list[Finding]:
    """Recognize when devices leave their known homes, by when these homes are covered.

    Figures are areas under the ROC curve: how often a home is covered more often just after its
    device left than after another moment of the same hour. The control watches another home of
    the same remoteness in place of it.
    """
    if case.piece_of is None:
        return []
    piece_of, time = case.piece_of[0], case.observed.time
    device, ts, node = case.reports
    piece = np.where(node >= 0, piece_of[np.maximum(node, 0)], -1)
    left = departures(device, ts, piece, parked_s=PARKED_S)
    watched = (left.ts > time[0] + AROUND_S / 2) & (left.ts < time[-1] - AROUND_S / 2)
    left = Departures(*(column[watched] for column in left))
    if not len(left.ts):
        return []
    held = pieces_held_at(case.observed, case.pieces(), piece_of)
    # The homes that are published least often come first.
    rank = held[:, left.piece].mean(axis=0).argsort(kind="stable")
    left = Departures(*(column[rank] for column in left))
    rng = np.random.default_rng(case.seed)
    shift = rng.uniform(LEAVES_S, AROUND_S / 2, (len(left.ts), _N_OTHERS))
    others = left.ts[:, None] + shift * rng.choice((-1, 1), shift.shape)

    def told(home: IntArray) -> FloatArray:
        after = n_held_after(held, time, home, left.ts, within_s=LEAVES_S)
        elsewhen = np.broadcast_to(home[:, None], others.shape)
        return auc(after, n_held_after(held, time, elsewhen, others, within_s=LEAVES_S))

    right, control = told(left.piece), told(_another(left.piece))
    n_remote = max(1, round(REMOTE_SHARE * len(right)))
    return [
        Finding(
            attack="leaving",
            figures={
                "auc": mean(right),
                "auc_remote": mean(right[:n_remote]),
                "auc_control": mean(control),
                "auc_control_remote": mean(control[:n_remote]),
                "n_departures": len(right),
            },
        )
    ]


def _another(home: IntArray) -> IntArray:
    """Return for each home the next one that is another piece."""
    n = len(home)
    found = home.copy()
    for step in range(1, n):
        same = found == home
        if not same.any():
            break
        found[same] = np.roll(home, -step)[same]
    return found


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
