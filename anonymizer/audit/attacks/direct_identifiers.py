"""Direct identifiers: published columns whose cells name a person.

They are recognized by what cells hold; none may be there unless its owner names a reason.
"""

from collections.abc import Iterator

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.table_case import TableCase
from anonymizer.errors import SettingsError
from anonymizer.files.identifiers import identifying_columns

_BAR = "none without a reason"


def direct_identifiers(case: TableCase) -> Iterator[Finding]:
    """Yield a finding for each column that holds direct identifiers, and one if none does.

    See `identifying_columns`. Columns with a reason are reported, and fail nothing.
    """
    declared, release, reasons = case.declared, case.release.table, case.asked.reasons
    if unknown := [name for name in reasons if name not in (*case.open_columns, *declared.qis)]:
        raise SettingsError(f"keep-anyway: {unknown[0]} is no published column")
    n_found, n = 0, len(release)
    for name, found in identifying_columns(
        case.original,
        release,
        qis=declared.qis,
        sensitive=declared.sensitive,
        keep=declared.keep,
        markers=declared.markers,
    ):
        n_found += 1
        named = name in reasons
        yield Finding(
            attack=f"direct identifiers ({found.kind})",
            attribute=name,
            figures={"n_rows": found.n_cells, "n": n},
            bar=None if named else _BAR,
            holds=None if named else False,
            required=not named,
        )
    if not n_found:
        yield Finding(
            attack="direct identifiers",
            figures={"n_columns": 0},
            bar=_BAR,
            holds=True,
            required=True,
        )


ATTACK = Attack(
    "direct identifiers",
    Subject.TABLE,
    direct_identifiers,
    (
        Question(
            "direct identifiers",
            Criterion.SINGLING_OUT,
            "Are e-mail addresses, names or other values published that only one person has?",
            bar=_BAR,
        ),
    ),
)
