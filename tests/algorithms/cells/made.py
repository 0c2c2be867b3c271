"""Cells of a table, in the plainest way."""

from anonymizer.algorithms.cells.pruning import TreeCells, prune
from anonymizer.algorithms.cells.tree import grow
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.promises import Promise, check_cells_promise
from anonymizer.domain.records import Records, Schema


def cells(
    records: Records,
    schema: Schema,
    promise: Promise,
    *,
    target: ModelTarget | None,
    seed: int = 0,
) -> TreeCells:
    """Grow a tree and prune it, in the plainest way."""
    check_cells_promise(promise)
    grown = grow(records, schema, target, min_leaf=promise.k, seed=seed)
    return prune(grown, make_problem(records, schema, promise))
