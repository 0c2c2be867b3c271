"""All columns of a published table, those outside every promise too: who is told apart by them.

Quasi-identifiers are what a promise assumes to be known. Here the adversary also knows what is
published as it is: sensitive and kept columns. Of direct identifiers, which are recognized by what
cells hold, none may be there unless its owner names a reason.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from anonymizer.algorithms.records.ordering import numbered
from anonymizer.audit.findings import Finding
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.files.identifiers import identifying_columns
from anonymizer.files.tables import TextTable


def direct_identifiers(
    original: TextTable,
    release: TextTable,
    *,
    qis: Sequence[str],
    sensitive: Sequence[str],
    keep: Sequence[str],
    markers: Sequence[str],
    reasons: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield a finding for each column that holds direct identifiers, and one if none does.

    See `identifying_columns`. Columns with one of the `reasons` are reported, and fail nothing.
    """
    n_found, n = 0, len(release)
    for name, found in identifying_columns(
        original, release, qis=qis, sensitive=sensitive, keep=keep, markers=markers
    ):
        n_found += 1
        named = name in reasons
        yield Finding(
            attack=f"direct identifiers ({found.kind})",
            attribute=name,
            figures={"n_rows": found.n_cells, "n": n},
            bar=None if named else "none without a reason",
            holds=None if named else False,
            required=not named,
        )
    if not n_found:
        yield Finding(
            attack="direct identifiers",
            figures={"n_columns": 0},
            bar="none without a reason",
            holds=True,
            required=True,
        )


def known_columns(
    class_of: Int32Array,
    codes: Mapping[str, Int32Array],
    person: Int32Array,
    sensitive: Sequence[str],
) -> Iterator[Finding]:
    """Attack as somebody who also knows what is published as it is.

    `class_of`: of each published record, from 0; `codes`: the cells of the columns that are
    published as they are, as codes, by name; all of shape (records,).
    """
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
    for name in sensitive:
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
    alike = numbered(rows)
    of_person = np.unique(np.column_stack([alike, person]), axis=0)[:, 0]
    return np.bincount(of_person, minlength=int(alike.max()) + 1)[alike]


def _told(rows: Int32Array, value: Int32Array) -> BoolArray:
    """Return of each record whether all records like it have one value."""
    alike = numbered(rows)
    pairs = np.unique(np.column_stack([alike, value]), axis=0)[:, 0]
    told: BoolArray = (np.bincount(pairs, minlength=int(alike.max()) + 1) == 1)[alike]
    return told
