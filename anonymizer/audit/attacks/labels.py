"""Labels: whether they cover the cells of the original, and the rest is unchanged."""

from collections.abc import Iterator

import numpy as np

from anonymizer.algorithms.records.label_text import equal_cells
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.table_case import TableCase, cells_of_column, reader_of
from anonymizer.files.coded_columns import texts
from anonymizer.files.published_tables import numbered

_COVER = "cover every member, one a class"


def labels(case: TableCase) -> Iterator[Finding]:
    """Check that labels cover the cells of the original, and that the rest is unchanged."""
    kept = case.row_of >= 0
    row = case.row_of[kept]
    uneven = case.release.uneven().sum(axis=0)
    declared, release = case.declared, case.release
    for j, qi in enumerate(case.schema.qis):
        cells_as_read, times = cells_of_column(case.original, declared, qi)
        reader = reader_of(declared, qi, case.asked.labels, times)
        cells, cell_of = numbered(cells_as_read[case.row[kept]])
        pairs = np.column_stack([release.label_of[row, j], cell_of])
        outside = reader.uncovered(release.label_texts[j], cells, pairs.astype(np.int64))
        figures: dict[str, Figure] = {
            "n_rows_outside": int(outside.sum()),
            "n_classes_uneven": int(uneven[j]),
        }
        yield required("labels", figures, _COVER, holds=not any(figures.values()), of=qi.name)
    for name in (*declared.sensitive, *(n for n in declared.keep if n in release.columns)):
        before = texts(case.original, name)[case.row[kept]]
        after = texts(release.table, name)[row]
        pairs_of_cells = zip(before, after, strict=True)
        differs = sum(not equal_cells(one, other) for one, other in pairs_of_cells)
        yield required(
            "truth", {"n_rows_changed": differs}, "as in the original", holds=not differs, of=name
        )


LABELS = Question(
    "labels",
    Criterion.TRUTH,
    "Is each person within what is published of them?",
    bar=_COVER,
)
TRUTH = Question("truth", Criterion.TRUTH, "Is the rest as in the original?", bar="unchanged")
ATTACK = Attack("labels", Subject.TABLE, labels, (LABELS, TRUTH))
