"""Positions with counts: a release read together with the counts of the same devices."""

import numpy as np
from scipy.sparse import csr_array

from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.regions_and_counts import cells_given_counts
from anonymizer.audit.publications import counting_times, last_records, true_traffic
from anonymizer.audit.read_counts import runs_counted
from anonymizer.domain.arrays import FloatArray
from anonymizer.errors import InputError

TOGETHER_TIMES = 1.5
"""Bar of positions read with counts, in multiples of the release alone."""


def positions_with_counts(case: Case) -> list[Finding]:
    """Read the release together with the safe counts that the same settings publish.

    The belief in the cell where a device is, beside that of the release alone and, as a control,
    that with the counts of another interval. All counts are made of the true positions.
    """
    counts = case.counts
    if counts is None or case.until is None or not case.network.has_coordinates:
        return []
    try:
        times = counting_times(case.reports.ts, every_s=counts.every_s)
    except InputError:  # of less than two intervals
        return []
    traffic = true_traffic(case.reports, case.network, times, present_s=counts.every_s)
    cell_of = compact_parts(case.network, counts.cells).astype(np.int64)
    cells = np.where(traffic.place >= 0, cell_of[traffic.place], -1)
    counted = [runs_counted(now, counts) for now in cells]
    observed = case.observed
    region = np.repeat(np.arange(observed.n_regions), observed.region_size)
    share = 1.0 / observed.region_size[region]
    shape = (observed.n_regions, counts.cells)
    shares = csr_array((share, (region, cell_of[observed.node])), shape=shape)
    shares.sum_duplicates()
    beliefs: list[FloatArray] = []
    for t, records in enumerate(last_records(observed, times, case.until)):
        record = records[records >= 0]
        device = case.device_of[observed.pseudonym_of[record]]
        true = cells[t, device]
        # Whoever is published for a silent device is not in the counts.
        record, device, true = (each[true >= 0] for each in (record, device, true))
        of, row, n = np.unique(observed.region_of[record], return_inverse=True, return_counts=True)
        if not len(of):
            continue
        other = counted[(t + len(counted) // 2) % len(counted)]
        read = [shares[of]] + [
            cells_given_counts(shares[of], n.astype(np.float64), *each)
            for each in (counted[t], other)
        ]
        at = [np.asarray(each[row.ravel(), true]).ravel() for each in read]
        beliefs.append(np.stack([device.astype(np.float64), *at]))
    return [_joint_finding(np.concatenate(beliefs, axis=1))] if beliefs else []


def _joint_finding(beliefs: FloatArray) -> Finding:
    """Return the finding from device, belief alone, with counts, and with others, by trial."""
    _, victim = np.unique(beliefs[0], return_inverse=True)
    n = np.bincount(victim)
    alone, together, control = (np.bincount(victim, each) / n for each in beliefs[1:])
    most = np.argsort(-together, kind="stable")[: max(len(n) // 10, 1)]
    figures: dict[str, Figure] = {
        "belief_alone": float(alone.mean()),
        "belief_together": float(together.mean()),
        "belief_control": float(control.mean()),
        "tenth_together": float(together[most].mean()),
        "tenth_control": float(control[most].mean()),
        "n_victims": len(n),
    }
    return Finding(
        attack="positions with counts",
        figures=figures,
        bar=_BAR,
        holds=bool(together.mean() <= TOGETHER_TIMES * max(alone.mean(), control.mean())),
    )


_BAR = f"belief <= {TOGETHER_TIMES:g} that without counts"


def _has_counts(case: Case) -> bool:
    return case.counts is not None


ATTACK = Attack(
    "positions with counts",
    Subject.POSITIONS,
    positions_with_counts,
    (
        Question(
            "positions with counts",
            Criterion.INFERENCE,
            "Do counts of the same devices tell where in its area a device is?",
            ("belief_together",),
            ("belief_alone", "belief_control"),
            n="n_victims",
            exposed="tenth_together",
            exposed_control="tenth_control",
            against="without these counts",
            bar=_BAR,
            together="positions and counts of",
        ),
    ),
    needs_map=True,
    applies=_has_counts,
)
