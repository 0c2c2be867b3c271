"""What a search works on: records to anonymize, and others that a model is judged by.

A table as a bench.
"""

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
"""Of the journal; another one where the same configuration would be found otherwise."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window:
    """Records that are anonymized together, and what a model is to learn of each, shape (n,)."""

    records: Records
    target: Int32Array

    def only(self, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> "Window":
        """Return the chosen records, in an order that owes nothing to that of the table."""
        records, target = self.records.only(chosen), self.target[chosen]
        order = arranged(records, np.column_stack([records.sensitive, target]).astype(np.int32))
        return Window(records.only(order), target[order])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Bench:
    """What every configuration is tried on.

    Attributes
    ----------
    schema
        Of all windows.
    windows
        What is anonymized, each for itself; a table is one.
    judged
        What a model is judged by that learned from what is published; empty: there is no target.
    base
        What is promised besides k, d, l and shares.
    stream
        Whose windows these are, without its readers; None: a table.
    max_share, max_source_share
        See `Promise`; None: what is safe.
    learner
        The model: `tree`, a decision tree whose leaves hold a thousandth of the records at least;
        `forest`, 20 trees of a random forest.
    seed
        For what is left to chance.
    """

    schema: Schema
    windows: tuple[Window, ...]
    judged: tuple[Window, ...] = ()
    base: Promise
    stream: Stream | None = None
    max_share: float | None = None
    max_source_share: float | None = None
    learner: Learner = "tree"
    seed: int = 0

    @property
    def n(self) -> int:
        """Records that are anonymized."""
        return sum(window.records.n for window in self.windows)

    @property
    def n_judged(self) -> int:
        """Records that a model is judged by."""
        return sum(window.records.n for window in self.judged)

    def promise(self, *, k: int, d: int, l: int, qis: Sequence[str]) -> Promise:  # noqa: E741
        """Return what a configuration promises of the quasi-identifiers that it publishes."""
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
        """Return what is equal where every configuration would be found to be the same."""
        told = hashlib.blake2b(digest_size=16)
        for said in self._said():
            told.update(len(said).to_bytes(8, "little") + said)
        return told.hexdigest()

    def _said(self) -> Iterator[bytes]:
        shares = (self.max_share, self.max_source_share)
        settings = (self.learner, self.seed, self.base, shares, self.schema.sources)
        yield repr((_FORMAT, __version__, settings)).encode()
        yield self.stream.settings.model_dump_json().encode() if self.stream else b""
        for attribute in (*self.schema.qis, *self.schema.sensitive):
            yield repr((attribute.name, attribute.label, attribute.missing)).encode()
            yield attribute.position.tobytes()
        for part in (self.windows, self.judged):
            yield len(part).to_bytes(8, "little")
            for window in part:
                records = window.records
                for array in (records.qi, records.sensitive, records.person, window.target):
                    yield np.ascontiguousarray(array).tobytes()


def split_persons(window: Window, *, share: float, seed: int) -> tuple[Window, Window]:
    """Return a table in two: the records of some persons, and the share of them that is held out.

    Raises
    ------
    InputError
        If either has none.
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
    """Return the windows in two, the last ones held out; of a single one, some persons are.

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
    """What is learned, and by what it is judged.

    Attributes
    ----------
    target
        Column or attribute with the classes; None: nothing is learned.
    learner
        See `Bench`.
    held_out
        Share that is held out.
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
    """Return what a table is tried on.

    Parameters
    ----------
    declared
        With the target among the sensitive attributes or the kept columns.
    bands
        Edges of the bands of sensitive numbers, by name: values of one band are one.
    base
        What is promised besides k, d, l and shares, which are safe.

    Raises
    ------
    InputError
        If the table is not as declared, or is too small to hold some of it out.
    SettingsError
        If the target or bands do not go with what is declared.
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
        kept, judged = split_persons(window, share=trained.held_out, seed=seed)
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from None
    return replace(shown, windows=(kept,), judged=(judged,))


def _target(coded: CodedTable, name: str) -> Int32Array:
    if name not in coded.open.columns:
        raise SettingsError("target: must be no quasi-identifier")
    if coded.open[name].n_unique() > MOST_CLASSES:
        raise SettingsError(f"target: has more than {MOST_CLASSES} values")
    return coded.open_code[:, coded.open.columns.index(name)]
