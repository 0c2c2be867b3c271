"""Bench of a search: records to anonymize, and records held out to test a model."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonymizer import __version__
from anonymizer.algorithms.records.ordering import arranged
from anonymizer.app.anonymize.one_row_each import one_row_each
from anonymizer.app.anonymize.plan import with_bands
from anonymizer.app.anonymize.table_anonymization import MOST_CLASSES
from anonymizer.app.tuning.cross_validation import (
    CrossValidation,
    Score,
    fold_masks,
    score_of_folds,
)
from anonymizer.app.tuning.own_model import OwnModel, labels_of
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.criteria.registry import BY_D
from anonymizer.domain.partial_promises import promise_about
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import NO_CODE, Records, Schema
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.tables import TextTable
from anonymizer.pipeline.records.declaration import Stream

Learner: TypeAlias = Literal["tree", "forest", "own"]
TargetKind: TypeAlias = Literal["class", "number"]
_NO_VALUE = ("", "?", *NO_VALUE)
_MOST_NUMBERED = 10
"""Different numbers of a target that are taken for classes, if nothing else is said."""
_FORMAT = 6
"""Format of the journal; changes when trials of the same configuration would."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window:
    """Records that are anonymized together, and the target of each, shape (n,)."""

    records: Records
    target: Int32Array

    def only(self, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> "Window":
        """Return the chosen records, in an order that does not depend on that of the table."""
        records, target = self.records.only(chosen), self.target[chosen]
        order = arranged(records, np.column_stack([records.sensitive, target]).astype(np.int32))
        return Window(records.only(order), target[order])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Bench:
    """Input of every trial."""

    schema: Schema
    """Schema of all windows."""
    windows: tuple[Window, ...]
    """Records to anonymize, each window separately; a table is one window."""
    test_windows: tuple[Window, ...] = ()
    """Records held out to test a model that was trained on the release. Empty: there is no target,
    or there are folds."""
    folds: tuple[tuple[Window, Window], ...] = ()
    """Training and test records of each fold of a cross-validation, of a table alone; `windows` are
    then all records. Empty: there is none."""
    validation: CrossValidation | None = None
    """The numbers of folds and repeats, if there are folds."""
    base: Promise
    """Promise apart from k, d, l and shares."""
    stream: Stream | None = None
    """The stream of the windows, without its readers; None: a table."""
    stated: Mapping[str, float | None] = field(default_factory=dict)
    """The bounds that are stated of the criteria whose default depends on d, by name."""
    learner: Learner = "tree"
    """The model: `tree`, a decision tree whose leaves hold at least a share of the records (see
    `leaf_share`); `forest`, a random forest of 20 such trees; `own`, the user's."""
    own: OwnModel | None = None
    """The user's model, or None."""
    labels: NDArray[Any] = field(default_factory=lambda: np.zeros(0, object))
    """Classes of the target by code, as the user's model knows them; numbers if `is_regression`."""
    is_regression: bool = False
    """Whether the target is a number, and the score R² instead of the accuracy. Of a table
    alone."""
    unstated: int = NO_CODE
    """The code of a target that is missing: such records are in the release, and neither train nor
    test a model."""
    seed: int = 0
    """Seed of everything random."""
    leaf_share: list[float] = field(default_factory=list, init=False)
    """The least share of the records in a leaf, once `leaf_share` has chosen it for them."""

    @property
    def has_target(self) -> bool:
        """Whether a model is trained and tested."""
        return bool(self.test_windows or self.folds)

    def fold_benches(self) -> "list[Bench]":
        """Return the bench of each fold, with its training and its test records."""
        return [
            replace(self, windows=(train,), test_windows=(test,), folds=())
            for train, test in self.folds
        ]

    def score(self, scores: Sequence[float]) -> Score:
        """Return what the scores of all folds say together."""
        assert self.validation is not None  # noqa: S101  there are folds
        return score_of_folds(scores, self.validation.folds)

    @property
    def n(self) -> int:
        """Number of records to anonymize."""
        return sum(window.records.n for window in self.windows)

    @property
    def n_judged(self) -> int:
        """Number of records that test a model; with folds, each does once in every repeat."""
        judging = self.windows if self.folds else self.test_windows
        return sum(int(self.states(window).sum()) for window in judging)

    @property
    def n_unstated(self) -> int:
        """Number of records without a target, those that are held out included."""
        return sum(int((~self.states(w)).sum()) for w in (*self.windows, *self.test_windows))

    def states(self, window: Window) -> BoolArray:
        """Return which records of a window state a target, shape (n,)."""
        stated: BoolArray = window.target != self.unstated
        return stated

    def stating(self, windows: Sequence[Window]) -> "list[Window]":
        """Return windows without the records that state no target."""
        return [Window(w.records.only(i), w.target[i])
                for w in windows for i in [np.flatnonzero(self.states(w))]]  # fmt: skip

    def promise(self, *, k: int, d: int, l: int, qis: Sequence[str]) -> Promise:  # noqa: E741
        """Return the promise of a configuration that publishes these quasi-identifiers."""
        bounds = {each.name: each.bound_of(self.stated.get(each.name), d) for each in BY_D}
        names = {*qis, *(attribute.name for attribute in self.schema.sensitive)}
        return replace(promise_about(self.base, names), k=k, d=d, l=l, **bounds)

    def digest(self) -> str:
        """Return a digest that is equal if all trials would be equal."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self._parts():
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    def _parts(self) -> Iterator[bytes]:
        scored = (self.learner, self.own.digest if self.own else "", self.validation)
        promised = self.base, dict(self.stated)
        settings = (
            scored,
            self.is_regression,
            self.unstated,
            self.seed,
            promised,
            self.schema.sources,
        )
        yield repr((_FORMAT, __version__, settings)).encode()
        yield self.stream.settings.model_dump_json().encode() if self.stream else b""
        for attribute in (*self.schema.qis, *self.schema.sensitive):
            yield repr((attribute.name, attribute.label, attribute.missing)).encode()
            yield attribute.position.tobytes()
        yield repr(self.labels.tolist()).encode()
        for part in (self.windows, self.test_windows):
            yield len(part).to_bytes(8, "little")
            for window in part:
                records = window.records
                for array in (records.qi, records.sensitive, records.person, window.target):
                    yield np.ascontiguousarray(array).tobytes()


def split_persons(window: Window, *, share: float, seed: int) -> tuple[Window, Window]:
    """Return the records that are kept, and those of the share of persons that is held out.

    Raises `InputError` if either part would be empty.
    """
    person = window.records.person
    persons = np.unique(person)
    chosen = np.random.default_rng(seed).permutation(persons)[: round(share * len(persons))]
    held_out = np.isin(person, chosen)
    if held_out.all() or not held_out.any():
        raise InputError("there are too few persons to hold some out")
    return window.only(np.flatnonzero(~held_out)), window.only(np.flatnonzero(held_out))


def split_windows(
    windows: Sequence[Window], *, share: float, seed: int
) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """Return the windows that are kept, and the last ones, held out; one is split by person.

    Raises `InputError` as `split_persons`.
    """
    if len(windows) == 1:
        kept, held_out = split_persons(windows[0], share=share, seed=seed)
        return (kept,), (held_out,)
    n_kept = min(len(windows) - 1, max(1, round((1 - share) * len(windows))))
    return tuple(windows[:n_kept]), tuple(windows[n_kept:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Training of a model."""

    target: str | None = None
    """Column or attribute with the classes; None: there is no target."""
    learner: Learner = "tree"
    """See `Bench`."""
    held_out: float = 0.25
    """Share of the persons or windows held out, without cross-validation."""
    validation: CrossValidation | None = None
    """Cross-validation of a table; None: a share is held out once, of classes."""
    own: OwnModel | None = None
    """The user's model; `learner` is then `own`."""
    kind: TargetKind | None = None
    """What the target of a table is; None: see `predicts_numbers`."""


def bench_of_table(
    table: TextTable,
    declared: Declared,
    trained: Trained,
    *,
    bands: Mapping[str, Sequence[float]] | None = None,
    base: Promise | None = None,
    seed: int = 0,
) -> Bench:
    """Return the bench of a table.

    Parameters
    ----------
    declared
        Includes the target among the sensitive attributes or the kept columns.
    bands
        Edges of the bands of sensitive numbers, by name: values in the same band count as one.
    base
        Promise apart from k, d, l and shares; shares have the safe defaults.

    Raises
    ------
    InputError
        If the table does not match its declaration, or has too few persons to hold some out.
    SettingsError
        If the target or bands do not match the declaration.
    """
    coded = with_bands(code_table(table, declared), bands or {})
    coded, _ = one_row_each(coded, np.zeros((coded.records.n, 0)), seed=seed)
    records = coded.records
    shown = Bench(schema=coded.schema, windows=(), base=base or Promise(k=2), seed=seed)
    shown = replace(shown, learner="own" if trained.own else trained.learner, own=trained.own)
    if trained.target is None:
        whole = Window(records, np.zeros(records.n, np.int32))
        return replace(shown, windows=(whole.only(np.arange(records.n)),))
    is_number = predicts_numbers(table, trained)
    target, labels, unstated = _target(coded, trained.target, is_number=is_number)
    window = Window(records, target)
    shown = replace(shown, labels=labels, is_regression=is_number, unstated=unstated)
    _check_target(window, shown)
    if is_number and trained.validation is None:
        raise SettingsError("folds: a target of numbers requires 2 or more; see target-kind")
    try:
        if trained.validation is not None:
            stratum = np.where(shown.states(window), target, NO_CODE).astype(np.int32)
            stratum = _deciles(stratum) if is_number else stratum
            folds = _folds(window, stratum, trained.validation, seed)
            whole = window.only(np.arange(records.n))
            return replace(shown, windows=(whole,), folds=folds, validation=trained.validation)
        kept, test_windows = split_persons(window, share=trained.held_out, seed=seed)
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from None
    if not all(shown.states(each).any() for each in (kept, test_windows)):
        raise InputError(f"{table.path}: there are too few targets to hold some out: see folds")
    return replace(shown, windows=(kept,), test_windows=(test_windows,))


def _check_target(window: Window, bench: Bench) -> None:
    """Raise `SettingsError` if there is nothing to learn from the targets that are stated."""
    n_values = len(np.unique(window.target[bench.states(window)]))
    if n_values == 0:
        raise SettingsError("target: is missing in every row: name a column that is filled in")
    if n_values == 1:
        raise SettingsError(
            "target: has the same value in every row that states one, so there is nothing to "
            "learn: name another column, or none"
        )


def predicts_numbers(table: TextTable, trained: Trained) -> bool:
    """Return whether the target is a number to predict.

    The user's model says so, or `Trained.kind`. Otherwise it is one if it has more than a few
    numbers, and nothing else but words for a missing value.

    Raises `SettingsError` if these two contradict each other.
    """
    own, kind, target = trained.own, trained.kind, trained.target
    if own is not None:
        if kind is not None and own.is_regressor is not (kind == "number"):
            raise SettingsError(f"target-kind: the estimator does not predict a {kind}")
        return own.is_regressor
    if kind is not None:
        return kind == "number"
    column = table.frame[target] if target in table.frame.columns else None
    if column is None:
        return False
    stated = column.filter(~column.cast(str).is_in(_NO_VALUE)).drop_nulls()
    return stated.n_unique() > _MOST_NUMBERED and not _as_numbers(stated).null_count()


def _as_numbers(column: pl.Series) -> pl.Series:
    """Return a column as numbers, null where a value is none."""
    found = column.cast(pl.Float64, strict=False)
    return found.set(~found.is_finite().fill_null(value=False), None)


def _deciles(code: Int32Array) -> Int32Array:
    """Return the tenth that each record is in, by the code of its number; `NO_CODE` without one."""
    stated = np.sort(code[code != NO_CODE])
    rank = np.searchsorted(stated, code)
    return np.where(code == NO_CODE, NO_CODE, rank * 10 // len(stated)).astype(np.int32)


def _folds(
    window: Window, stratum: Int32Array, validation: CrossValidation, seed: int
) -> tuple[tuple[Window, Window], ...]:
    masks = fold_masks(window.records.person, stratum, validation, seed=seed)
    return tuple((window.only(np.flatnonzero(~m)), window.only(np.flatnonzero(m))) for m in masks)


def _target(
    coded: CodedTable, name: str, *, is_number: bool
) -> tuple[Int32Array, NDArray[Any], int]:
    """Return the code of each record's target, the classes or numbers by code, and what is none."""
    if name not in coded.open.columns:
        raise SettingsError("target: must not be a quasi-identifier")
    values = coded.open[name]
    stated = ~(values.is_null() | values.cast(pl.String).str.strip_chars().is_in(_NO_VALUE))
    lacks = ~stated.fill_null(value=False).to_numpy()
    if is_number:
        number = _as_numbers(values)
        if (number.is_null().to_numpy() & ~lacks).any():
            raise SettingsError(
                "target: has values that are no number: leave out those rows, or see target-kind"
            )
        known_numbers, of = np.unique(number.to_numpy()[~lacks], return_inverse=True)
        code = np.full(len(values), len(known_numbers), np.int32)
        code[~lacks] = of
        # What grows cells has a number for every record: the mean tells it nothing.
        mean = known_numbers[of].mean() if len(of) else 0.0
        return code, np.append(known_numbers, mean), len(known_numbers) if lacks.any() else NO_CODE
    if values.n_unique() > MOST_CLASSES:
        raise SettingsError(f"target: has more than {MOST_CLASSES} values")
    code = coded.open_code[:, coded.open.columns.index(name)].copy()
    unstated = int(code[lacks][0]) if lacks.any() else NO_CODE
    code[lacks] = unstated
    known, first = np.unique(code[~lacks], return_index=True)
    written = values.cast(pl.String).filter(pl.Series(~lacks))
    text = [""] * (int(code.max(initial=-1)) + 1)
    for each, row in zip(known.tolist(), first.tolist(), strict=True):
        text[each] = written[row]
    return code, _labels(text, known), unstated


def _labels(text: Sequence[str], known: NDArray[Any]) -> NDArray[Any]:
    """Return the classes by code as a model knows them; a code not `known` is never told."""
    told = labels_of([text[each] for each in known.tolist()])
    labels = np.zeros(len(text), told.dtype)
    labels[known] = told
    return labels
