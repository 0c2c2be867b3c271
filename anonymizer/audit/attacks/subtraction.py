"""Subtraction: moving devices among parked ones, once what never changes is taken away."""

import numpy as np

from anonymizer.audit.attack import BLIND, Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, mean, of_any
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.subtraction import (
    covered_throughout,
    subtract_nodes,
    subtract_unchanged,
)
from anonymizer.domain.arrays import BoolArray, IntArray

SUBTRACTION_RATIO = 2.0


SUBTRACTED_SHARES = (1.0, 0.5)
"""Nodes are subtracted that at least this share of a pseudonym's regions contains."""


COVERED_EVERY_S = 60.0
"""Length of a stretch, seconds. Nodes that some region covers in every stretch are subtracted from
all regions. With the defaults every group publishes at least as often."""


def subtraction(case: Case) -> list[Finding]:
    """Find moving devices among parked ones: subtract from their regions what never changes.

    Only pseudonyms are attacked whose device moves during their life, because the adversary looks
    for a device that does. What is subtracted is the same for a whole group: with few groups
    (`n_groups`) the finding is chance, however many records. `throughout_*` are of an adversary who
    subtracts what is covered throughout the release, from the regions of devices that move at any
    time; they have no bar.
    """
    observed = case.observed
    chosen = np.flatnonzero(_moves(case))
    throughout = _throughout(case)
    if not len(chosen):
        return [Finding(attack="subtraction", figures={"n_records": 0} | throughout, bar=_BAR)]
    life = observed.of_pseudonyms(chosen)
    size = life.region_size[life.region_of]
    left_of = {
        share: subtract_unchanged(
            life,
            case.truth,
            device_of=case.device_of[chosen],
            n_nodes=case.network.n_nodes,
            least_share=share,
        )
        for share in SUBTRACTED_SHARES
    }
    success_of = {share: mean(left.holds_device / left.n_nodes) for share, left in left_of.items()}
    # The adversary knows the kind of fleet, and therefore which of these succeeds more often.
    least_share = max(SUBTRACTED_SHARES, key=lambda share: success_of[share])
    left, success = left_of[least_share], success_of[least_share]
    one_in_n = mean(1 / size)
    figures: dict[str, Figure] = {
        "success": success,
        "one_in_n": one_in_n,
        "least_share": least_share,
        "nodes_median": float(np.median(size)),
        "nodes_left_median": float(np.median(left.n_nodes)),
        "share_alone": mean(left.holds_device & (left.n_devices == 1)),
        "share_below_k": mean(left.holds_device & (left.n_devices < life.k)),
        "n_records": life.n_records,
        "n_groups": len(np.unique(case.class_of[chosen])),
    }
    holds = success <= SUBTRACTION_RATIO * one_in_n
    return [Finding(attack="subtraction", figures=figures | throughout, bar=_BAR, holds=holds)]


def _throughout(case: Case) -> dict[str, Figure]:
    """Subtract what is covered throughout the release; None if that is nothing."""
    observed, n_nodes = case.observed, case.network.n_nodes
    subtracted = covered_throughout(observed, n_nodes, every_s=COVERED_EVERY_S)
    n_left, holds_device = subtract_nodes(
        observed, subtracted=subtracted, true_node=case.true_node_of(np.arange(observed.n_records))
    )
    chosen = _moving_devices(case)[case.device_of[observed.pseudonym_of]] & subtracted.any()
    size = observed.region_size[observed.region_of]
    return {
        "throughout_success": of_any(np.mean, (holds_device / n_left)[chosen]),
        "throughout_one_in_n": of_any(np.mean, (1 / size)[chosen]),
        "throughout_n_records": int(chosen.sum()),
    }


def _moving_devices(case: Case) -> BoolArray:
    """Return whether each device ever moves, as in `_moves`, shape (devices,)."""
    place = case.truth.place
    first = place[(place >= 0).argmax(axis=0), np.arange(place.shape[1])].astype(np.int64)
    code = np.unique(np.arange(place.shape[1]) * (case.network.n_nodes + 1) + place + 1)
    device, node = np.divmod(code, case.network.n_nodes + 1)
    away = (node > 0) & _is_away(case, first[device], node - 1)
    return np.bincount(device[away], minlength=place.shape[1]) > 0


def _moves(case: Case) -> BoolArray:
    """Return whether the device of each pseudonym moves during its life, shape (pseudonyms,).

    It moves if it is ever neither at its first node nor at a neighbour: a receiver's noise alone
    puts a device that stands still at one or the other.
    """
    observed = case.observed
    node = case.true_node_of(np.arange(observed.n_records)).astype(np.int64)
    starts = observed.first_record_of[:-1]
    first = np.repeat(node[starts], np.diff(observed.first_record_of))
    return np.logical_or.reduceat(_is_away(case, first, node), starts)


def _is_away(case: Case, first: IntArray, node: IntArray) -> BoolArray:
    """Return whether nodes are neither the first ones nor their neighbours, same shape."""
    network = case.network
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    roads = tail * network.n_nodes + network.neighbour_of
    away: BoolArray = (node != first) & ~np.isin(first * network.n_nodes + node, roads)
    return away


_BAR = f"<= {SUBTRACTION_RATIO:g} x 1/nodes"
ATTACK = Attack(
    "subtraction",
    Subject.POSITIONS,
    subtraction,
    (
        Question(
            "subtraction",
            Criterion.INFERENCE,
            "Is the junction known that remains when other areas are taken away?",
            ("success",),
            ("one_in_n",),
            "n_groups",
            against=BLIND,
            bar=_BAR,
        ),
    ),
    needs_map=True,
)
