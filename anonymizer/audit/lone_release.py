"""A release of a table by itself, made by anybody: which k, l and t it has, without its original.

Rows whose quasi-identifiers read alike are a class, whatever form the labels have: `*`, ranges,
sets, nodes of a hierarchy. A row of which every quasi-identifier is suppressed hides nobody and
reveals nobody; it is left out and counted, unless all are. What labels cover is not asked: whoever
joins classes whose labels are spelled otherwise but cover the same finds no smaller k or l and no
greater t. Sensitive values are counted by what they mean, as where a table is anonymized: `HIV` and
`hiv` are one value, and `NA` is none. Rows of totals, headings and pages are nobody's.

Columns that are neither quasi-identifiers nor sensitive are not judged, but for direct identifiers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.algorithms.records.verification import held_by
from anonymizer.audit.repeating_columns import telling_columns
from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import ColumnRules, code_column
from anonymizer.files.coded_table import Declared
from anonymizer.files.identifiers import Recognized, identifying_columns
from anonymizer.files.meanings import meant
from anonymizer.files.rows_of_nobody import without_nobodies
from anonymizer.files.tables import TextTable, no_column

SUPPRESSED = frozenset({"", "*", "**", "***", "?", "na", "n/a", "nan", "null", "none", "<na>", "."})
"""What programs write for a cell that they suppressed, in small letters."""
_NO_VALUE = (*NO_VALUE, "*", "**", "***")
_STARS = r"^\*+$"
_MOST_ROWS = 100_000_000
_MOST_PATTERNS = 20_000
"""Different classes with a suppressed cell up to which wildcards are compared with all classes."""


@dataclass(frozen=True, slots=True)
class SensitiveFigures:
    """What the classes tell of a sensitive attribute."""

    distinct_l: int
    """Fewest different values in a class; a missing one is none."""
    entropy_l: float
    """Exponential of the least entropy of a class."""
    t: float
    """Greatest earth mover's distance of a class to the whole, as `anonymize` promises it."""
    share: float
    """Greatest share of one value in a class: how surely it is guessed."""
    ordered: bool
    """Whether its values are numbers, dates or times."""
    read_as: str
    """What its cells were taken for."""


@dataclass(frozen=True, slots=True)
class LoneRelease:
    """What a release has by itself."""

    n_rows: int
    n_nobodys: int
    n_suppressed: int
    """`n_rows`, `n_nobodys`, `n_suppressed`: rows, those that nobody is behind, and those of which
    all quasi-identifiers are suppressed."""
    n_classes: int
    """Classes of the others."""
    k: int
    """Rows of the smallest class; 0 if there is none."""
    k_by_wildcards: int | None
    """The same if a suppressed cell may be any value, as sdcMicro counts; None: too many
    classes."""
    n_alone: int
    n_below: int
    """`n_alone`, `n_below`: rows that are alone in their class, and those in classes of fewer than
    `k_asked`."""
    sensitive: dict[str, SensitiveFigures]
    """By name of the attribute."""
    not_judged: list[str]
    identifying: dict[str, Recognized]
    """`not_judged`, `identifying`: the other columns, and what those hold that seem to hold direct
    identifiers."""
    telling: dict[str, str]
    """Columns, sensitive ones too, that seem to say what a label hides, and of which."""


def judge_release(
    table: TextTable,
    qis: Sequence[str],
    sensitive: Sequence[str],
    *,
    k_asked: int = 2,
    count: str | None = None,
) -> LoneRelease:
    """Return the k, l and t of a release. O(n log n), and classes squared if cells are suppressed.

    `count`: column that says how many rows each row stands for, as anonypy writes; None: for one.

    Raises `InputError` if it lacks a column, none is a quasi-identifier, one is stated for two
    things, or counts are none or too many.
    """
    both = [name for name in qis if name in (*sensitive, count)]
    if both := both or [name for name in sensitive if name == count]:
        raise InputError(f"{table.path}: column {both[0]}: state it for one thing alone")
    others = [name for name in table.frame.columns if name not in (*qis, *sensitive, count)]
    for name in (*qis, *sensitive):
        if name not in table.frame.columns:
            raise no_column(table.path, name, table.frame.columns)
    if not qis:
        raise InputError(f"{table.path}: state its quasi-identifiers with --qi")
    is_nobody = _of_nobody(table, (*qis, *sensitive))
    table = replace(table, frame=table.frame.filter(~pl.Series(is_nobody)))
    found = identifying_columns(table, table, qis=(), sensitive=(), keep=others, markers=_NO_VALUE)
    identifying = dict(found)
    if count is not None:
        table = _counted_out(table, count)
    cells = table.frame.select(
        pl.col(name).cast(pl.String).fill_null("").str.strip_chars() for name in (*qis, *sensitive)
    )
    hidden = _suppressed(cells.select(qis))
    kept = ~hidden.all(axis=1)
    if not kept.any():  # nothing is left to be told apart by: all are one class
        kept = ~kept
    shown, hidden = cells.filter(pl.Series(kept)), hidden[kept]
    class_of, labels, is_hidden = _classes(shown.select(qis), hidden)
    size = np.bincount(class_of, minlength=len(labels))
    of_row = size[class_of]
    return LoneRelease(
        n_rows=len(cells) + int(is_nobody.sum()),
        n_nobodys=int(is_nobody.sum()),
        n_suppressed=int((~kept).sum()),
        n_classes=len(size),
        k=int(size.min(initial=len(shown))),
        k_by_wildcards=_k_by_wildcards(labels, is_hidden, size),
        n_alone=int((of_row == 1).sum()),
        n_below=int((of_row < k_asked).sum()),
        sensitive={name: _figures(shown[name], class_of) for name in sensitive},
        not_judged=others,
        identifying=identifying,
        telling=telling_columns(
            replace(table, frame=table.frame.filter(pl.Series(kept))),
            qis,
            [*sensitive, *others],
            _NO_VALUE,
        ),
    )


def _of_nobody(table: TextTable, names: Sequence[str]) -> BoolArray:
    """Return which rows are nobody's; a word of totals tells so in a sensitive attribute, too."""
    marks = pl.col(names).cast(pl.String).str.replace(_STARS, "*")
    shown = table.frame.with_columns(marks)
    declared = Declared(qis=names, markers=_NO_VALUE)
    left = without_nobodies(replace(table, frame=shown), declared, is_release=True).frame
    none_left = left.select(pl.all_horizontal(pl.col(names).is_null())).to_series()
    none_there = shown.select(pl.all_horizontal(pl.col(names).is_null())).to_series()
    nobody: BoolArray = (none_left & ~none_there).to_numpy()
    return nobody


def _counted_out(table: TextTable, count: str) -> TextTable:
    """Return each row as often as it counts."""
    if count not in table.frame.columns:
        raise no_column(table.path, count, table.frame.columns)
    n = table.frame[count].cast(pl.String).cast(pl.Int64, strict=False)
    if n.null_count() or not n.is_between(0, _MOST_ROWS).all() or n.sum() > _MOST_ROWS:
        raise InputError(f"{table.path}: column {count}: must hold counts, {_MOST_ROWS:,} in all")
    return replace(table, frame=table.frame[np.repeat(np.arange(len(n)), n.to_numpy())])


def _suppressed(cells: pl.DataFrame) -> BoolArray:
    lower = cells.select(pl.all().str.to_lowercase().is_in(sorted(SUPPRESSED)))
    found: BoolArray = lower.to_numpy().astype(bool)
    return found


def _classes(cells: pl.DataFrame, hidden: BoolArray) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the class of each row, and of each class its labels as codes and which are hidden."""
    codes = np.zeros(cells.shape, np.int64)
    for i, column in enumerate(cells):
        codes[:, i] = np.unique(column.to_numpy().astype(str), return_inverse=True)[1].ravel()
    codes[hidden] = -1
    labels, class_of = np.unique(codes, axis=0, return_inverse=True)
    return class_of.ravel(), labels, labels < 0


def _k_by_wildcards(labels: IntArray, hidden: BoolArray, size: IntArray) -> int | None:
    """Return the fewest rows that may be meant by a row, if what is suppressed is any value."""
    if not len(size):
        return 0
    if not hidden.any():
        return int(size.min())
    if len(labels) > _MOST_PATTERNS:
        return None
    least = int(size.sum())
    for label, own in zip(labels, hidden, strict=True):
        matches = (labels == label) | hidden | own
        least = min(least, int(size[matches.all(axis=1)].sum()))
    return least


def _figures(column: pl.Series, class_of: IntArray) -> SensitiveFigures:
    """Return the figures of classes numbered from 0, by the values that a table is read with."""
    counted = meant(column, markers=_NO_VALUE).of(column)
    table = TextTable(Path("a release"), counted.to_frame())
    rules = ColumnRules(markers=_NO_VALUE)
    try:
        coded = code_column(table, column.name, rules)
    except InputError:  # a comma may be of decimals or of thousands
        coded = code_column(table, column.name, replace(rules, as_category=True))
    ordered, read_as = coded.attribute.numeric, coded.read_as
    if not len(class_of):
        return SensitiveFigures(0, 0.0, 0.0, 0.0, ordered, read_as)
    code = coded.code.astype(np.int64)
    usual = np.bincount(code, minlength=coded.attribute.size)
    held = held_by(class_of, code, np.zeros(0, np.int32), coded.attribute, usual)
    return SensitiveFigures(
        distinct_l=int(held.n_values(0).min()),
        entropy_l=float(held.diversity(0).min()),
        t=float(held.distance(0).max()),
        share=float((held.most / held.n_persons).max()),
        ordered=ordered,
        read_as=read_as,
    )
