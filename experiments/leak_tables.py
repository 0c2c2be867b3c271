"""Tables 4 to 7 of the multi-source paper: what plain k-anonymity and l-diversity leak.

The paper counts, for each quasi-identifier, the classes that hold a single original value of it;
the leaks of a source are the sum over its attributes. Beside that count stand the cells that
Algorithm 1, the adversary himself, learns of the release.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.releases.released_classes import Published, publish
from anonymizer.audit.mathematics.linkability import Knowledge, infer
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

_LISTED = {4, 5}
"""Tables whose inferred cells are listed one by one; of the large table, they are counted."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inferred:
    """The inference set of Algorithm 1: which cells of the table he learns."""

    known: int
    """Index of the source that he knows."""
    record: tuple[int, ...]
    qi: tuple[int, ...]
    """`record`, `qi`: record and quasi-identifier of each cell."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakRow:
    """One algorithm on one table, counted as the paper counts."""

    table: int
    """Number of the paper's table."""
    promise: str
    data: str
    algorithm: str
    """`promise`, `data`, `algorithm`: what is compared."""
    by_the_paper: bool
    """Whether the paper prints the row; otherwise it is ours."""
    uniform: tuple[int, ...]
    """Classes with a single original value of each quasi-identifier, shape (quasi-identifiers,)."""
    n_classes: int
    n_suppressed: int | None
    """`n_classes`, `n_suppressed`: classes, and records in none; of printed rows, the latter is not
    known (None)."""
    leaks: tuple[int, ...]
    """Leaks of each source: the sum of `uniform` over its attributes."""
    n_inferred: int | None = None
    """Cells that Algorithm 1 learns, over both sources; None in printed rows."""
    inferred: tuple[Inferred, ...] = ()
    """What he learns from each source about the other one, of tables 4 and 5."""


def leak_rows(study: Study, shape: str, *, best_s: float, seed: int) -> Iterator[LeakRow]:
    """Yield the rows of tables 4 and 5 (`ADULT`) or 6 and 7 (`CENSUS`), the printed ones first."""
    yield from printed_rows(study, shape)
    for _, find in releases(study, shape, best_s=best_s, seed=seed):
        yield find()


def printed_rows(study: Study, shape: str) -> list[LeakRow]:
    """Return the rows that the paper prints: of its own tables, not of made ones of their shape."""
    if not (study.is_adult or study.is_census):
        return []
    return [
        LeakRow(
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
        for row in TABLES
        if row.data == shape
    ]


def releases(
    study: Study, shape: str, *, best_s: float, seed: int
) -> Iterator[tuple[str, Callable[[], LeakRow]]]:
    """Yield the table and algorithm of each row of ours, and what finds it."""
    records, schema = study.of[Reading.PAPER]
    first = 4 if shape == ADULT else 6
    of = _Rivals(records, schema, K_OF[shape], best_s, seed)
    every = [(first, K_ANONYMITY, each) for each in of.plain(with_top_down=shape == ADULT)]
    values = [len(np.unique(column)) for column in records.sensitive.T]
    if schema.sensitive and min(values) >= L:
        every += [(first + 1, L_DIVERSITY, each) for each in of.diverse()]
    for table, promise, (algorithm, form) in every:
        name = f"table {table}, {algorithm}"
        yield name, partial(_row, study, table, promise, algorithm, form)


_Form: TypeAlias = Callable[[], tuple[Int32Array, Published]]
"""Forms a release: the class of each record, and the labels."""


@dataclass(frozen=True, eq=False, repr=False)
class _Rivals:
    """The algorithms that are compared, each with what forms its release of one table."""

    records: Records
    schema: Schema
    k: int
    best_s: float
    seed: int

    def plain(self, *, with_top_down: bool) -> Iterator[tuple[str, _Form]]:
        """Yield k-anonymity by the rivals, and (k,d)-anonymity."""
        if with_top_down:
            yield "Top-down", self._top_down
        yield "Mondrian", partial(self._local, Promise(k=self.k), Method.MONDRIAN)
        yield from self._full_domain(1)
        for method in self._methods(Method.HILBERT):
            promise = Promise(k=self.k, d=D)
            yield f"(k,d)-anonymity, {method}", partial(self._local, promise, method)

    def diverse(self) -> Iterator[tuple[str, _Form]]:
        """Yield l-diversity by the rivals, and (k,l,d)-diversity."""
        yield from self._full_domain(L)
        for method in self._methods(Method.HILBERT, Method.PRINTED):
            promise = Promise(k=self.k, d=D, l=L)
            yield f"(k,l,d)-diversity, {method}", partial(self._local, promise, method)

    def _methods(self, *methods: Method) -> tuple[Method, ...]:
        return (*methods, Method.BEST) if self.best_s > 0 else methods

    def _top_down(self) -> tuple[Int32Array, Published]:
        class_of = top_down(self.records, self.schema, self.k, seed=self.seed)
        return class_of, publish(self.records, self.schema, class_of)

    def _local(self, promise: Promise, method: Method) -> tuple[Int32Array, Published]:
        class_of = form_classes(
            self.records, self.schema, promise, method, best_s=self.best_s, seed=self.seed
        )
        return class_of, publish(self.records, self.schema, class_of)

    def _full_domain(self, l: int) -> Iterator[tuple[str, _Form]]:  # noqa: E741  the field's name
        """Yield the result of Incognito of least height, and that of least loss, as Flash returns.

        The last level of each attribute holds everything, so that there is a result wherever the
        whole table keeps the promise.
        """
        values = [len(np.unique(column)) for column in self.records.sensitive.T]
        if self.records.n < self.k or min(values, default=l) < l:
            return

        @cache
        def minimal() -> list[FullDomain]:
            return full_domain(self.records, self.schema, self.k, l=l)

        def formed(loss: bool) -> tuple[Int32Array, Published]:  # noqa: FBT001
            found = min(minimal(), key=lambda each: each.loss) if loss else minimal()[0]
            class_of = full_domain_classes(self.records, self.schema, found)
            return class_of, full_domain_labels(self.records, self.schema, found, class_of)

        yield "Incognito", partial(formed, loss=False)
        yield "Flash", partial(formed, loss=True)


def _row(study: Study, table: int, promise: str, algorithm: str, form: _Form) -> LeakRow:
    class_of, published = form()
    records, schema = study.of[Reading.PAPER]
    uniform = uniform_classes(records, class_of)
    kept = np.flatnonzero(class_of >= 0)
    inferred, n_inferred = [], 0
    for each in infer(published, schema, records, class_of):
        if each.knows is Knowledge.LABELS:
            row, column = np.nonzero(each.learns[:, : len(schema.qis)])
            n_inferred += len(row)
            if table in _LISTED:
                found = tuple(kept[row].tolist()), tuple(column.tolist())
                inferred.append(Inferred(each.known, *found))
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
        n_inferred=n_inferred,
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
