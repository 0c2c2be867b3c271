"""Which published columns repeat a quasi-identifier behind its label: the columns of a release.

Both a release that is being made and one that is audited ask it; see
`audit.mathematics.repeated_columns`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from anonymizer.audit.mathematics.joined_columns import (
    PlacedColumn,
    fewer_records,
    joined_columns,
    some_of,
)
from anonymizer.audit.mathematics.repeated_columns import (
    RankedColumn,
    Repetition,
    TriedRecords,
    repetition,
    tells_more_than_label,
    trial,
)
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Records, Schema
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import ColumnRules, code_column
from anonymizer.files.published_tables import numbered
from anonymizer.files.tables import TextTable

ORDER_OF_ROWS = "order of rows"
_MOST_COMPARED, _COMPARED, _GROUP = 30, 4_000, 10
_MOST_IN_TWO, _MOST_IN_THREE = 8, 6
"""Columns of which each two, and each three, are tried."""


def in_words(columns: Sequence[str]) -> str:
    """Return the columns that tell something together, as one name."""
    return " with ".join(columns)


class RepeatedColumn(NamedTuple):
    """A published column, or several, the quasi-identifier that they tell best, and how far."""

    columns: tuple[str, ...]
    qi: str
    found: Repetition

    @property
    def name(self) -> str:
        """What is told with whom, in words."""
        return in_words(self.columns)


def repeated_columns(
    records: Records,
    schema: Schema,
    class_of: Int32Array,
    row_of: IntArray,
    release: pl.DataFrame,
    *,
    names: Sequence[str],
    markers: Sequence[str],
    k: int,
    seed: int,
    by_order: bool,
) -> Iterator[RepeatedColumn]:
    """Yield how far each column of a release tells a quasi-identifier.

    And those two of the first eight that tell most together, without those that tell it alone, and
    those three of six others that tell it.

    Parameters
    ----------
    class_of, row_of
        Class and row of the release of each record, negative if it is not published.
    names
        The columns of `release` that are published as they are.
    by_order
        Whether the order of its rows is attacked, too.

    Notes
    -----
    A sample of large tables: some seconds at most, whatever their size.
    """
    rng = np.random.default_rng(seed)
    drawn = trial(class_of.astype(np.int64), records.person.astype(np.int64), rng=rng)
    place = row_of[drawn.rows]
    shown = {name: _placed(release[name][place], markers) for name in names}
    columns = {name: column.ranked for name, column in shown.items()}
    if by_order:
        columns[ORDER_OF_ROWS] = RankedColumn(place.astype(np.int64), numeric=True)
    known = {
        qi.name: RankedColumn(records.qi[drawn.rows, j].astype(np.int64), qi.numeric)
        for j, qi in enumerate(schema.qis)
    }
    for name, column in columns.items():
        ways = (False,) if name == ORDER_OF_ROWS else (False, True)
        found = _worst(drawn, (name,), [column], known, ways=ways, k=k, rng=rng)
        if found.found.repeats:
            shown.pop(name, None)
        yield found
    if len(shown) > 1:
        yield from _together(drawn, shown, known, k=k, rng=rng)


def alike_columns(records: Records, schema: Schema, *, seed: int) -> dict[str, list[str]]:
    """Return by name of a quasi-identifier of a table which others it tells.

    Of a sample, in groups of persons drawn at random; of more than 30 columns none are compared.
    """
    if len(schema.qis) > _MOST_COMPARED:
        return {}
    rng = np.random.default_rng(seed)
    rows = rng.permutation(records.n)[:_COMPARED]
    group = np.arange(len(rows)) // _GROUP
    drawn = TriedRecords(rows, group, group % 2)
    columns = {
        qi.name: RankedColumn(records.qi[rows, j].astype(np.int64), qi.numeric)
        for j, qi in enumerate(schema.qis)
    }
    told: dict[str, list[str]] = {}
    for (name, column), (other, known) in permutations(columns.items(), 2):
        if repetition(drawn, column, known, by_known=False, k=_GROUP, rng=rng).repeats:
            told.setdefault(name, []).append(other)
    return told


def telling_columns(
    release: TextTable, qis: Sequence[str], names: Sequence[str], markers: Sequence[str]
) -> dict[str, str]:
    """Return the columns of a release that seem to say what labels hide, and of which.

    See `tells_more_than_label`.
    """
    rows = np.random.default_rng(0).permutation(len(release))[:_COMPARED]
    fold = np.arange(len(rows)) % 2
    told = {}
    labels = {name: numbered(release.frame[name].cast(pl.String)[rows])[1] for name in qis}
    for name in names:
        column = _placed(release.frame[name][rows], markers).ranked
        for qi, label in labels.items():
            if tells_more_than_label(
                column, RankedColumn(label.astype(np.int64), numeric=False), fold
            ):
                told[name] = qi
    return told


def _together(
    drawn: TriedRecords,
    shown: dict[str, PlacedColumn],
    known: dict[str, RankedColumn],
    *,
    k: int,
    rng: np.random.Generator,
) -> Iterator[RepeatedColumn]:
    places = fewer_records(drawn, rng)
    few = some_of(drawn, places)
    known = {name: RankedColumn(of.rank[places], of.numeric) for name, of in known.items()}
    some = {
        name: PlacedColumn(
            RankedColumn(column.ranked.rank[places], column.ranked.numeric), column.place[places]
        )
        for name, column in [*shown.items()][:_MOST_IN_TWO]
    }
    two = _worst_of(2, few, some, known, k=k, rng=rng)
    yield two
    if two.found.repeats:
        some = {name: column for name, column in some.items() if name not in two.columns}
    if len(some) > 2:
        some = dict([*some.items()][:_MOST_IN_THREE])
        three = _worst_of(3, few, some, known, k=k, rng=rng)
        if three.found.repeats:
            yield three


def _worst_of(
    n_together: int,
    drawn: TriedRecords,
    shown: dict[str, PlacedColumn],
    known: dict[str, RankedColumn],
    *,
    k: int,
    rng: np.random.Generator,
) -> RepeatedColumn:
    each = (
        _worst(
            drawn,
            names,
            joined_columns(*(shown[name] for name in names)),
            known,
            ways=(False,),
            k=k,
            rng=rng,
        )
        for names in combinations(shown, n_together)
    )
    return max(each, key=_how_far)


def _worst(
    drawn: TriedRecords,
    names: tuple[str, ...],
    columns: Iterable[RankedColumn],
    known: dict[str, RankedColumn],
    *,
    ways: Sequence[bool],
    k: int,
    rng: np.random.Generator,
) -> RepeatedColumn:
    each = (
        RepeatedColumn(names, qi, repetition(drawn, column, of, by_known=way, k=k, rng=rng))
        for column in columns
        for qi, of in known.items()
        for way in ways
    )
    return max(each, key=_how_far)


def _how_far(one: RepeatedColumn) -> tuple[bool, float]:
    return one.found.repeats, one.found.success - one.found.shuffled


def _placed(cells: pl.Series, markers: Sequence[str]) -> PlacedColumn:
    """Return the cells of a column by number or time, where they are such."""
    table = TextTable(Path("a release"), cells.to_frame())
    rules = ColumnRules(markers=markers)
    try:
        coded = code_column(table, cells.name, rules)
    except InputError:  # it has two readings
        coded = code_column(table, cells.name, replace(rules, as_category=True))
    ranked = RankedColumn(coded.code.astype(np.int64), coded.attribute.numeric)
    return PlacedColumn(ranked, coded.attribute.position[coded.code])
