"""A table as a bench."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.algorithms.cells.banding import banded, banded_attribute
from anonymizer.app.anonymize.running import MOST_CLASSES
from anonymizer.app.tuning.bench import Bench, Learner, Window, split_persons
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.tables import NO_CODE, Attribute, Records, Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coding import CodedTable, Declared, code_table
from anonymizer.files.tables import Table

SAFE_SHARE = 0.95
"""Bound on shares where d is 2 or more, as `anonymize` has it."""


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
        What is promised besides k, d and l.

    Raises
    ------
    InputError
        If the table is not as declared, or is too small to hold some of it out.
    SettingsError
        If the target or bands do not go with what is declared.
    """
    coded = code_table(table, declared)
    records, schema = _banded(coded, bands or {})
    shown = Bench(schema=schema, windows=(), base=base or Promise(k=2), seed=seed)
    shown = replace(shown, safe_share=SAFE_SHARE, learner=trained.learner)
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


def _banded(coded: CodedTable, bands: Mapping[str, Sequence[float]]) -> tuple[Records, Schema]:
    attributes = list(coded.schema.sensitive)
    columns = coded.records.sensitive.copy()
    for name, edges in bands.items():
        places = [j for j, attribute in enumerate(attributes) if attribute.name == name]
        if not places or not attributes[places[0]].numeric:
            raise SettingsError(f"bands: {name} is no sensitive attribute with numbers")
        j = places[0]
        try:
            attributes[j], columns[:, j] = _in_bands(attributes[j], columns[:, j], edges)
        except ValueError as error:
            raise SettingsError(f"bands: {name}: {error}") from None
    schema = Schema(coded.schema.qis, tuple(attributes), coded.schema.sources)
    return Records(coded.records.qi, columns, coded.records.person), schema


def _in_bands(
    attribute: Attribute, code: Int32Array, edges: Sequence[float]
) -> tuple[Attribute, Int32Array]:
    bands, band = banded_attribute(attribute.name, edges), banded(attribute.position[code], edges)
    if attribute.missing == NO_CODE:
        return bands, band
    beyond = bands.size  # the marker stays what it is: no value
    band[code == attribute.missing] = beyond
    position = np.append(bands.position, float(beyond))
    return Attribute(attribute.name, position, missing=beyond), band
