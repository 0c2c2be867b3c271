"""A model that learns from what is published, and how well it then does on records as they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree_features import FeatureArray, encode, values_of
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Schema

LEAST_LEAF = 0.001
"""Share of the records that a leaf of the tree holds, at least."""
_N_TREES = 20


def score_of_release(bench: Bench, class_of: Sequence[Int32Array]) -> float | None:
    """Return the accuracy of a model that learned from a release; None: nothing was published.

    Parameters
    ----------
    bench
        With the quasi-identifiers that are published.
    class_of
        Class of each record of each window, negative where it is suppressed.

    Notes
    -----
    It learns the representative of each class beside the target of each member: rows that are
    equal are one with a weight, which to a tree is the same. It is judged by records as they are.
    """
    features, labels, weights = [], [], []
    for window, found in zip(bench.windows, class_of, strict=True):
        kept = found >= 0
        positions = representatives(window.records.qi, classes_of(found), bench.schema)
        shown = encode(positions, bench.schema.qis)
        n_labels = int(window.target.max(initial=0)) + 1
        pair, weight = np.unique(
            found[kept].astype(np.int64) * n_labels + window.target[kept], return_counts=True
        )
        features.append(shown[pair // n_labels])
        labels.append(pair % n_labels)
        weights.append(weight)
    if not sum(map(len, labels)):
        return None
    learned = np.concatenate(features), np.concatenate(labels), np.concatenate(weights)
    return _score(bench, *learned)


def score_of_original(bench: Bench) -> float | None:
    """Return the accuracy of a model that learned from the records as they are.

    None: there is no target.
    """
    if not bench.judged:
        return None
    label = np.concatenate([window.target for window in bench.windows]).astype(np.int64)
    features = _as_they_are(bench.windows, bench.schema)
    return _score(bench, features, label, np.ones(len(label), np.int64))


def score_of_guessing(bench: Bench) -> float | None:
    """Return the accuracy of who always says what is most frequent; None: there is no target."""
    if not bench.judged:
        return None
    label = np.concatenate([window.target for window in bench.windows])
    truth = np.concatenate([window.target for window in bench.judged])
    return float(np.mean(truth == np.bincount(label).argmax()))


def _score(bench: Bench, features: FeatureArray, label: IntArray, weight: IntArray) -> float:
    model: Any
    if bench.learner == "tree":
        model = DecisionTreeClassifier(
            min_weight_fraction_leaf=LEAST_LEAF, random_state=bench.seed
        ).fit(features, label, sample_weight=weight)
    else:  # draws rows with replacement, of which each must be one
        model = RandomForestClassifier(_N_TREES, random_state=bench.seed)
        model.fit(np.repeat(features, weight, axis=0), np.repeat(label, weight))
    truth = np.concatenate([window.target for window in bench.judged])
    return float(np.mean(model.predict(_as_they_are(bench.judged, bench.schema)) == truth))


def _as_they_are(windows: Sequence[Window], schema: Schema) -> FeatureArray:
    codes = np.concatenate([window.records.qi for window in windows])
    return encode(values_of(codes, schema.qis), schema.qis)
