"""Heavy persons: those who have several rows of a class."""

from collections.abc import Iterator

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.mathematics.heavy_persons import weigh
from anonymizer.audit.table_case import TableCase

_BAR = "one row each"


def heavy_persons(case: TableCase) -> Iterator[Finding]:
    """Attack the persons of several rows; where nobody has several, nobody weighs more."""
    records = case.banded.records
    found = weigh(case.class_of, records.person, records.sensitive)
    figures: dict[str, Figure] = {
        "n_people": found.n_people,
        "share_max": found.share_max,
        "share_fair": found.share_fair,
    }
    yield required("heavy persons", figures, _BAR, holds=not found.n_people)
    if not found.n_people:
        return
    each = zip(case.banded.schema.sensitive, found.read, found.read_control, strict=True)
    for attribute, read, control in each:
        shares: dict[str, Figure] = {"share_read": read, "share_read_control": control}
        yield Finding(attack="heavy persons", attribute=attribute.name, figures=shares)


ATTACK = Attack(
    "heavy persons",
    Subject.TABLE,
    heavy_persons,
    (
        Question(
            "heavy persons",
            Criterion.INFERENCE,
            "Does everybody weigh as one person in each group?",
            bar=_BAR,
        ),
    ),
)
