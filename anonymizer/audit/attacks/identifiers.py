"""Identifiers: as a column, as class numbers, and rows that are no persons."""

from collections.abc import Iterator

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.table_case import TableCase
from anonymizer.files.coded_columns import texts
from anonymizer.files.published_tables import CLASS_COLUMN

_NOBODY = "none; who states no quasi-identifier is beside k others"


def identifiers(case: TableCase) -> Iterator[Finding]:
    """Look for identifiers, as a column and as class numbers, and for rows that are no persons."""
    direct = case.declared.id
    n_columns = int(direct is not None and direct in case.release.columns)
    yield required("identifiers", {"n_columns": n_columns}, "none", holds=not n_columns)
    k = max(case.asked.promise.k, 1)
    n_short = int((case.beside_few < k).sum())
    figures: dict[str, Figure] = {"n_rows": case.n_nobodys, "n_classes": n_short}
    yield required("rows of nobody", figures, _NOBODY, holds=not any(figures.values()))
    given = texts(case.release.table, CLASS_COLUMN).to_list()
    wrong = sum(str(of) != cell for of, cell in zip(case.release.class_of, given, strict=True))
    yield required("class numbers", {"n_rows": wrong}, "0, 1, 2... in this order", holds=not wrong)


ATTACK = Attack(
    "identifiers",
    Subject.TABLE,
    identifiers,
    (
        Question(
            "identifiers",
            Criterion.SINGLING_OUT,
            "Does the release contain the column of identifiers?",
            bar="none",
        ),
        Question(
            "rows of nobody",
            Criterion.SINGLING_OUT,
            "Are people hidden among rows that are no person, such as blank ones?",
            bar=_NOBODY,
        ),
        Question(
            "class numbers",
            Criterion.TRUTH,
            "Do the numbers of groups tell nothing?",
            bar="0, 1, 2... in this order",
        ),
    ),
)
