"""The summary of an audit of a stream: a row for each question, as a paper prints it."""

from dataclasses import dataclass
from math import sqrt

from anonymizer.audit.attack import Question, Subject, SummaryWords
from anonymizer.audit.findings import AuditReport, Finding
from anonymizer.audit.registry import attacks_on

_Z = 1.96
"""Of an interval of 95 %."""
_ORDER = ("sound", "k", "who", "where")
"""Of the questions of an adversary."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """What one attack found."""

    question: str
    """What an adversary wants to know: `sound`, `k`, `who` or `where`."""
    attack: str
    """In words."""
    found: float | None
    low: float | None
    high: float | None
    """`found`, `low`, `high`: what was found, and its interval of 95 %; None: there was nothing to
    measure."""
    control: float | None
    """The same by guessing, or without the release; None: there is no such thing."""
    n: int
    """How many independent cases the interval is over."""
    verdict: str
    """`holds`, `fails`, `would hold`, `would fail`, `no case` or `reported`."""


def summary_rows(report: AuditReport) -> list[SummaryRow]:
    """Return the rows of an audit, the promises first.

    Notes
    -----
    Intervals of shares are Wilson's, over as many independent cases as those at hand are worth:
    those of one group are none. Those of tracking are over resampled targets.
    """
    rows = []
    for question in _told():
        found = (each for each in report.findings if each.attack == question.name)
        rows += [_row(question.summary, each) for each in found if question.summary is not None]
    for finding in report.findings:
        if finding.attack == "tracking":
            rows += _tracking_rows(finding)
    return rows


def _told() -> list[Question]:
    """Return the questions that a summary tells of, in the order of `_ORDER`."""
    each = (q for attack in attacks_on(Subject.POSITIONS) for q in attack.questions)
    told = dict.fromkeys(question for question in each if question.summary is not None)
    return sorted(told, key=lambda q: _ORDER.index(q.summary.question) if q.summary else 0)


def _row(told: SummaryWords, finding: Finding) -> SummaryRow:
    figures = finding.figures
    n, found = float(figures["n_independent"] or 0), figures[told.figure]
    if told.is_lack:
        found = 1 - (found or 0.0)
    low, high = (None, None) if found is None or not n else wilson(float(found), n)
    on_air = {None: "", "on_air": ", on air", "off_air": ", off air"}
    return SummaryRow(
        told.question,
        told.words + on_air[finding.adversary],
        found,
        low,
        high,
        None if told.control is None else figures[told.control],
        round(n),
        finding.verdict,
    )


def _tracking_rows(finding: Finding) -> list[SummaryRow]:
    """Return what is believed of the true place after the longest time that there is."""
    figures, rows = finding.figures, []
    minutes = [m for m in (5, 3, 1) if figures.get(f"belief_followed_{m}min") is not None]
    for what, words in (("belief", "belief in the place"), ("tenth", "the same, worst tenth")):
        for minute in minutes[:1]:
            name = f"{what}_followed_{minute}min"
            rows.append(
                SummaryRow(
                    "where",
                    f"{words}, {minute} min",
                    figures[name],
                    figures.get(f"{name}_low"),
                    figures.get(f"{name}_high"),
                    figures[f"{what}_none_{minute}min"],
                    int(figures["n_tracks"] or 0),
                    finding.verdict,
                )
            )
    return rows


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share of n cases.

    For the mean of probabilities, whose variance is at most that of a share, it is too wide.
    """
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * sqrt(share * (1 - share) / n + _Z**2 / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)
