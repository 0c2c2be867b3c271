"""The attacks that there are, by what they read, in the order in which they are mounted."""

from collections.abc import Iterator
from functools import cache
from pkgutil import resolve_name
from typing import Any

from anonymizer.audit.attack import Attack, Question, Subject, name_of
from anonymizer.audit.findings import Finding

_ROOM = "anonymizer.audit.attacks"
ATTACKS: dict[Subject, list[str]] = {
    Subject.POSITIONS: [
        f"{_ROOM}.soundness:ATTACK",
        f"{_ROOM}.k_reached:ATTACK",
        f"{_ROOM}.roots:ATTACK",
        f"{_ROOM}.inversion:ATTACK",
        f"{_ROOM}.session:ATTACK",
        f"{_ROOM}.intersection:ON_AIR",
        f"{_ROOM}.intersection:OFF_AIR",
        f"{_ROOM}.linking:ATTACK",
        f"{_ROOM}.velocity:ATTACK",
        f"{_ROOM}.tracking:ATTACK",
        f"{_ROOM}.timing:ATTACK",
        f"{_ROOM}.subtraction:ATTACK",
        f"{_ROOM}.density_leak:ATTACK",
        f"{_ROOM}.zones:HOLES",
        f"{_ROOM}.zones:DROPS",
        f"{_ROOM}.zones:ENDS",
        f"{_ROOM}.homes:ATTACK",
        f"{_ROOM}.leaving:ATTACK",
        f"{_ROOM}.habits:ATTACK",
        f"{_ROOM}.values:ATTACK",
        f"{_ROOM}.positions_with_counts:ATTACK",
        f"{_ROOM}.trips:ATTACK",
    ],
    Subject.COUNTS: [
        f"{_ROOM}.aggregates:ATTACK",
        f"{_ROOM}.durations:ATTACK",
        f"{_ROOM}.streets:ATTACK",
    ],
    Subject.WINDOWS: [
        f"{_ROOM}.window_criteria:ATTACK",
        f"{_ROOM}.window_truth:ATTACK",
        f"{_ROOM}.windows_together:ATTACK",
        f"{_ROOM}.heavy_vehicles:ATTACK",
        f"{_ROOM}.own_vehicles:ATTACK",
    ],
    Subject.RELEASES: [f"{_ROOM}.releases_together:ATTACK"],
    Subject.POSITIONS_AND_RECORDS: [f"{_ROOM}.positions_with_records:ATTACK"],
    Subject.TABLE: [
        f"{_ROOM}.identifiers:ATTACK",
        f"{_ROOM}.columns:ATTACK",
        f"{_ROOM}.labels:ATTACK",
        f"{_ROOM}.criteria:ATTACK",
        f"{_ROOM}.linkability:ATTACK",
        f"{_ROOM}.minimality:ATTACK",
        f"{_ROOM}.direct_identifiers:ATTACK",
        f"{_ROOM}.repeated_columns:ATTACK",
        f"{_ROOM}.known_columns:ATTACK",
        f"{_ROOM}.heavy_persons:ATTACK",
        f"{_ROOM}.own_rows:ATTACK",
        f"{_ROOM}.risks:ATTACK",
        f"{_ROOM}.tables_together:ATTACK",
    ],
}
"""Where each attack is. A module is imported when somebody asks for the attacks on what it reads:
those on tables would cost a gateway 80 MB."""


def attacks_on(evidence: Subject) -> list[Attack[Any]]:
    """Return the attacks on some evidence."""
    return [_attack(each) for each in ATTACKS[evidence]]


def mounted(evidence: Subject, case: Any) -> tuple[Finding, ...]:  # noqa: ANN401  of the evidence
    """Return what all attacks on some evidence find in a case of it."""
    return tuple(found for attack in attacks_on(evidence) for found in attack.mount(case))


def every_attack() -> Iterator[Attack[Any]]:
    """Yield all attacks."""
    for evidence in ATTACKS:
        yield from attacks_on(evidence)


@cache
def _attack(where: str) -> Attack[Any]:
    found: Attack[Any] = resolve_name(where)
    return found


def question_of(finding: str) -> Question | None:
    """Return the question of a finding by its name; None if no attack asks it."""
    name = name_of(finding)
    each = (question for attack in every_attack() for question in attack.questions)
    return next((question for question in each if question.name == name), None)
