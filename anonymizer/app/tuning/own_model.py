"""The user's own model: read from a file of skops, trained on releases, tested on records."""

import hashlib
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import r2_score

from anonymizer.algorithms.cells.tree_features import values_of
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError, SettingsError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OwnModel:
    """A classifier or regressor of scikit-learn, to be trained anew each time."""

    name: str
    """Name of its file."""
    model: Any
    """The model, without what it learned before it was stored."""
    digest: str
    """SHA-256 of the file."""

    def fitted(self, rows: pl.DataFrame, labels: NDArray[Any]) -> Any:  # noqa: ANN401  no types
        """Return the model, trained.

        Raises `SettingsError` if it cannot be trained on such rows; the reason is not quoted, it
        may hold a value.
        """
        with self._running():
            return clone(self.model).fit(rows, labels)

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts numbers."""
        return bool(is_regressor(self.model))

    def score(self, predicted: NDArray[Any], truth: NDArray[Any]) -> float:
        """Return the accuracy of predictions, of a regressor R²."""
        return (
            score_of_numbers(predicted, truth) if self.is_regressor else accuracy(predicted, truth)
        )

    def score_on(self, rows: pl.DataFrame, labels: NDArray[Any], test: pl.DataFrame,
                 truth: NDArray[Any]) -> float:  # fmt: skip
        """Return the score on test rows of a model that was trained on rows.

        If all labels are the same there is nothing to learn, and the model guesses that one.
        """
        if (labels == labels[0]).all():
            return self.score(np.full(len(truth), labels[0]), truth)
        return self.score(self.predicted(self.fitted(rows, labels), test), truth)

    def predicted(self, trained: Any, rows: pl.DataFrame) -> NDArray[Any]:  # noqa: ANN401
        """Return what the trained model predicts.

        Raises `SettingsError` as `fitted`.
        """
        with self._running():
            return np.asarray(trained.predict(rows))

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Run the user's code, and drop its warnings: there are hundreds of fits."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except Exception as error:  # noqa: BLE001  the user's code may raise anything
            raise SettingsError(
                f"{self.name}: the model fails on a data frame of the quasi-identifiers, numbers "
                f"as floats and categories as text: {type(error).__name__}"
            ) from None


def read_own_model(path: Path, *, trusted: Collection[str] = (), seed: int = 0) -> OwnModel:
    """Read a classifier or regressor from a file of skops.

    Parameters
    ----------
    trusted
        Types that may be loaded beside those that skops trusts: loading a type runs its code.
    seed
        Seed of every `random_state` of the model that is not set.

    Raises
    ------
    InputError
        If the file cannot be read.
    SettingsError
        If it holds types that are not trusted, or neither a classifier nor a regressor.
    """
    from skops.io import get_untrusted_types, loads  # noqa: PLC0415  an extra

    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        astray = sorted(set(get_untrusted_types(data=content)) - set(trusted))
    except (BadZipFile, KeyError, TypeError, ValueError):
        raise InputError(f"{path}: is no file of skops") from None
    if astray:
        raise SettingsError(
            f"{path}: holds types that are not trusted: {', '.join(astray)}; --trust allows one, "
            "if you know who made the file"
        )
    try:
        model = loads(content, trusted=sorted(trusted))
    except (AttributeError, ImportError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: cannot be loaded: {type(error).__name__}") from error
    if not (is_classifier(model) or is_regressor(model)):
        raise SettingsError(f"{path}: must hold a classifier or regressor of scikit-learn")
    model = clone(model)
    unset = [
        name
        for name, value in model.get_params().items()
        if name.endswith("random_state") and value is None
    ]
    model.set_params(**dict.fromkeys(unset, seed))
    return OwnModel(path.name, model, hashlib.sha256(content).hexdigest())


def frame_of(positions: FloatArray, schema: Schema) -> pl.DataFrame:
    """Return rows as a data frame: numbers as floats, missing ones as NaN, categories as text.

    `positions`: positions on the axis of each quasi-identifier, shape (n, qis).
    """
    columns: dict[str, Any] = {}
    for place, qi in zip(positions.T, schema.qis, strict=True):
        missing = qi.position[qi.missing] if qi.missing >= 0 else np.nan
        columns[qi.name] = (
            np.where(place == missing, np.nan, place)
            if qi.numeric
            else [qi.label[code] for code in np.searchsorted(qi.position, place).tolist()]
        )
    return pl.DataFrame(columns)


def frame_of_codes(qi: Int32Array, schema: Schema) -> pl.DataFrame:
    """Return the original rows of records as `frame_of` does."""
    return frame_of(values_of(qi, schema.qis), schema)


def accuracy(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the share of predictions that are right."""
    return float(np.mean(predicted == truth))


def score_of_numbers(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return R²: 1 minus the squared error as a share of that of the mean."""
    return float(r2_score(truth, predicted))


def labels_of(values: Sequence[str]) -> NDArray[Any]:
    """Return the classes of the target as a model knows them: whole numbers, otherwise texts."""
    try:
        return np.array([int(value) for value in values])
    except ValueError:
        return np.array(values, dtype=object)
