"""Two published tables about the same people at different times, attacked together.

The adversary [1]_ knows of a victim who is in both tables in which class of each they are, and that
a sensitive attribute has not changed: its value is one that both classes have. Of somebody who is
in the later table alone, the adversary knows the class, and which class of the earlier table has
the same labels: what that class has gained is what newcomers brought.

References
----------
.. [1] S. Ganta et al., "Composition attacks and auxiliary information in data privacy", 2008.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import polars as pl

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.table_case import Day, TableCase
from anonymizer.domain.arrays import IntArray
from anonymizer.errors import SettingsError
from anonymizer.files.coded_columns import texts
from anonymizer.files.coded_table import Declared, cells_of, meaning_of, persons_of
from anonymizer.files.published_tables import CLASS_COLUMN, read_row_map
from anonymizer.files.tables import TextTable, read_table


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Side:
    """A release as the adversary sees it."""

    class_of: Mapping[str, str]
    values: Mapping[str, Counter[str]]
    labels: Mapping[str, tuple[str, ...]]
    true: Mapping[str, str]


def tables_together(case: TableCase) -> Iterator[Finding]:
    """Yield what two tables tell together of each sensitive attribute, beside its controls.

    InputError if a file cannot be read or does not fit; SettingsError if no identifier is declared.
    """
    if case.asked.days is not None:
        earlier, later = case.asked.days
        yield from told_by_days(earlier, later, case.declared, seed=case.asked.seed)


def told_by_days(earlier: Day, later: Day, declared: Declared, *, seed: int) -> Iterator[Finding]:
    """Yield the same of two days.

    `id` of `declared` names the people. `seed`: of the control, for which each person's later class
    is that of another one.
    """
    if declared.id is None:
        raise SettingsError("with: needs --id, the column that names the people of both tables")
    days = _DayTables.of(earlier, declared), _DayTables.of(later, declared)
    originals = [each.original for each in days]
    people = _cells(originals, declared, declared.id)  # one for all writings of an identifier
    for name in declared.sensitive:
        # The same values in all files: each may have been published in a writing of its own.
        cells = _cells([*originals, *(each.release for each in days)], declared, name)
        one, two = (
            _side(each, declared, people[i], true=cells[i], published=cells[len(days) + i])
            for i, each in enumerate(days)
        )
        yield _intersection(one, two, name, seed)
        yield _newcomers(one, two, name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _DayTables:
    """The tables of a day, and the row of the release of each row of the original."""

    original: TextTable
    release: TextTable
    row_of: IntArray

    @classmethod
    def of(cls, day: Day, declared: Declared) -> "_DayTables":
        original = read_table(day.original, [declared.id or "", *declared.sensitive])
        release = read_table(day.release, [CLASS_COLUMN, *declared.qis, *declared.sensitive])
        row_of = read_row_map(day.auditor_map, n_rows=len(original), n_published=len(release))
        return cls(original, release, row_of)


def _side(
    day: _DayTables,
    declared: Declared,
    people: Sequence[str],
    *,
    true: Sequence[str],
    published: Sequence[str],
) -> _Side:
    classes = day.release.frame[CLASS_COLUMN].cast(str).to_list()
    written = (texts(day.release, qi).to_list() for qi in declared.qis)
    labels = zip(*([each or "" for each in column] for column in written), strict=True)
    values: dict[str, Counter[str]] = {}
    for each, value in zip(classes, published, strict=True):
        values.setdefault(each, Counter())[value] += 1
    n_rows = Counter(people)
    class_of, true_of = {}, {}
    for person, value, row in zip(people, true, day.row_of.tolist(), strict=True):
        if row >= 0 and person and n_rows[person] == 1:
            class_of[person], true_of[person] = classes[row], value
    return _Side(class_of, values, dict(zip(classes, labels, strict=True)), true_of)


def _cells(tables: Sequence[TextTable], declared: Declared, name: str) -> list[list[str]]:
    """Return the cells of a column of each table by what they mean in all; empty: missing."""
    whole = pl.concat([table.frame[name].cast(pl.String) for table in tables])
    column = meaning_of(whole, declared).of(whole)
    if name == declared.id:
        column, _ = persons_of(column, declared)
    meant = TextTable(tables[0].path, column.to_frame())
    cells = [each or "" for each in cells_of(meant, declared, name).to_list()]
    ends = [0, *accumulate(len(table) for table in tables)]
    return [cells[start:end] for start, end in pairwise(ends)]


def _intersection(one: _Side, two: _Side, name: str, seed: int) -> Finding:
    both = sorted(one.class_of.keys() & two.class_of.keys())
    people = [each for each in both if one.true[each] == two.true[each]]
    others = np.random.default_rng(seed).permutation(len(people)).tolist()
    n_read = n_alone = n_control = 0
    for i, person in enumerate(people):
        first = set(one.values[one.class_of[person]])
        n_read += len(first & set(two.values[two.class_of[person]])) == 1
        n_alone += len(first) == 1 or len(two.values[two.class_of[person]]) == 1
        other = two.values[two.class_of[people[others[i]]]]
        n_control += first & set(other) == {one.true[person]}
    return _finding("tables together", name, len(people), read=n_read, alone=n_alone, by=n_control)


def _newcomers(one: _Side, two: _Side, name: str) -> Finding:
    same: dict[tuple[str, ...], Counter[str]] = {}
    for number, labels in one.labels.items():
        same.setdefault(labels, Counter()).update(one.values[number])
    # All classes with the same labels are one to the adversary.
    now: dict[tuple[str, ...], Counter[str]] = {}
    for number, labels in two.labels.items():
        now.setdefault(labels, Counter()).update(two.values[number])
    n = n_read = n_alone = 0
    for person in sorted(two.class_of.keys() - one.class_of.keys()):
        labels = two.labels[two.class_of[person]]
        if labels not in same:
            continue
        n += 1
        n_read += set(now[labels] - same[labels]) == {two.true[person]}
        n_alone += len(now[labels]) == 1
    return _finding("newcomers", name, n, read=n_read, alone=n_alone, by=n_alone)


def _finding(attack: str, name: str, n: int, *, read: int, alone: int, by: int) -> Finding:
    counts = {"share_read": read, "share_alone": alone, "share_control": by}
    figures: dict[str, Figure] = {key: count / n if n else None for key, count in counts.items()}
    return Finding(attack=attack, attribute=name, figures=figures | {"n_common": n})


ATTACK = Attack(
    "tables together",
    Subject.TABLE,
    tables_together,
    (
        Question(
            "tables together",
            Criterion.INFERENCE,
            "Do two tables, taken together, tell an attribute of a person?",
            ("share_read",),
            ("share_alone", "share_control"),
            n="n_common",
            against="one table alone, or with the other table of another person",
            together="both tables of",
        ),
        Question(
            "newcomers",
            Criterion.INFERENCE,
            "Does what a class has gained tell an attribute of who joined it?",
            ("share_read",),
            ("share_alone",),
            n="n_common",
            against="the later table alone",
            together="both tables of",
        ),
    ),
)
