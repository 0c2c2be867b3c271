"""A table as a bench."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.app.anonymize.banding import with_bands
from anonymizer.app.anonymize.table_anonymization import MOST_CLASSES
from anonymizer.app.tuning.bench import Bench, Learner, Window, split_persons
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import CodedTable, Declared, code_table
from anonymizer.files.tables import Table


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
