"""Attacks over several days on a release: homes, and devices that go where they went before.

They are mounted if the release lasts for two days (UTC) or more and its regions are made of public
pieces.
"""

import numpy as np

from anonymizer.algorithms.attacks.days import (
    day_of,
    likeliest_lives,
    n_days_with,
    pieces_held_at,
    pieces_within,
    vanishings,
)
from anonymizer.algorithms.attacks.lives import read_regions
from anonymizer.app.audit.case import Case, mean, of_any
from anonymizer.app.audit.findings import Finding
from anonymizer.domain.arrays import IntArray

FEWEST_DAYS = 2
"""Days on which a device vanishes in a piece that is taken for somebody's home."""
SILENT_INTERVALS = 6
"""A device that was not seen for this many of its reporting intervals, in which its group would
have published it, has vanished."""
LATE_S = 60.0
"""How much earlier or later than on the day before a device may be at a place."""
MOST_TARGETS = 200
MOST_TIMES_BASE = 1.5
MOST_TIMES_CHANCE = 2.0


def homes(case: Case) -> list[Finding]:
    """Guess where homes are from the pieces where devices vanish on several days."""
    day = day_of(case.observed.time)
    if case.piece_of is None or day.max() < FEWEST_DAYS - 1:
        return []
    held = pieces_held_at(
        case.observed, read_regions(case.observed, case.piece_of), case.piece_of[0]
    )
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


def days(case: Case) -> list[Finding]:
    """Guess the pseudonym of a device from where it was at that time on the day before."""
    day = day_of(case.observed.time)
    if case.piece_of is None or day.max() < 1:
        return []
    rng = np.random.default_rng(case.seed)
    targets = np.sort(rng.permutation(case.truth.n_devices)[:MOST_TARGETS])
    guess = likeliest_lives(
        case.observed,
        case.truth.place[:, targets],
        np.unique(case.class_of, return_index=True)[1],
        n_nodes=case.network.n_nodes,
        late_s=LATE_S,
        rng=rng,
    )
    guessed = guess >= 0
    device = np.broadcast_to(targets, guess.shape)[guessed]
    class_of = case.class_of[guess[guessed]]
    # The pseudonyms of a class are the same to the adversary, who names one of them.
    size = np.bincount(case.class_of)[class_of]
    in_class = np.unique(case.class_of * case.truth.n_devices + case.device_of)
    right = np.isin(class_of * case.truth.n_devices + device, in_class)
    success, chance = right / size, 1 / case.observed.largest_k_of[guess[guessed]]
    return [
        Finding(
            attack="days",
            figures={
                "success": of_any(np.mean, success),
                "expected": of_any(np.mean, chance),
                "groups_found": of_any(np.mean, right),
                "n_guesses": len(right),
            },
            bar=f"<= {MOST_TIMES_CHANCE:g} mean(1/k)",
            holds=mean(success) <= MOST_TIMES_CHANCE * mean(chance) if len(right) else None,
        )
    ]


def _homes(case: Case, piece_of: IntArray) -> IntArray:
    """Return the piece where each device's day ended most often, of those where it did twice."""
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
