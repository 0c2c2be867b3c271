"""Tables 4 to 7 of the multi-source paper: what plain k-anonymity and l-diversity leak.

The paper counts, for each quasi-identifier, the classes that hold a single original value of it;
the leaks of a source are the sum over its attributes. Beside that count stand the cells that
Algorithm 1, the adversary himself, learns of the release.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.attacks.linkability import Knowledge, infer
from anonymizer.algorithms.attacks.released_classes import Published, publish
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from experiments.compared_methods import Method, form_classes
from experiments.multisource_tables import Reading, Study
from experiments.printed_figures import (
    ADULT,
    K_ANONYMITY,
    K_OF,
    L_DIVERSITY,
    TABLES,
    D,
    L,
)
from experiments.rivals import (
    FullDomain,
    full_domain,
    full_domain_classes,
    full_domain_labels,
    top_down,
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inferred:
    """The inference set of Algorithm 1: which cells of the table he learns.

    Attributes
    ----------
    known
        Index of the source that he knows.
    record, qi
        Record and quasi-identifier of each cell, both shape (cells,).
    """

    known: int
    record: IntArray
    qi: IntArray


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakRow:
    """One algorithm on one table, counted as the paper counts.

    Attributes
    ----------
    table
        Number of the paper's table.
    promise, data, algorithm
        What is compared.
    by_the_paper
        Whether the paper prints the row; otherwise it is ours.
    uniform
        Classes with a single original value of each quasi-identifier, shape (quasi-identifiers,).
    n_classes, n_suppressed
        Classes, and records in none; of printed rows, the latter is not known (None).
    leaks
        Leaks of each source: the sum of `uniform` over its attributes.
    inferred
        What Algorithm 1 learns from each source about the other one; empty in printed rows.
    """

    table: int
    promise: str
    data: str
    algorithm: str
    by_the_paper: bool
    uniform: tuple[int, ...]
    n_classes: int
    n_suppressed: int | None
    leaks: tuple[int, ...]
    inferred: tuple[Inferred, ...] = ()

    @property
    def n_inferred(self) -> int | None:
        """Cells that Algorithm 1 learns, over both sources; None in printed rows."""
        return None if self.by_the_paper else sum(len(each.record) for each in self.inferred)


def leak_rows(study: Study, shape: str, *, best_s: float, seed: int) -> Iterator[LeakRow]:
    """Yield the rows of tables 4 and 5 (`ADULT`) or 6 and 7 (`CENSUS`), the printed ones first.

    Printed rows stand beside the paper's own tables alone, not beside made ones of their shape.
    """
    records, schema = study.of[Reading.PAPER]
    first = 4 if shape == ADULT else 6
    if study.is_adult or study.is_census:
        for row in TABLES:
            if row.data == shape:
                yield LeakRow(
                    row.table,
                    row.promise,
                    row.data,
                    row.algorithm,
                    by_the_paper=True,
                    uniform=row.uniform,
                    n_classes=row.n_classes,
                    n_suppressed=None,
                    leaks=row.leaks,
                )
    k = K_OF[shape]
    for release in _plain(study, shape, k, best_s=best_s, seed=seed):
        yield _row(study, first, K_ANONYMITY, release)
    values = [len(np.unique(column)) for column in records.sensitive.T]
    if schema.sensitive and min(values) >= L:
        for release in _diverse(study, k, best_s=best_s, seed=seed):
            yield _row(study, first + 1, L_DIVERSITY, release)


_Release: TypeAlias = tuple[str, Int32Array, Published]
"""Algorithm, class of each record, and labels."""


def _plain(study: Study, shape: str, k: int, *, best_s: float, seed: int) -> Iterator[_Release]:
    """Yield k-anonymity by the rivals, and (k,d)-anonymity."""
    records, schema = study.of[Reading.PAPER]
    if shape == ADULT:
        yield _local("Top-down", records, schema, top_down(records, schema, k, seed=seed))
    alone = Promise(k=k)
    mondrian = form_classes(records, schema, alone, Method.MONDRIAN)
    yield _local("Mondrian", records, schema, mondrian)
    yield from _full_domain(records, schema, k, l=1)
    for method in _methods(Method.HILBERT, best_s=best_s):
        promise = Promise(k=k, d=D)
        class_of = form_classes(records, schema, promise, method, best_s=best_s, seed=seed)
        yield _local(f"(k,d)-anonymity, {method}", records, schema, class_of)


def _diverse(study: Study, k: int, *, best_s: float, seed: int) -> Iterator[_Release]:
    """Yield l-diversity by the rivals, and (k,l,d)-diversity."""
    records, schema = study.of[Reading.PAPER]
    yield from _full_domain(records, schema, k, l=L)
    for method in _methods(Method.HILBERT, Method.PRINTED, best_s=best_s):
        promise = Promise(k=k, d=D, l=L)
        class_of = form_classes(records, schema, promise, method, best_s=best_s, seed=seed)
        yield _local(f"(k,l,d)-diversity, {method}", records, schema, class_of)


def _methods(*methods: Method, best_s: float) -> tuple[Method, ...]:
    return (*methods, Method.BEST) if best_s > 0 else methods


def _local(algorithm: str, records: Records, schema: Schema, class_of: Int32Array) -> _Release:
    return algorithm, class_of, publish(records, schema, class_of)


def _full_domain(records: Records, schema: Schema, k: int, *, l: int) -> Iterator[_Release]:  # noqa: E741
    """Yield the result of Incognito of least height, and that of least loss, as Flash returns."""
    minimal = full_domain(records, schema, k, l=l)
    if not minimal:
        return
    chosen: list[tuple[str, FullDomain]] = [
        ("Incognito", minimal[0]),
        ("Flash", min(minimal, key=lambda found: found.loss)),
    ]
    for algorithm, found in chosen:
        class_of = full_domain_classes(records, schema, found)
        yield algorithm, class_of, full_domain_labels(records, schema, found, class_of)


def _row(study: Study, table: int, promise: str, release: _Release) -> LeakRow:
    algorithm, class_of, published = release
    records, schema = study.of[Reading.PAPER]
    uniform = uniform_classes(records, class_of)
    kept = np.flatnonzero(class_of >= 0)
    inferred = []
    for each in infer(published, schema, records, class_of):
        if each.knows is Knowledge.LABELS:
            row, column = np.nonzero(each.learns[:, : len(schema.qis)])
            inferred.append(Inferred(each.known, kept[row], column))
    return LeakRow(
        table,
        promise,
        study.name,
        algorithm,
        by_the_paper=False,
        uniform=tuple(uniform.tolist()),
        n_classes=published.n_classes,
        n_suppressed=int((class_of < 0).sum()),
        leaks=tuple(int(uniform[list(source)].sum()) for source in schema.sources),
        inferred=tuple(inferred),
    )


def uniform_classes(records: Records, class_of: Int32Array) -> IntArray:
    """Return how many classes hold a single original value of each quasi-identifier. O(n)."""
    kept = class_of >= 0
    of = class_of[kept]
    n_classes = int(of.max(initial=-1)) + 1
    found = []
    for column in records.qi[kept].T:
        low, high = np.full(n_classes, np.iinfo(np.int32).max), np.full(n_classes, -1)
        np.minimum.at(low, of, column)
        np.maximum.at(high, of, column)
        found.append(int((low == high).sum()))
    return np.array(found, np.int64)
