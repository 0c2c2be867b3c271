"""The summary of an audit of a stream: a row for each question, as a paper prints it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from anonymizer.audit.findings import AuditReport, Figure, Finding

_Z = 1.96
"""Of an interval of 95 %."""
_Figures = dict[str, Figure]


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """What one attack found.

    Attributes
    ----------
    question
        What an adversary wants to know: `sound`, `k`, `who` or `where`.
    attack
        In words.
    found, low, high
        What was found, and its interval of 95 %; None: there was nothing to measure.
    control
        The same by guessing, or without the release; None: there is no such thing.
    n
        How many independent cases the interval is over.
    bar
        What must hold, in words; empty: nothing.
    verdict
        `holds`, `fails`, `would hold`, `would fail`, `no case` or `reported`.
    """

    question: str
    attack: str
    found: float | None
    low: float | None
    high: float | None
    control: float | None
    n: int
    bar: str
    verdict: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a row is made from the figures of an attack; `control` is the name of a figure."""

    question: str
    attack: str
    words: str
    found: Callable[[_Figures], Figure]
    control: str | None


_ASKED = (
    _Asked("sound", "soundness", "inside its region", lambda f: f["share_inside"],
           None),
    _Asked("k", "k", "k in the region", lambda f: 1 - (f["share_below_k"] or 0.0),
           None),
    _Asked("k", "inversion", "k share the region", lambda f: 1 - (f["share_below_k"] or 0.0),
           None),
    _Asked("k", "session", "k share a whole life",
           lambda f: 1 - (f["share_below_k"] or 0.0), None),
    _Asked("who", "re-identification", "own pseudonym",
           lambda f: f["success"], "expected"),
    _Asked("who", "linking", "next pseudonym", lambda f: f["success"],
           "expected"),
    _Asked("where", "centre", "centre of the region", lambda f: f["success"],
           "one_in_n"),
    _Asked("where", "prefix", "order of the region", lambda f: f["success"],
           "one_in_n"),
)  # fmt: skip


def summary_rows(report: AuditReport) -> list[SummaryRow]:
    """Return the rows of an audit, the promises first.

    Notes
    -----
    Intervals of shares are Wilson's, over as many independent cases as those at hand are worth:
    those of one group are none. Those of tracking are over resampled targets.
    """
    rows = []
    for asked in _ASKED:
        found = (each for each in report.findings if each.attack == asked.attack)
        rows += [_row(asked, each) for each in found]
    for finding in report.findings:
        if finding.attack == "tracking":
            rows += _tracking_rows(finding)
    return rows


def _row(asked: _Asked, finding: Finding) -> SummaryRow:
    figures = finding.figures
    n, found = float(figures["n_independent"] or 0), asked.found(figures)
    low, high = (None, None) if found is None or not n else wilson(float(found), n)
    on_air = {None: "", "on_air": ", on air", "off_air": ", off air"}
    control = None if asked.control is None else figures[asked.control]
    words = asked.words + on_air[finding.adversary]
    return SummaryRow(
        asked.question,
        words,
        found,
        low,
        high,
        control,
        round(n),
        finding.bar or "",
        verdict(finding),
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
                    finding.bar or "",
                    verdict(finding),
                )
            )
    return rows


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's interval of 95 % of a share of n cases."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * sqrt(share * (1 - share) / n + _Z**2 / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def verdict(finding: Finding) -> str:
    """Return the verdict on a finding, in words."""
    if finding.fails:
        return "fails"
    if finding.required and finding.holds:
        return "holds"
    if finding.holds is None:
        return "reported" if finding.bar is None else "no case"
    return "would hold" if finding.holds else "would fail"
