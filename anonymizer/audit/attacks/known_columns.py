"""Known columns: who is told apart by all that is published, outside of every promise too.

Quasi-identifiers are what a promise assumes to be known. Here the adversary also knows what is
published as it is: sensitive and kept columns.
"""

from collections.abc import Iterator

import numpy as np

from anonymizer.algorithms.records.ordering import numbered as numbered_rows
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.table_case import TableCase
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.files.coded_columns import texts
from anonymizer.files.published_tables import numbered


def known_columns(case: TableCase) -> Iterator[Finding]:
    """Attack as somebody who also knows what is published as it is."""
    kept = case.row_of >= 0
    cells = {name: numbered(texts(case.release.table, name))[1] for name in case.open_columns}
    codes = {name: code[case.row_of[kept]] for name, code in cells.items()}
    class_of, person = case.class_of[kept], case.records.person[kept]
    if not codes or not len(class_of):
        return
    n_persons = len(np.unique(person))
    open_ = np.column_stack([*codes.values()])
    for attack, rows in (
        ("rows by all columns", np.column_stack([class_of, open_])),
        ("rows by open columns", open_),
    ):
        company = _company(rows, person)
        yield Finding(
            attack=attack,
            attribute=", ".join(codes),
            figures={
                "average": float((1 / company).mean()),
                "highest": float(1 / company.min()),
                "share_alone": float((company == 1).mean()),
                "guess": 1 / max(n_persons, 1),
                "n": len(class_of),
            },
        )
    for name in case.declared.sensitive:
        others = [code for other, code in codes.items() if other != name]
        if not others:
            continue
        by_all = _told(np.column_stack([class_of, *others]), codes[name])
        by_class = _told(class_of[:, None], codes[name])
        yield Finding(
            attack="values by other columns",
            attribute=name,
            figures={
                "share_read": len(np.unique(person[by_all])) / n_persons,
                "share_control": len(np.unique(person[by_class])) / n_persons,
                "n_people": len(np.unique(person[by_all])),
            },
        )


def _company(rows: Int32Array, person: Int32Array) -> IntArray:
    """Return of each record how many persons have one like it."""
    alike = numbered_rows(rows)
    of_person = np.unique(np.column_stack([alike, person]), axis=0)[:, 0]
    return np.bincount(of_person, minlength=int(alike.max()) + 1)[alike]


def _told(rows: Int32Array, value: Int32Array) -> BoolArray:
    """Return of each record whether all records like it have one value."""
    alike = numbered_rows(rows)
    pairs = np.unique(np.column_stack([alike, value]), axis=0)[:, 0]
    told: BoolArray = (np.bincount(pairs, minlength=int(alike.max()) + 1) == 1)[alike]
    return told


_AMONG_ALL = "a guess among all of the table"
ATTACK = Attack(
    "known columns",
    Subject.TABLE,
    known_columns,
    (
        Question(
            "rows by all columns",
            Criterion.SINGLING_OUT,
            "Does somebody who knows everything that is published of a person, kept and sensitive "
            "columns too, find their row?",
            ("average",),
            ("guess",),
            against=_AMONG_ALL,
        ),
        Question(
            "rows by open columns",
            Criterion.LINKABILITY,
            "Is a row recognized by its kept and sensitive columns alone, as in another table?",
            ("average",),
            ("guess",),
            against=_AMONG_ALL,
        ),
        Question(
            "values by other columns",
            Criterion.INFERENCE,
            "Is a sensitive value told to somebody who knows all other columns of a person?",
            ("share_read",),
            ("share_control",),
            against="who knows the quasi-identifiers alone",
        ),
    ),
)
