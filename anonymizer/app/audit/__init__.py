"""Audit of a release: every attack, and the bars that each mode or promise must meet."""

from anonymizer.app.audit.case import Case
from anonymizer.app.audit.findings import AuditReport, Finding, Mode
from anonymizer.app.audit.stream_audit import ATTACKS, PROMISED, audit_release, case_of

__all__ = [
    "ATTACKS",
    "PROMISED",
    "AuditReport",
    "Case",
    "Finding",
    "Mode",
    "audit_release",
    "case_of",
]
