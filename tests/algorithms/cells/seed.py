"""The seed's procedure, restated plainly: what the cells here are compared with."""

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise


def anonymize(
    rows: FloatArray, label: IntArray, secret: Int32Array, promise: Promise, *, random_state: int
) -> tuple[FloatArray, BoolArray]:
    """Return rows with representatives, and which of them are left.

    A tree over all features, the sensitive one included; a leaf with fewer than l distinct
    sensitive values is dropped; what represents a leaf is the record next to its medians.
    """
    tree = DecisionTreeClassifier(min_samples_leaf=promise.k, random_state=random_state)
    leaf_of = tree.fit(rows, label).apply(rows)
    out, kept = rows.copy(), np.zeros(len(rows), bool)
    for leaf in np.unique(leaf_of):
        member = np.flatnonzero(leaf_of == leaf)
        if len(set(secret[member].tolist())) < promise.l:
            continue
        kept[member] = True
        off = rows[member] - np.median(rows[member], axis=0)
        out[member] = rows[member[np.argmin((off**2).sum(axis=1))]]
    return out, kept
