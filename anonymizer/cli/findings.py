"""What an audit found, in the terminal and in a file."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column, Table

from anonymizer.errors import InputError

if TYPE_CHECKING:
    from anonymizer.app.audit import Finding


def findings_table(findings: Iterable["Finding"]) -> Table:
    """Return a row for each finding: what was looked at, what was found, and the verdict."""
    table = Table("attack", Column("figure", no_wrap=True), "bar", "verdict")
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


def write_text(path: Path, text: str) -> None:
    """Write a report.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
