"""Every attack mounted on a release, and the bars that say what a mode promises."""

from anonymizer.app.audit.release import ATTACKS, PROMISED, audit_release
from anonymizer.app.audit.report import AuditReport, Finding, Mode

__all__ = ["ATTACKS", "PROMISED", "AuditReport", "Finding", "Mode", "audit_release"]
