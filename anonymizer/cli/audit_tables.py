"""Tables that `anonymizer audit` prints: a summary of the report, its findings and the utility."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column, Table

if TYPE_CHECKING:
    from anonymizer.audit import AuditReport, Finding
    from anonymizer.audit.findings import ColumnUtility, TableAuditReport
    from anonymizer.audit.stream_summary import SummaryRow
    from anonymizer.audit.utility import UtilityFigures

_LEAST_WIDTH = 80
"""Columns of a terminal in which each figure of a finding has a line."""


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
    for name, reason in report.kept_anyway.items():
        summary.add_row("kept anyway", escape(f"{name}: {reason}"))
    for fold in report.folds:
        summary.add_row("one value", escape(str(fold)))
    for doubt in report.in_doubt:
        summary.add_row("in doubt", escape(doubt))
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


def columns_table(columns: "Iterable[ColumnUtility]") -> Table:
    """Return a table with what a reader of the labels of each quasi-identifier gets wrong."""
    table = Table(
        "column",
        *(Column(name, justify="right") for name in ("distribution", "pairs", "correlation")),
        title="utility: distance from the original, 0 to 1",
    )
    for each in columns:
        shown = [_decimals(x, 3) for x in (each.distribution, each.pairs, each.correlation)]
        table.add_row(escape(each.name), *shown)
    return table


def findings_table(findings: Iterable["Finding"], *, width: int) -> Table:
    """Return a table with a row for each finding: the attack, its figures, the bar, the verdict.

    `width`: columns of the terminal. In a narrow one whole figures would leave verdicts no room.
    """
    figure = Column("figure", no_wrap=width >= _LEAST_WIDTH, overflow="fold")
    table = Table(Column("attack", overflow="fold"), figure, "bar", Column("verdict", no_wrap=True))
    for finding in findings:
        shown = [
            f"{name} {value:,}" if isinstance(value, int) else f"{name} {value:,.4g}"
            for name, value in finding.figures.items()
            if value is not None
        ]
        attack = finding.attack
        if finding.attribute is not None:
            attack += f" of {escape(finding.attribute)}"
        if finding.adversary is not None:
            attack += f" ({finding.adversary.replace('_', ' ')})"
        table.add_row(attack, "\n".join(shown), finding.bar or "", _verdict(finding))
    return table


def _verdict(finding: "Finding") -> str:
    if finding.fails:
        return "[bold red]FAILS[/]"
    if finding.required and finding.holds:
        return "[green]holds[/]"
    if finding.holds is None:
        return "reported" if finding.bar is None else "no case"
    return "would hold" if finding.holds else "would fail"
