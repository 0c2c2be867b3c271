"""Audit of a release: every attack, and the bars that each mode or promise must meet."""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.audit.case import Case as Case
    from anonymizer.audit.findings import AuditReport as AuditReport
    from anonymizer.audit.findings import Finding as Finding
    from anonymizer.audit.findings import Mode as Mode
    from anonymizer.audit.stream_audit import ATTACKS as ATTACKS
    from anonymizer.audit.stream_audit import PROMISED as PROMISED
    from anonymizer.audit.stream_audit import audit_release as audit_release
    from anonymizer.audit.stream_audit import case_of as case_of

__getattr__ = on_first_use(__name__, {
    "case": ("Case",),
    "findings": ("AuditReport", "Finding", "Mode"),
    "stream_audit": ("ATTACKS", "PROMISED", "audit_release", "case_of"),
})  # fmt: skip
