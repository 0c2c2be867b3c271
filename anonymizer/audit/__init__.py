"""Audit of a release: every attack, and the bars that each mode or promise must meet."""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.audit.case import Case as Case
    from anonymizer.audit.findings import AuditReport as AuditReport
    from anonymizer.audit.findings import Finding as Finding
    from anonymizer.audit.findings import Mode as Mode
    from anonymizer.audit.stream_audit import audit_release as audit_release
    from anonymizer.audit.stream_case import case_of as case_of

__getattr__ = on_first_use(__name__, {
    "case": ("Case",),
    "findings": ("AuditReport", "Finding", "Mode"),
    "stream_audit": ("audit_release",),
    "stream_case": ("case_of",),
})  # fmt: skip
