"""Findings of one question and one verdict as a group, the worst groups and findings first.

An audit of a table has findings for each of its columns, each pair of sources, and each of these in
several criteria: hundreds, of which a reader wants the worst of each kind and how many others stand
behind it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from anonymizer.audit.attack import UNKNOWN, name_of
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.registry import question_of

_WORST_FIRST = ("fails", "would fail", "reported", "no case", "would hold", "holds")
_LEAST_IS_WORST = "_min"
"""How figures end of which less is worse."""


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """The findings of one question that have one verdict."""

    findings: tuple[Finding, ...]
    """The worst first; of equal ones, the one that was found first."""
    question: str
    """Its name."""

    @property
    def worst(self) -> Finding:
        """The worst of them."""
        return self.findings[0]

    @property
    def figures(self) -> dict[str, Figure]:
        """What matters most of the figures of the worst: what it found, what that is beside."""
        return _figures(self.worst)

    @property
    def following(self) -> Figure:
        """The first of these figures of the next worst; None: there is no such thing."""
        return _first(self.findings[1]) if len(self.findings) > 1 else None

    @property
    def are_equal(self) -> bool:
        """Whether there are several, and their first figure is the same."""
        worst, least = _first(self.worst), _first(self.findings[-1])
        return len(self.findings) > 1 and worst is not None and worst == least


def grouped_findings(findings: Iterable[Finding]) -> list[FindingGroup]:
    """Return all findings in groups: those that fail first, then in the order of the attacks."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.verdict, name_of(each.attack)), []).append(each)
    ranked = sorted(groups, key=lambda key: _WORST_FIRST.index(key[0]))
    return [FindingGroup(tuple(sorted(groups[key], key=_badness)), key[1]) for key in ranked]


def _figures(finding: Finding) -> dict[str, Figure]:
    """Return the figures of success and of the control, else the first two."""
    asked = question_of(finding.attack) or UNKNOWN
    names = (*asked.success, *asked.control)
    known = {name: finding.figures[name] for name in names if name in finding.figures}
    return known or dict([*finding.figures.items()][:2])


def _first(finding: Finding) -> Figure:
    return next(iter(_figures(finding).values()), None)


def _badness(finding: Finding) -> float:
    """Return what sorts the worst first."""
    name, figure = next(iter(_figures(finding).items()), ("", None))
    if figure is None:
        return float("inf")
    return float(figure) if name.endswith(_LEAST_IS_WORST) else -float(figure)
