"""Tables that `anonymizer audit` prints: a summary of the report, its findings and the utility."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from anonymizer.audit import AuditReport, Finding
    from anonymizer.audit.findings import ColumnUtility, TableAuditReport
    from anonymizer.audit.grouped_findings import FindingGroup
    from anonymizer.audit.stream_summary import SummaryRow
    from anonymizer.audit.utility import UtilityFigures

_LEAST_WIDTH = 80
"""Columns of a terminal in which each figure of a finding has a line."""
_MOST_KINDS, _MOST_FOLDED = 26, 8
"""Kinds of findings with a row of their own, but for those that fail; those whose row may have
several lines."""
_MOST_COLUMNS, _MOST_NOTES = 6, 2
"""Columns of the original whose utility is told; words about it of one kind."""
_LONGEST_NAME, _LONGEST_CELL, _LONGEST_NOTE = 60, 90, 120
"""Letters of a column's name, of a cell, and of words about the original."""


def stream_summary(report: "AuditReport", title: str, *, why_left_out: str) -> Table:
    """Return the size of a release of positions, and which attacks are left out."""
    regions = report.regions
    table = Table(title=title, show_header=False)
    table.add_row("mode", report.mode)
    table.add_row("records", f"{report.n_records:,}, {report.suppressed_share:.1%} suppressed")
    table.add_row("pseudonyms, devices", f"{report.n_pseudonyms:,}, {report.n_devices:,}")
    table.add_row("ticks", f"{report.n_ticks:,}")
    table.add_row(
        "nodes per region",
        f"mean {regions.nodes_mean:.1f}, median {regions.nodes_median:g}, max {regions.nodes_max}",
    )
    if regions.extent_m_mean is not None:
        table.add_row(
            "metres across",
            f"mean {regions.extent_m_mean:,.0f}, median {regions.extent_m_median:,.0f}, "
            f"max {regions.extent_m_max:,.0f}",
        )
    if report.left_out:
        table.add_row(f"left out, {why_left_out}", escape(", ".join(report.left_out)))
    if report.failed:
        table.add_row("failed", escape(", ".join(report.failed)))
    if report.not_asked:
        table.add_row("with --all", escape(", ".join(report.not_asked)))
    return table


def rows_table(rows: "Iterable[SummaryRow]", title: str) -> Table:
    """Return the summary of an audit of positions: a row for each question, with its interval."""
    table = Table(
        *("", "attack"),
        *(Column(name, justify="right", no_wrap=True) for name in _SHOWN),
        Column("verdict", no_wrap=True),
        title=escape(title),
    )
    last = ""
    for row in rows:
        shown = _shown(row)
        asked = "" if row.question == last else row.question
        colour = {"holds": "green", "fails": "bold red"}.get(row.verdict)
        verdict = row.verdict if colour is None else f"[{colour}]{row.verdict}[/]"
        table.add_row(asked, row.attack, *(shown[name] for name in _SHOWN), verdict)
        last = row.question
    return table


_SHOWN = ("found", "95 %", "control", "n")


def _shown(row: "SummaryRow") -> dict[str, str]:
    ends = "" if row.low is None or row.high is None else f"{row.low:.3f}-{row.high:.3f}"
    return {
        "found": _decimals(row.found, 3),
        "95 %": ends,
        "control": _decimals(row.control, 3),
        "n": f"{row.n:,}",
    }


def utility_table(figures: "Iterable[UtilityFigures]") -> Table:
    """Return a table with a row for each way to publish the trace, on each grid."""
    measures = ("density", "query", "hotspots", "popularity", "flow")
    table = Table(
        *("places", "published", *measures, "crossing", "speed, m/s"),
        title="utility: errors of density, queries, flows and speeds; gain of hotspots, order of "
        "places",
    )
    for each in figures:
        shown = [_decimals(getattr(each, name), 3) for name in measures]
        crossing = _decimals(each.crossing, 2)
        table.add_row(
            each.places,
            each.what,
            *shown,
            f"{crossing} ({each.crossing_true:.2f} true)" if crossing else "",
            _decimals(each.speed_mps, 2),
        )
    return table


def _decimals(value: float | None, n: int) -> str:
    return "" if value is None else f"{value:.{n}f}"


def table_summary(report: "TableAuditReport", title: str) -> Table:
    """Return the size of a release of a table, and its information loss."""
    summary = Table(title=escape(title), show_header=False)
    summary.add_row("rows", f"{report.n_rows:,}, {report.suppressed_share:.1%} suppressed")
    summary.add_row("persons", f"{report.n_persons:,}")
    summary.add_row(
        "classes",
        f"{report.n_classes:,}: rows min {report.size_min:,}, median {report.size_median:g}, "
        f"max {report.size_max:,}",
    )
    kept = [f"{name}: {reason}" for name, reason in report.kept_anyway.items()]
    folds = [str(fold) for fold in report.folds]
    told = {"kept anyway": kept, "one value": folds, "in doubt": report.in_doubt}
    for what, notes in told.items():
        for note in notes[:_MOST_NOTES]:
            summary.add_row(what, escape(_cut(note, _LONGEST_NOTE)))
        if others := notes[_MOST_NOTES:]:
            summary.add_row("", f"and {len(others):,} more")
    loss = report.gcp
    summary.add_row(
        "GCP", f"range {loss.range:.4f}, set {loss.set:.4f}, taxonomy {loss.taxonomy:.4f}"
    )
    summary.add_row("DM", f"{report.dm:,}")
    if report.model is not None:
        of = report.model
        summary.add_row(
            f"{escape(of.target)} predicted",
            f"{of.release:.3f} from the release, {of.original:.3f} from the original, "
            f"{of.guessing:.3f} by guessing",
        )
    return summary


def columns_table(columns: "Sequence[ColumnUtility]") -> Table:
    """Return a table with what a reader of the labels of the worst quasi-identifiers gets wrong."""
    table = Table(
        "column",
        *(Column(name, justify="right") for name in ("distribution", "pairs", "correlation")),
        title="utility: distance from the original, 0 to 1",
    )
    worst = sorted(columns, key=lambda each: -each.distribution)
    for each in worst[:_MOST_COLUMNS]:
        shown = [_decimals(x, 3) for x in (each.distribution, each.pairs, each.correlation)]
        table.add_row(escape(_cut(each.name, _LONGEST_NAME)), *shown)
    if others := worst[_MOST_COLUMNS:]:
        table.add_row(f"{len(others):,} others, up to", _decimals(others[0].distribution, 3))
    return table


def findings_table(findings: Iterable["Finding"], *, width: int) -> Table:
    """Return a table with a row for each finding: the attack, its figures, the bar, the verdict.

    `width`: columns of the terminal. In a narrow one whole figures would leave verdicts no room.
    """
    figure = Column("figure", no_wrap=width >= _LEAST_WIDTH, overflow="fold")
    table = Table(Column("attack", overflow="fold"), figure, "bar", Column("verdict", no_wrap=True))
    for finding in findings:
        told = [f"{name} {_figure(x, 4)}" for name, x in finding.figures.items() if x is not None]
        attack = escape(f"{finding.attack}{_of(finding)}")
        table.add_row(attack, "\n".join(told), finding.bar or "", _verdict(finding))
    return table


def grouped_table(groups: Sequence["FindingGroup"]) -> Table:
    """Return a table with a row for each kind of finding: the worst, and how many there are.

    The screen has an end whatever is audited, and a row for each kind that fails. The first rows
    are told whole, of the others what has room in a line.
    """
    n_findings = sum(len(group.findings) for group in groups)
    told = f"(8): the worst of 8. All {n_findings:,} findings and figures: --json FILE"
    table = Table("attack", "figure", Column("verdict", no_wrap=True), caption=told)
    n_shown = max(sum(group.worst.fails for group in groups), _MOST_KINDS)
    n_folded = _MOST_FOLDED if len(groups) <= n_shown else 0
    for i, group in enumerate(groups[:n_shown]):
        whole = i < n_folded and group.worst.verdict != "holds"
        cells = [
            Text(
                _cut(each, _LONGEST_CELL), no_wrap=not whole, overflow=None if whole else "ellipsis"
            )
            for each in (_name_of(group), _figures_of(group))
        ]
        table.add_row(*cells, _verdict(group.worst))
    if left := groups[n_shown:]:
        names = ", ".join(dict.fromkeys(group.question for group in left))
        table.add_row(Text(_cut(names, _LONGEST_CELL)), f"{len(left)} more kinds", "none fails")
    return table


def _name_of(group: "FindingGroup") -> str:
    """Return what was attacked: the kind, how many there are, and the worst of them."""
    n, worst = len(group.findings), group.worst
    kind = f"{group.question} ({n:,})" if n > 1 else group.question
    if group.are_equal and not worst.fails:
        return kind
    others = group.findings[1:] if worst.fails else ()
    names = [each.attribute for each in others if each.attribute]
    return "; ".join([f"{kind}{worst.attack[len(group.question) :]}{_of(worst)}", *names])


def _of(finding: "Finding") -> str:
    """Return which attribute was attacked, and by whom."""
    of = "" if finding.attribute is None else f" of {finding.attribute}"
    by = "" if finding.adversary is None else f" ({finding.adversary.replace('_', ' ')})"
    return f"{of}{by}"


def _figures_of(group: "FindingGroup") -> str:
    """Return the figures of the worst finding of a group, the next one's, and what must hold."""
    told = [f"{name} {_figure(x, 3)}" for name, x in group.figures.items() if x is not None]
    if group.are_equal:
        told[:1] = [f"{told[0]} each"]
    elif group.following is not None:
        told.insert(1, f"then {_figure(group.following, 3)}")
    must = f" (must be: {group.worst.bar})" if group.worst.holds is False else ""
    return ", ".join(told) + must


def _figure(value: float, digits: int) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}g}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}\u2026"


def _verdict(finding: "Finding") -> str:
    colour = {"fails": "bold red", "holds": "green"}.get(finding.verdict)
    told = finding.verdict.upper() if finding.fails else finding.verdict
    return told if colour is None else f"[{colour}]{told}[/]"
