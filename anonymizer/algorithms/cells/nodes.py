"""Nodes of a tree: their layout, which learning, dividing and pruning share."""

import numpy as np

LEAF = -1
"""Child of a leaf."""

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

The records below it are `Tree.order[start:start + size]`.
"""
