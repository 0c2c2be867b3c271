"""Leaving: when a device leaves its known home."""

import numpy as np

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.days import pieces_held_at
from anonymizer.audit.mathematics.departures import Departures, auc, departures, n_held_after
from anonymizer.domain.arrays import FloatArray, IntArray

PARKED_S = 1800.0
"""A device that was silent for so long has been parked, and leaves when it reports again."""


LEAVES_S = 120.0
"""For so long after a departure the adversary watches the place."""


AROUND_S = 3600.0
"""The other moments, of which nobody left, are so near to a departure: traffic is then alike."""


_N_OTHERS = 20


REMOTE_SHARE = 0.1


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


ATTACK = Attack(
    "leaving",
    Subject.POSITIONS,
    leaving,
    (
        Question(
            "leaving",
            Criterion.INFERENCE,
            "Is it told when a device leaves its known home? (area under the curve, remotest "
            "tenth)",
            ("auc_remote",),
            ("auc_control_remote",),
            "n_departures",
        ),
    ),
)
