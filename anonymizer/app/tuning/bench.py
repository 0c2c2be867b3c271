"""Bench of a search: records to anonymize, and records held out to test a model."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from anonymizer import __version__
from anonymizer.algorithms.records.ordering import arranged
from anonymizer.app.anonymize.plan import with_bands
from anonymizer.app.anonymize.table_anonymization import MOST_CLASSES
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise, bounded_shares
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.tables import Table
from anonymizer.pipeline.records.declaration import Stream

Learner: TypeAlias = Literal["tree", "forest"]
_FORMAT = 2
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
    """Input of every trial.

    Attributes
    ----------
    schema
        Schema of all windows.
    windows
        Records to anonymize, each window separately; a table is one window.
    test_windows
        Records held out to test a model that was trained on the release. Empty: there is no
        target.
    base
        Promise apart from k, d, l and shares.
    stream
        The stream of the windows, without its readers; None: a table.
    max_share, max_source_share
        See `Promise`; None: the safe defaults.
    learner
        The model: `tree`, a decision tree whose leaves hold at least a thousandth of the records;
        `forest`, a random forest of 20 trees.
    seed
        Seed of everything random.
    """

    schema: Schema
    windows: tuple[Window, ...]
    test_windows: tuple[Window, ...] = ()
    base: Promise
    stream: Stream | None = None
    max_share: float | None = None
    max_source_share: float | None = None
    learner: Learner = "tree"
    seed: int = 0

    @property
    def n(self) -> int:
        """Number of records to anonymize."""
        return sum(window.records.n for window in self.windows)

    @property
    def n_judged(self) -> int:
        """Number of records held out."""
        return sum(window.records.n for window in self.test_windows)

    def promise(self, *, k: int, d: int, l: int, qis: Sequence[str]) -> Promise:  # noqa: E741
        """Return the promise of a configuration that publishes these quasi-identifiers."""
        max_share, max_source_share = bounded_shares(d, self.max_share, self.max_source_share)
        return replace(
            self.base,
            k=k,
            d=d,
            l=l,
            max_share=max_share,
            max_source_share=max_source_share,
            min_spread={name: x for name, x in self.base.min_spread.items() if name in qis},
        )

    def digest(self) -> str:
        """Return a digest that is equal if all trials would be equal."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self._parts():
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()

    def _parts(self) -> Iterator[bytes]:
        shares = (self.max_share, self.max_source_share)
        settings = (self.learner, self.seed, self.base, shares, self.schema.sources)
        yield repr((_FORMAT, __version__, settings)).encode()
        yield self.stream.settings.model_dump_json().encode() if self.stream else b""
        for attribute in (*self.schema.qis, *self.schema.sensitive):
            yield repr((attribute.name, attribute.label, attribute.missing)).encode()
            yield attribute.position.tobytes()
        for part in (self.windows, self.test_windows):
            yield len(part).to_bytes(8, "little")
            for window in part:
                records = window.records
                for array in (records.qi, records.sensitive, records.person, window.target):
                    yield np.ascontiguousarray(array).tobytes()


def split_persons(window: Window, *, share: float, seed: int) -> tuple[Window, Window]:
    """Return the records that are kept, and those of the share of persons that is held out.

    Raises
    ------
    InputError
        If either part would be empty.
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

    Raises
    ------
    InputError
        As `split_persons`.
    """
    if len(windows) == 1:
        kept, held_out = split_persons(windows[0], share=share, seed=seed)
        return (kept,), (held_out,)
    n_kept = min(len(windows) - 1, max(1, round((1 - share) * len(windows))))
    return tuple(windows[:n_kept]), tuple(windows[n_kept:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """Training of a model.

    Attributes
    ----------
    target
        Column or attribute with the classes; None: there is no target.
    learner
        See `Bench`.
    held_out
        Share of the persons or windows held out.
    """

    target: str | None = None
    learner: Learner = "tree"
    held_out: float = 0.25


def bench_of_table(
    table: Table,
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
    records = coded.records
    shown = Bench(schema=coded.schema, windows=(), base=base or Promise(k=2), seed=seed)
    shown = replace(shown, learner=trained.learner)
    if trained.target is None:
        whole = Window(records, np.zeros(records.n, np.int32))
        return replace(shown, windows=(whole.only(np.arange(records.n)),))
    window = Window(records, _target(coded, trained.target))
    try:
        kept, test_windows = split_persons(window, share=trained.held_out, seed=seed)
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from None
    return replace(shown, windows=(kept,), test_windows=(test_windows,))


def _target(coded: CodedTable, name: str) -> Int32Array:
    if name not in coded.open.columns:
        raise SettingsError("target: must not be a quasi-identifier")
    if coded.open[name].n_unique() > MOST_CLASSES:
        raise SettingsError(f"target: has more than {MOST_CLASSES} values")
    return coded.open_code[:, coded.open.columns.index(name)]
