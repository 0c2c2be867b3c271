"""Repeated columns: a quasi-identifier told by what stands beside its label.

The adversary knows no more than the promise assumes: the quasi-identifiers of a person. From others
they have learned what a kept or sensitive column says of one, as a town of a postcode, and pick the
rows of the class that say it. The order of the rows is such a column, too.
"""

from collections.abc import Iterator

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.repeated_columns import MOST, NEARLY_ALL
from anonymizer.audit.repeating_columns import repeated_columns
from anonymizer.audit.table_case import TableCase

_BAR = f"below {NEARLY_ALL:.0%} of what values tell; {MOST:.0%} where belief doubles"


def repeated(case: TableCase) -> Iterator[Finding]:
    """Yield a finding for each column that is published as it is, and for the order of rows."""
    declared, asked = case.declared, case.asked
    if not (case.class_of >= 0).any():
        return
    for told in repeated_columns(
        case.records,
        case.schema,
        case.class_of,
        case.row_of,
        case.release.table.frame,
        names=case.open_columns,
        markers=declared.markers,
        k=asked.promise.k if asked.promise.k > 1 else case.reached.k,
        seed=asked.seed,
        by_order=True,
    ):
        found = told.found
        excused = found.repeats and asked.reasons.keys() >= {*told.columns}
        yield Finding(
            attack=f"repeated columns ({told.qi})",
            attribute=told.name,
            figures={
                "average": found.success,
                "worst_tenth": found.worst,
                "guess": found.blind,
                "average_shuffled": found.shuffled,
                "average_of_values": found.ceiling,
                "share_told": found.told,
                "share_told_shuffled": found.told_shuffled,
                "share_below_k": found.share_below,
                "n": found.n,
            },
            bar=None if excused else _BAR,
            holds=None if excused else not found.repeats,
            required=not excused,
        )


ATTACK = Attack(
    "repeated columns",
    Subject.TABLE,
    repeated,
    (
        Question(
            "repeated columns",
            Criterion.SINGLING_OUT,
            "Does a column beside the labels say again what a label hides, so that "
            "quasi-identifiers alone pick a row?",
            ("average",),
            ("average_shuffled",),
            "n",
            exposed="worst_tenth",
            against="the same column shuffled in each class",
            bar=_BAR,
        ),
    ),
)
