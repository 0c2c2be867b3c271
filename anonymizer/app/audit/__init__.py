"""Every attack mounted on a release, and the bars that say what a mode promises."""

from anonymizer.app.audit.findings import AuditReport, Finding, Mode
from anonymizer.app.audit.stream_audit import ATTACKS, PROMISED, audit_release

__all__ = ["ATTACKS", "PROMISED", "AuditReport", "Finding", "Mode", "audit_release"]
