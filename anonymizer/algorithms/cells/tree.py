"""A binary tree over features, and the records below each of its nodes."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.cells.tree_features import FeatureArray
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

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
