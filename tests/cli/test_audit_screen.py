"""The screen of an audit of a table: it has an end, and tells of everything that fails."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.audit.attack import name_of
from anonymizer.audit.findings import ColumnUtility, Finding, LossFigures, TableAuditReport
from anonymizer.audit.grouped_findings import grouped_findings
from anonymizer.cli.audit_tables import columns_table, grouped_table, table_summary
from anonymizer.cli.terminal import Terminal
from anonymizer.files.meanings import Fold
from tests.audit.made_findings import QUESTIONS, finding, findings

MOST_LINES, MOST_EVER = 60, 85
"""Lines of the screen of a table of whose kinds of findings few fail and some are reported; of any
table, all of whose notes fill two lines."""


def report_on(found: list[Finding], n_columns: int = 8, n_notes: int = 0) -> TableAuditReport:
    utility = [
        ColumnUtility(name=f"column{i}", distribution=i / 1_000, pairs=None, correlation=None)
        for i in range(n_columns)
    ]
    fold = Fold(column="c" * 300, how="case", n_writings=2, n_values=1, n_cells=1)
    reasons = {f"c{i}": "a" * 300 for i in range(n_notes)}
    return TableAuditReport(
        holds=False, n_rows=9, n_published=9, suppressed_share=0, n_persons=9, n_classes=1,
        size_min=9, size_median=9, size_max=9, gcp=LossFigures(range=0, set=0, taxonomy=0), dm=81,
        findings=tuple(found), columns=tuple(utility), folds=(fold,) * n_notes,
        in_doubt=("word " * 90,) * n_notes, kept_anyway=reasons,
    )  # fmt: skip


def screen(report: TableAuditReport) -> str:
    console = Terminal(width=80, force_terminal=False)
    with console.capture() as captured:
        console.print(
            table_summary(report, "out.csv"),
            grouped_table(grouped_findings(report.findings)),
            columns_table(report.columns),
        )
    return captured.get()


def attacks_of(shown: str) -> str:
    """Return the first column of the screen, without its breaks of lines and blanks."""
    rows = [line.split("│")[1] for line in shown.splitlines() if line.count("│") == 4]
    return re.sub(r"\s+", "", "".join(rows))


def of_all_columns(n: int, *, n_failing: int) -> list[Finding]:
    """Findings of each question and column; of the first questions one column fails."""
    return [
        finding(
            each.name,
            dict.fromkeys((*each.success, *each.control), i) or {"n_rows": i},
            attribute=f"column{i}",
            bar="none",
            holds=not (q < n_failing and i == 1),
            required=True,
        )
        for q, each in enumerate(QUESTIONS)
        for i in range(n)
    ]


@given(st.lists(findings(), max_size=300), st.integers(0, 300), st.integers(0, 300))
def test_the_screen_has_an_end_whatever_is_found(
    found: list[Finding], n_columns: int, n_notes: int
) -> None:
    shown = screen(report_on(found, n_columns, n_notes))
    assert len(shown.splitlines()) <= MOST_EVER


@pytest.mark.parametrize("n_failing", [0, 1, 8])
@pytest.mark.parametrize("n_columns", [1, 30, 300])
def test_a_screen_is_read_at_a_glance(n_columns: int, n_failing: int) -> None:
    shown = screen(report_on(of_all_columns(n_columns, n_failing=n_failing), n_columns))
    assert len(shown.splitlines()) <= MOST_LINES


@given(st.lists(findings(), max_size=120))
@example(of_all_columns(3, n_failing=len(QUESTIONS)))
def test_every_kind_that_fails_is_told_with_how_many_do(found: list[Finding]) -> None:
    shown = screen(report_on(found))
    assert shown.count("FAILS") == len({name_of(each.attack) for each in found if each.fails})
    for group in grouped_findings(found):
        if group.worst.fails:
            n = len(group.findings)
            told = f"{group.question} ({n})" if n > 1 else group.question
            assert told.replace(" ", "") in attacks_of(shown)


def test_of_what_fails_each_column_is_named_and_what_must_hold_is_told() -> None:
    found = [
        finding("labels", {"n_rows_outside": n}, attribute=name, bar="cover", holds=not n,
                required=True)
        for name, n in (("age", 0), ("zip", 4), ("job", 41))
    ]  # fmt: skip
    shown = " ".join(screen(report_on(found)).replace("│", " ").split())
    [failing, holding] = shown.split("labels")[1:]
    for told in ("(2) of job; zip", "n_rows_outside 41, then 4 (must be:", "FAILS", "cover)"):
        assert told in failing
    assert holding.startswith(" of age n_rows_outside 0")


def test_the_worst_columns_are_shown_and_the_others_counted() -> None:
    shown = screen(report_on([], n_columns=9))
    assert shown.index("column8") < shown.index("column3") < shown.index("3 others, up to")
    assert "column2 " not in shown
