"""The tree that the cells are cut from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.algorithms.cells.tree import LEAF, Tree, divided, plant
from anonymizer.algorithms.cells.tree_features import FeatureArray, encode, owner_of, values_of
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.records import Attribute, Records, Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grown:
    """A tree over the quasi-identifiers of some records.

    Attributes
    ----------
    qis
        The quasi-identifiers.
    features
        Of the records that it was grown on, shape (n, features).
    tree
        Each leaf of as many records as was asked for.
    """

    qis: tuple[Attribute, ...]
    features: FeatureArray
    tree: Tree


def grow(
    records: Records,
    schema: Schema,
    target: ArrayLike | None,
    *,
    min_leaf: int,
    numeric: bool = False,
    seed: int = 0,
    divide: bool = True,
    ccp_alpha: float = 0.0,
) -> Grown:
    """Return a tree over the quasi-identifiers alone, which tells the targets of records apart.

    Parameters
    ----------
    target
        What a model is to learn from the records: their labels, or what a model says of them,
        shape (n,). None: nothing, cells are only to be small.
    min_leaf
        Records of a leaf at the least. Where no two are one person's, k of the promise; `prune`
        counts persons.
    numeric
        Whether the target is a number (a regression tree) and not a class.
    seed
        Decides between splits that are equally good.
    divide
        Whether to go on where the target no longer tells records apart: smaller cells lose less.
    ccp_alpha
        Of minimal cost-complexity pruning, before they are divided further.

    Notes
    -----
    Sensitive attributes are not seen: a cell's border must not tell of them. They may be what the
    target is, but then its cells have few of their values. Time as for a decision tree of
    scikit-learn.
    """
    features = encode(values_of(records.qi, schema.qis), schema.qis)
    tree = _bare(records.n)
    if not records.n or not schema.qis:
        return Grown(schema.qis, features, tree)
    if target is not None:
        model = _model(numeric, min_leaf, seed, ccp_alpha)
        fitted = model.fit(features, np.asarray(target)).tree_
        tree = plant(
            fitted.feature,
            fitted.threshold,
            fitted.children_left,
            fitted.children_right,
            fitted.apply(features),
        )
    if divide:
        tree = divided(tree, features, _weights(features, schema.qis), min_leaf=min_leaf)
    return Grown(schema.qis, features, tree)


def pruning_path(
    records: Records,
    schema: Schema,
    target: ArrayLike,
    *,
    min_leaf: int,
    numeric: bool = False,
    seed: int = 0,
) -> FloatArray:
    """Return every `ccp_alpha` at which `grow` returns another tree, rising; the last a root alone.

    Minimal cost-complexity pruning [1]_: each tree is the one before with its weakest branches cut.

    References
    ----------
    .. [1] L. Breiman et al., "Classification and regression trees", 1984, chapter 3.
    """
    features = encode(values_of(records.qi, schema.qis), schema.qis)
    model = _model(numeric, min_leaf, seed, 0.0)
    alphas: FloatArray = model.cost_complexity_pruning_path(features, target)["ccp_alphas"]
    return np.unique(alphas.clip(0.0))  # the weakest are below 0 by a rounding


def _model(numeric: bool, min_leaf: int, seed: int, ccp_alpha: float) -> Any:  # noqa: ANN401, FBT001  scikit-learn has no types
    from sklearn.tree import (  # noqa: PLC0415  a second to import, for those who ask
        DecisionTreeClassifier,
        DecisionTreeRegressor,
    )

    kind = DecisionTreeRegressor if numeric else DecisionTreeClassifier
    return kind(min_samples_leaf=min_leaf, random_state=seed, ccp_alpha=ccp_alpha)


def _weights(features: FeatureArray, qis: Sequence[Attribute]) -> FloatArray:
    """Return what variances count such that over all records each quasi-identifier has 1.

    What is rare within a domain that is wide, as a large amount, counts by how it differs from
    the others and not by the width of the domain.
    """
    owner = owner_of(qis)
    variance = np.bincount(owner, features.var(axis=0, dtype=np.float64), len(qis))
    return np.divide(1.0, variance, out=np.zeros(len(qis)), where=variance > 0)[owner]


def _bare(n: int) -> Tree:
    """Return the tree that is a root alone."""
    no_child = np.array([LEAF])
    return plant(no_child, np.zeros(1), no_child, no_child, np.zeros(n, np.int64))
