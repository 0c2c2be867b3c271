"""Score of a model that is trained on a release and tested on original records."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from anonymizer.algorithms.cells.representatives import representatives
from anonymizer.algorithms.cells.tree_features import FeatureArray, encode, values_of
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.app.tuning.bench import Bench, Window
from anonymizer.app.tuning.own_model import (
    OwnModel,
    accuracy,
    frame_of,
    frame_of_codes,
    score_of_numbers,
)
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Schema

_LEAVES = (0.001, 0.003, 0.01, 0.03, 0.1)
"""Shares of the records that a leaf may have at least; of fewer records, the first."""
_PARTS, _FEWEST = 3, 30
_N_TREES = 20


def score_of_release(bench: Bench, class_of: Sequence[Int32Array]) -> float | None:
    """Return the score of a model trained on a release, or None if nothing is published.

    The score is the accuracy, of numbers R².

    Parameters
    ----------
    bench
        Bench with the published quasi-identifiers.
    class_of
        For each window, the class of each record, negative where it is suppressed.

    Notes
    -----
    The model learns the representative of each class with the target of each member. Equal rows
    are one row with a weight, which is the same for a tree. It is tested on original records.
    """
    if bench.own is not None:
        return _own_score(bench, bench.own, class_of)
    features, labels, weights = [], [], []
    for window, found in zip(bench.windows, class_of, strict=True):
        kept = (found >= 0) & bench.states(window)
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
    """Return the score of a model trained on the original records.

    None: there is no target.
    """
    if not bench.test_windows:
        return None
    if bench.own is not None:
        return _own_score(bench, bench.own, None)
    stating = bench.stating(bench.windows)
    label = np.concatenate([window.target for window in stating]).astype(np.int64)
    features = _original_features(stating, bench.schema)
    return _score(bench, features, label, np.ones(len(label), np.int64))


def score_of_guessing(bench: Bench) -> float | None:
    """Return the accuracy of always guessing the most frequent class, of numbers R² of the mean.

    None: there is no target.
    """
    if not bench.test_windows:
        return None
    label = np.concatenate([window.target for window in bench.stating(bench.windows)])
    truth = np.concatenate([window.target for window in bench.stating(bench.test_windows)])
    if bench.is_regression:
        mean = bench.labels[label].mean()
        return score_of_numbers(np.full(len(truth), mean), bench.labels[truth])
    return float(np.mean(truth == np.bincount(label).argmax()))


def _own_score(bench: Bench, own: OwnModel, class_of: Sequence[Int32Array] | None) -> float | None:
    """Return the score of the user's model; `class_of` None: trained on original records.

    Of a release it learns each published record, not one row for each class.
    """
    (window,), (test,) = bench.windows, bench.stating(bench.test_windows)
    qi, target, schema = window.records.qi, window.target, bench.schema
    stated = bench.states(window)
    if class_of is None:
        rows, target = frame_of_codes(qi[stated], schema), target[stated]
    else:
        (found,) = class_of
        kept = np.flatnonzero((found >= 0) & stated)
        if not len(kept):
            return None
        rows = frame_of(representatives(qi, classes_of(found), schema)[found[kept]], schema)
        target = target[kept]
    tested = frame_of_codes(test.records.qi, schema)
    return own.score_on(rows, bench.labels[target], tested, bench.labels[test.target])


def _score(bench: Bench, features: FeatureArray, label: IntArray, weight: IntArray) -> float:
    numbers = bench.is_regression
    learned: Any = bench.labels[label] if numbers else label
    model = _model(bench, leaf_share(bench))
    if bench.learner == "tree":
        model.fit(features, learned, sample_weight=weight)
    else:  # samples rows with replacement, so each row must be listed
        model.fit(np.repeat(features, weight, axis=0), np.repeat(learned, weight))
    tested = bench.stating(bench.test_windows)
    truth = np.concatenate([window.target for window in tested])
    predicted = model.predict(_original_features(tested, bench.schema))
    if numbers:
        return score_of_numbers(predicted, bench.labels[truth])
    return accuracy(predicted, truth)


def leaf_share(bench: Bench) -> float:
    """Return the least share of the records in a leaf, the same for the original and releases.

    That with which a model of the original training records says most of those it has not learned:
    a smaller one learns noise, and a release, which has less of it, would look better.
    """
    if not bench.leaf_share:
        bench.leaf_share.append(_chosen_leaf(bench))
    return bench.leaf_share[0]


def _chosen_leaf(bench: Bench) -> float:
    stating = bench.stating(bench.windows)
    label = np.concatenate([window.target for window in stating]).astype(np.int64)
    if len(label) < _FEWEST:
        return _LEAVES[0]
    features = _original_features(stating, bench.schema)
    learned = bench.labels[label] if bench.is_regression else label
    parts = KFold(_PARTS, shuffle=True, random_state=bench.seed)
    scores = [
        cross_val_score(_model(bench, leaf), features, learned, cv=parts).mean() for leaf in _LEAVES
    ]
    return _LEAVES[int(np.argmax(scores))]


def _model(bench: Bench, leaf: float) -> Any:  # noqa: ANN401  no types
    options: Any = {"min_weight_fraction_leaf": leaf, "random_state": bench.seed}
    if bench.learner == "tree":
        tree = DecisionTreeRegressor if bench.is_regression else DecisionTreeClassifier
        return tree(**options)
    forest = RandomForestRegressor if bench.is_regression else RandomForestClassifier
    return forest(_N_TREES, **options)


def _original_features(windows: Sequence[Window], schema: Schema) -> FeatureArray:
    codes = np.concatenate([window.records.qi for window in windows])
    return encode(values_of(codes, schema.qis), schema.qis)
