"""A medical table, the mean radius of a tumour sensitive, and what the seed makes of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.domain.promises import Promise
from experiments.cells_experiment import EDGES, Split, published_cells, splits


def _promises(ks: Iterable[int], ls: Sequence[int]) -> list[Promise]:
    return [Promise(k=k, l=diverse) for k in ks for diverse in ls if diverse <= k]


def test_independent_code_finds_k_persons_and_l_bands_behind_every_cell() -> None:
    (split,) = splits(1)
    grown = {k: split.grown(k) for k in range(2, 21)}
    for promise in _promises(range(2, 21), range(1, len(EDGES) + 2)):
        cells = split.pruned(grown[promise.k], promise)
        assert cells.deletion_ratio == 0.0
        assert not verify_classes(split.records, split.schema, promise, cells.class_of)


@dataclass
class Compared:
    """Mean deletion ratio and score over splits, the seed's and ours."""

    promise: Promise
    seeds: tuple[float, float]
    ours: tuple[float, float]


def _compared(splits: list[Split], promises: list[Promise]) -> list[Compared]:
    out = []
    for promise in promises:
        seeds = [split.published(published_cells(split, promise)) for split in splits]
        ours = [split.ours(split.pruned(split.grown(promise.k), promise)) for split in splits]
        out.append(Compared(promise, *(tuple(np.mean(x, axis=0)) for x in (seeds, ours))))
    return out


def _check_that_ours_is_in_front(found: list[Compared]) -> None:
    """No more is deleted, and what is no less private scores no less."""
    for each in found:
        as_private = [
            other.ours
            for other in found
            if other.promise.k >= each.promise.k and other.promise.l >= each.promise.l
        ]
        ratio, score = each.seeds
        assert max(s for r, s in as_private if r <= ratio) >= score


def test_a_model_learns_more_from_these_cells_than_from_the_seeds() -> None:
    found = _compared(splits(2), _promises([3, 10], [1, 3]))
    _check_that_ours_is_in_front(found)
    assert all(each.ours[1] > each.seeds[1] for each in found)


@pytest.mark.soak
def test_a_model_learns_as_much_at_every_deletion_ratio_for_k_from_2_to_20() -> None:
    found = _compared(splits(6), _promises(range(2, 21), [1, 2, 3, 4]))
    _check_that_ours_is_in_front(found)
    gain = np.array([each.ours[1] - each.seeds[1] for each in found])
    assert gain.mean() > 0.03
    # One of 171 rows more or less, where both do as well.
    assert gain.min() > -0.01
    assert (gain > 0).mean() > 0.95
