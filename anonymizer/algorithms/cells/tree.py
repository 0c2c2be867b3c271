"""A binary tree over features, and the records below each of its nodes.

The tree that the cells are cut from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.algorithms.cells.tree_features import FeatureArray, encode, owner_of, values_of
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.records import Attribute, Records, Schema

LEAF = -1
"""Child of a node that has none."""

NODE = np.dtype(
    [
        ("feature", np.int64),
        ("threshold", np.float64),
        ("left", np.int64),
        ("right", np.int64),
        ("start", np.int64),
        ("size", np.int64),
    ],
    align=True,
)
"""A node: a record whose `feature` is at most the `threshold` goes `left`, any other `right`.

`start` and `size` tell which records of `Tree.order` are below it.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """Nodes, the root first, a child always behind its parent.

    Attributes
    ----------
    node
        A record array of `NODE`, shape (nodes,).
    order
        Records of the table that it was grown on, such that those below a node follow each other,
        shape (n,).
    """

    node: RecordArray
    order: IntArray


def plant(
    feature: Int32Array | IntArray,
    threshold: FloatArray,
    left: Int32Array | IntArray,
    right: Int32Array | IntArray,
    leaf_of: IntArray,
) -> Tree:
    """Return the tree of these nodes, shape (nodes,) each; record i is in the leaf `leaf_of[i]`.

    O(nodes + n log n).
    """
    node = np.zeros(len(left), NODE)
    node["feature"], node["threshold"], node["left"], node["right"] = (
        feature,
        threshold,
        left,
        right,
    )
    node["size"] = np.bincount(leaf_of, minlength=len(left))
    _lay_out(node)
    return Tree(node, np.argsort(node["start"][leaf_of], kind="stable"))


@kernel
def _lay_out(node: RecordArray) -> None:
    """Sum the sizes of the leaves up to the root, and say where each node begins."""
    for at in range(len(node) - 1, -1, -1):
        if node[at]["left"] != LEAF:
            node[at]["size"] = node[node[at]["left"]]["size"] + node[node[at]["right"]]["size"]
    for at in range(len(node)):
        if node[at]["left"] != LEAF:
            left, right = node[node[at]["left"]], node[node[at]["right"]]
            left["start"] = node[at]["start"]
            right["start"] = node[at]["start"] + left["size"]


def divided(tree: Tree, features: FeatureArray, weight: FloatArray, *, min_leaf: int) -> Tree:
    """Return the tree with its leaves divided further, as long as each part has `min_leaf` records.

    Parameters
    ----------
    weight
        What the variance of each feature counts, shape (features,); 0: it is not divided on.

    Notes
    -----
    A leaf is divided where its records differ most: on the feature of the greatest weighted
    variance, as near to the median as equal values allow; where no value leaves `min_leaf` on both
    sides, on the next feature. O(n features log n).
    """
    # Every leaf with records has at least one, every new one at least `min_leaf`.
    node = np.zeros(len(tree.node) + 2 * (len(tree.order) // min_leaf), NODE)
    node[: len(tree.node)] = tree.node
    order = tree.order.copy()
    n_nodes = _divide(features, weight, min_leaf, len(tree.node), node, order)
    return Tree(node[:n_nodes].copy(), order)


@kernel
def _divide(
    features: FeatureArray,
    weight: FloatArray,
    min_leaf: int,
    n_nodes: int,
    node: RecordArray,
    order: IntArray,
) -> int:
    """Divide all leaves, the new ones included; return how many nodes there are then."""
    at = 0
    while at < n_nodes:
        start, size = node[at]["start"], node[at]["size"]
        if node[at]["left"] == LEAF and size >= 2 * min_leaf:
            member = order[start : start + size]
            feature, threshold = _best_cut(features, weight, member, min_leaf)
            if feature >= 0:
                below = features[:, feature][member] <= threshold
                n_left = below.sum()
                member[:] = np.concatenate((member[below], member[~below]))
                node[at]["feature"] = feature
                node[at]["threshold"] = threshold
                node[at]["left"] = n_nodes
                node[at]["right"] = n_nodes + 1
                for child in range(n_nodes, n_nodes + 2):
                    node[child]["left"] = LEAF
                    node[child]["right"] = LEAF
                node[n_nodes]["start"] = start
                node[n_nodes]["size"] = n_left
                node[n_nodes + 1]["start"] = start + n_left
                node[n_nodes + 1]["size"] = size - n_left
                n_nodes += 2
        at += 1
    return n_nodes


@kernel
def _best_cut(
    features: FeatureArray, weight: FloatArray, member: IntArray, min_leaf: int
) -> tuple[int, float]:
    """Return the feature and threshold that divide the records; feature -1: none does."""
    variance = weight * _variances(features, member)
    for feature in np.argsort(-variance, kind="mergesort"):
        if variance[feature] <= 0:
            break
        value = np.sort(features[:, feature][member])
        cut = _middle_cut(value, min_leaf)
        if cut > 0:
            return feature, (np.float64(value[cut - 1]) + np.float64(value[cut])) / 2
    return -1, 0.0


@kernel
def _variances(features: FeatureArray, member: IntArray) -> FloatArray:
    n_features = features.shape[1]
    total, squares = np.zeros(n_features), np.zeros(n_features)
    for i in member:
        for f in range(n_features):
            # From the first record: what all share does not drown what they differ in.
            off = np.float64(features[i, f]) - np.float64(features[member[0], f])
            total[f] += off
            squares[f] += off * off
    mean = total / len(member)
    return squares / len(member) - mean * mean


@kernel
def _middle_cut(value: FeatureArray, min_leaf: int) -> int:
    """Return how many of the sorted values go left, near to half of them; 0: no cut is possible."""
    n = len(value)
    for off in range(n // 2 + 1):
        for cut in (n // 2 - off, (n + 1) // 2 + off):
            if min_leaf <= cut <= n - min_leaf and value[cut - 1] < value[cut]:
                return cut
    return 0


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
