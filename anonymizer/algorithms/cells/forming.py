"""Cells in one go: grow a tree, cut it back."""

from numpy.typing import ArrayLike

from anonymizer.algorithms.cells.growing import grow
from anonymizer.algorithms.cells.pruning import Cells, prune
from anonymizer.algorithms.records.problem import pose
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema


def cells(
    records: Records,
    schema: Schema,
    promise: Promise,
    *,
    target: ArrayLike | None,
    numeric: bool = False,
    seed: int = 0,
) -> Cells:
    """Return the cells of a decision tree that keep the promise.

    Parameters
    ----------
    target, numeric, seed
        See `grow`.

    Raises
    ------
    ValueError
        If the promise cannot be kept by any table: see `check_cells_promise`.
    """
    check_cells_promise(promise)
    grown = grow(records, schema, target, min_leaf=promise.k, numeric=numeric, seed=seed)
    return prune(grown, pose(records, schema, promise))


def check_cells_promise(promise: Promise) -> None:
    """Raise `ValueError` where a cell of k persons could not have as many values as is asked for.

    A larger cell could; but whoever asks for it means a larger k, and has to say so.
    """
    if promise.k < 1 or promise.l < 1:
        raise ValueError("k and l are at least 1")
    for name, value in (("l", promise.l), ("entropy-l", promise.entropy_l)):
        if value > promise.k:
            raise ValueError(f"{name} = {value:g} is more than k = {promise.k}, a cell's persons")
