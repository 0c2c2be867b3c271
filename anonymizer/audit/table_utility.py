"""Utility of each column of a published table, and of a model that was trained on it."""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.records.column_utility import (
    distance,
    mean_places,
    pair_distances,
    shares_of_codes,
)
from anonymizer.algorithms.releases.released_classes import Published
from anonymizer.audit.findings import ColumnUtility, ModelUtility
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import NO_CODE, Records, Schema
from anonymizer.errors import SettingsError

_FOLDS = 5
_ROUNDING = 1e-12
"""Values that differ by less, in proportion, are the same."""


def utility_of(
    records: Records, schema: Schema, seen: Published, class_of: Int32Array
) -> tuple[ColumnUtility, ...]:
    """Return the utility of each quasi-identifier.

    `seen`: the classes as published; `class_of`: of each record, negative where suppressed.
    """
    kept = class_of >= 0
    of, size = class_of[kept], np.bincount(class_of[kept], minlength=seen.n_classes)
    pairs = pair_distances(seen.qi, schema.qis, of, records.qi[kept])
    numeric = [j for j, qi in enumerate(schema.qis) if qi.numeric]
    changed = _correlations(records, schema, seen, class_of, numeric)
    found = []
    for j, (qi, labels) in enumerate(zip(schema.qis, seen.qi, strict=True)):
        true = np.bincount(records.qi[:, j], minlength=qi.size) / max(records.n, 1)
        others = np.delete(pairs[j], j)
        found.append(
            ColumnUtility(
                name=qi.name,
                distribution=distance(shares_of_codes(labels, size, qi.size), true),
                pairs=float(others.mean()) if len(others) else None,
                correlation=changed.get(j),
            )
        )
    return tuple(found)


def _correlations(
    records: Records,
    schema: Schema,
    seen: Published,
    class_of: Int32Array,
    numeric: Sequence[int],
) -> dict[int, float]:
    """Return the largest change of a correlation with another number, by quasi-identifier."""
    if len(numeric) < 2 or not (class_of >= 0).any():
        return {}
    kept = class_of >= 0
    true = _correlation([schema.qis[j].position[records.qi[:, j]] for j in numeric])
    read = _correlation(
        [mean_places(seen.qi[j], schema.qis[j].position)[class_of[kept]] for j in numeric]
    )
    change = np.abs(read - true)
    np.fill_diagonal(change, 0.0)
    return {j: float(change[i].max()) for i, j in enumerate(numeric)}


def _correlation(columns: Sequence[FloatArray]) -> FloatArray:
    """Return the correlation of columns; 0 with one whose values are all the same."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = np.nan_to_num(np.corrcoef(columns))
    alike = np.array([np.ptp(each) <= _ROUNDING * np.abs(each).max() for each in columns])
    found[alike, :], found[:, alike] = 0.0, 0.0
    return found


def model_utility(
    records: Records,
    schema: Schema,
    seen: Published,
    class_of: Int32Array,
    target: str,
    *,
    seed: int,
) -> ModelUtility:
    """Return how well a tree predicts that learned from the release, and from the original.

    SettingsError if `target` is no sensitive attribute, or there are too few people.

    Notes
    -----
    Folds of people, trained on four fifths of the published rows or on the same rows of the
    original, tested on the original rows of the others. A leaf has at least a thousandth of the
    rows. Those without a target are left out.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor  # noqa: PLC0415  an extra
    from sklearn.model_selection import GroupKFold  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: PLC0415

    names = [attribute.name for attribute in schema.sensitive]
    if target not in names:
        raise SettingsError("target: must be a sensitive attribute")
    attribute = schema.sensitive[names.index(target)]
    code = records.sensitive[:, names.index(target)]
    kept = np.flatnonzero((class_of >= 0) & ((code != attribute.missing) | (code == NO_CODE)))
    person, code = records.person[kept], code[kept]
    if len(np.unique(person)) < _FOLDS:
        raise SettingsError(f"target: needs {_FOLDS} people at least who state it")
    truth = attribute.position[code] if attribute.numeric else code
    true = np.column_stack([qi.position[records.qi[kept, j]] for j, qi in enumerate(schema.qis)])
    read = np.column_stack(
        [
            mean_places(labels, qi.position)[class_of[kept]]
            for labels, qi in zip(seen.qi, schema.qis, strict=True)
        ]
    )
    leaf = max(1, len(kept) // 1000)
    tree = DecisionTreeRegressor if attribute.numeric else DecisionTreeClassifier
    guess = DummyRegressor if attribute.numeric else DummyClassifier
    scores: list[FloatArray] = []
    order = np.random.default_rng(seed).permutation(int(person.max()) + 1)
    for train, test in GroupKFold(_FOLDS).split(true, truth, order[person]):
        models = (
            tree(min_samples_leaf=leaf, random_state=seed).fit(true[train], truth[train]),
            tree(min_samples_leaf=leaf, random_state=seed).fit(read[train], truth[train]),
            guess().fit(true[train], truth[train]),
        )
        scores.append(np.array([model.score(true[test], truth[test]) for model in models]))
    original, release, guessing = np.mean(scores, axis=0).tolist()
    return ModelUtility(target=target, original=original, release=release, guessing=guessing)
