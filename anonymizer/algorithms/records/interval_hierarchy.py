"""Hierarchies of a number: intervals, each level of which joins neighbours of the one below."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby

from anonymizer.algorithms.records.attributes import ROOT, Branch


def by_width(values: Sequence[Decimal], width: Decimal) -> list[int]:
    """Return the interval of each value; intervals begin at multiples of `width`."""
    return [int((value / width).to_integral_value("ROUND_FLOOR")) for value in values]


def branches_of(
    leaves: Sequence[str], interval: Sequence[int], *, n_levels: int, joined: int
) -> tuple[Branch, ...]:
    """Return the branch of each value: itself, its intervals from narrow to wide, and the root.

    `leaves`: the values as text, rising; `interval`: of each on the lowest level, not falling;
    `joined` (>= 2) intervals are one on the next of `n_levels` (>= 1).

    Notes
    -----
    An interval is labelled by the least and the greatest value in it, as ranges are in a release:
    `[20-24]`. A level that would repeat the one below, or the root, is left out of a branch.
    """
    branches: list[list[str]] = [[leaf] for leaf in leaves]
    for level in range(n_levels):
        number = [each // joined**level for each in interval]
        for _, group in groupby(range(len(leaves)), key=number.__getitem__):
            own = list(group)
            if len(own) == len(leaves):
                continue
            label = f"[{leaves[own[0]]}-{leaves[own[-1]]}]" if len(own) > 1 else leaves[own[0]]
            for at in own:
                if branches[at][-1] != label:
                    branches[at].append(label)
    return tuple((*branch, ROOT) for branch in branches)
