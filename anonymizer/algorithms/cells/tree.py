"""Decision tree over quasi-identifiers, from which `pruning` cuts the cells.

Learned as CART [1]_ does, then divided further where the target no longer distinguishes records.
The records below each node are consecutive.

References
----------
.. [1] L. Breiman et al., "Classification and regression trees", 1984.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.algorithms.cells.learning import learned
from anonymizer.algorithms.cells.nodes import LEAF, NODE
from anonymizer.algorithms.cells.tree_features import (
    CodedFeatures,
    FeatureArray,
    coded_features,
    encode,
    owner_of,
)
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.extras import extra


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """Nodes, the root first, each child after its parent."""

    node: RecordArray
    """A record array of `NODE`, shape (nodes,)."""
    order: IntArray
    """Records of the table that it was grown on, those below a node consecutive, shape (n,)."""


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
    """Sum the sizes of the leaves up to the root, and set the start of each node."""
    for at in range(len(node) - 1, -1, -1):
        if node[at]["left"] != LEAF:
            node[at]["size"] = node[node[at]["left"]]["size"] + node[node[at]["right"]]["size"]
    for at in range(len(node)):
        if node[at]["left"] != LEAF:
            left, right = node[node[at]["left"]], node[node[at]["right"]]
            left["start"] = node[at]["start"]
            right["start"] = node[at]["start"] + left["size"]


def bare(n: int) -> Tree:
    """Return a tree of the root alone, with n records."""
    no_child = np.array([LEAF])
    return plant(no_child, np.zeros(1), no_child, no_child, np.zeros(n, np.int64))


@kernel
def leaves(features: FeatureArray, node: RecordArray) -> IntArray:
    """Return the leaf in which each record lies, shape (n,). O(n height)."""
    leaf = np.zeros(len(features), np.int64)
    for record in range(len(features)):
        at = 0
        while node[at]["left"] != LEAF:
            goes_left = features[record, node[at]["feature"]] <= node[at]["threshold"]
            at = node[at]["left"] if goes_left else node[at]["right"]
        leaf[record] = at
    return leaf


def divided(tree: Tree, features: CodedFeatures, weight: FloatArray, *, min_leaf: int) -> Tree:
    """Return the tree with its leaves divided further, while each part has `min_leaf` records.

    Parameters
    ----------
    weight
        Weight of the variance of each feature, shape (features,); 0: it is not used.

    Notes
    -----
    A leaf is divided on the feature of the greatest weighted variance, as near to the median as
    equal values allow; if no cut leaves `min_leaf` records on both sides, on the next feature.
    O(n features log n).
    """
    # Every leaf with records has at least one, every new one at least `min_leaf`.
    node = np.zeros(len(tree.node) + 2 * (len(tree.order) // min_leaf), NODE)
    node[: len(tree.node)] = tree.node
    order = tree.order.copy()
    n_nodes = _divide(features, weight, min_leaf, len(tree.node), node, order)
    return Tree(node[:n_nodes].copy(), order)


@kernel
def _divide(
    features: CodedFeatures,
    weight: FloatArray,
    min_leaf: int,
    n_nodes: int,
    node: RecordArray,
    order: IntArray,
) -> int:
    """Divide all leaves, the new ones included; return the resulting number of nodes."""
    at = 0
    while at < n_nodes:
        start, size = node[at]["start"], node[at]["size"]
        if node[at]["left"] == LEAF and size >= 2 * min_leaf:
            member = order[start : start + size]
            feature, threshold = _best_cut(features, weight, member, min_leaf)
            if feature >= 0:
                below = _values(feature, features, member) <= threshold
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
    features: CodedFeatures, weight: FloatArray, member: IntArray, min_leaf: int
) -> tuple[int, float]:
    """Return the feature and threshold that divide the records; feature -1 if none does."""
    variance = weight * _variances(features, member)
    for feature in np.argsort(-variance, kind="mergesort"):
        if variance[feature] <= 0:
            break
        value = np.sort(_values(feature, features, member))
        cut = _middle_cut(value, min_leaf)
        if cut > 0:
            return feature, (np.float64(value[cut - 1]) + np.float64(value[cut])) / 2
    return -1, 0.0


@kernel
def _values(feature: int, features: CodedFeatures, member: IntArray) -> FeatureArray:
    """Return a feature of each member."""
    code, value = features.code, features.value
    c, start = features.column[feature], features.start[feature]
    out = np.empty(len(member), np.float32)
    for x in range(len(member)):
        out[x] = value[start + code[member[x], c]]
    return out


@kernel
def _variances(features: CodedFeatures, member: IntArray) -> FloatArray:
    """Return the variance of each feature; of indicators only the two that differ are seen."""
    code, first, start, value = features.code, features.first, features.start, features.value
    total, squares = np.zeros(len(start)), np.zeros(len(start))
    origin = code[member[0]]
    for i in member:
        for c in range(len(origin)):
            own, f = code[i, c], first[c]
            if own == origin[c]:
                continue
            if first[c + 1] - f > 1:
                total[f + own] += 1.0
                squares[f + own] += 1.0
                total[f + origin[c]] -= 1.0
                squares[f + origin[c]] += 1.0
                continue
            # Relative to the first record, for precision: a common offset is removed.
            off = np.float64(value[start[f] + own]) - np.float64(value[start[f] + origin[c]])
            total[f] += off
            squares[f] += off * off
    mean = total / len(member)
    return squares / len(member) - mean * mean


@kernel
def _middle_cut(value: FeatureArray, min_leaf: int) -> int:
    """Return how many of the sorted values go left, near to half; 0 if no cut is possible."""
    n = len(value)
    for off in range(n // 2 + 1):
        for cut in (n // 2 - off, (n + 1) // 2 + off):
            if min_leaf <= cut <= n - min_leaf and value[cut - 1] < value[cut]:
                return cut
    return 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Grown:
    """A tree over the quasi-identifiers of some records."""

    qis: tuple[Attribute, ...]
    """The quasi-identifiers."""
    features: CodedFeatures
    """Features of the records that it was grown on."""
    tree: Tree
    """Every leaf has at least the requested number of records."""


def grow(
    records: Records,
    schema: Schema,
    target: ModelTarget | None,
    *,
    min_leaf: int,
    seed: int = 0,
    divide: bool = True,
    ccp_alpha: float | None = None,
    usual_qi: Sequence[IntArray] | None = None,
) -> Grown:
    """Return a tree over the quasi-identifiers alone that predicts the target of records.

    Parameters
    ----------
    target
        What a model should learn from the records: their labels, or the predictions of a model.
        None: nothing, and cells are only as small as possible.
    min_leaf
        Least number of records in a leaf: k of the promise, if no person has two records; `prune`
        counts persons.
    seed
        Decides between equally good splits where there is a `ccp_alpha`.
    divide
        Whether to divide leaves that the target no longer splits: smaller cells lose less.
    ccp_alpha
        For minimal cost-complexity pruning by scikit-learn, before leaves are divided.
    usual_qi
        How often each code of each quasi-identifier occurs in the table of which the records are a
        part; None: they are all of it.

    Notes
    -----
    Sensitive attributes are not features: the border of a cell must not reveal them. One may be
    the target, but then each cell has few of its values. Time: see `learned`.
    """
    features = coded_features(records.qi, schema.qis)
    tree = bare(records.n)
    if not records.n or not schema.qis:
        return Grown(schema.qis, features, tree)
    if target is not None and ccp_alpha is None:
        tree = Tree(*learned(records.qi, schema.qis, target, min_leaf=min_leaf))
    elif target is not None:
        model = _model(target, min_leaf, seed, ccp_alpha or 0.0)
        seen = features.of()
        fitted = model.fit(seen, target.values).tree_
        tree = plant(
            fitted.feature,
            fitted.threshold,
            fitted.children_left,
            fitted.children_right,
            fitted.apply(seen),
        )
    if divide:
        if usual_qi is None:
            columns = zip(records.qi.T, schema.qis, strict=True)
            usual_qi = [np.bincount(column, minlength=qi.size) for column, qi in columns]
        tree = divided(tree, features, _weights(schema.qis, usual_qi), min_leaf=min_leaf)
    return Grown(schema.qis, features, tree)


def pruning_path(
    records: Records,
    schema: Schema,
    target: ModelTarget,
    *,
    min_leaf: int,
    seed: int = 0,
) -> FloatArray:
    """Return every `ccp_alpha` at which `grow` returns another tree, rising; the last: a mere root.

    Minimal cost-complexity pruning [1]_: each tree is the one before with its weakest branches cut.

    References
    ----------
    .. [1] L. Breiman et al., "Classification and regression trees", 1984, chapter 3.
    """
    features = coded_features(records.qi, schema.qis).of()
    path = _model(target, min_leaf, seed, 0.0).cost_complexity_pruning_path(features, target.values)
    alphas: FloatArray = path["ccp_alphas"]
    return np.unique(alphas.clip(0.0))  # the weakest can be below 0 by rounding


def _model(target: ModelTarget, min_leaf: int, seed: int, ccp_alpha: float) -> Any:  # noqa: ANN401  scikit-learn has no types
    with extra("learn"):
        from sklearn.tree import (  # noqa: PLC0415  an extra
            DecisionTreeClassifier,
            DecisionTreeRegressor,
        )

    kind = DecisionTreeRegressor if target.is_numeric else DecisionTreeClassifier
    return kind(min_samples_leaf=min_leaf, random_state=seed, ccp_alpha=ccp_alpha)


def _weights(qis: Sequence[Attribute], usual: Sequence[IntArray]) -> FloatArray:
    """Return weights with which the variance of each quasi-identifier over all records is 1.

    `usual` is how often each of its codes occurs among them.

    Rare values in a wide domain, such as large amounts, thus count by how they differ from others
    and not by the width of the domain.
    """
    variance = np.zeros(len(qis))
    for j, (qi, counts) in enumerate(zip(qis, usual, strict=True)):
        place = encode(qi.position[:, None], (qi,)).astype(np.float64)
        mean = np.average(place, axis=0, weights=counts)
        variance[j] = np.average((place - mean) ** 2, axis=0, weights=counts).sum()
    weight = np.divide(1.0, variance, out=np.zeros(len(qis)), where=variance > 0)
    return weight[owner_of(qis)]
