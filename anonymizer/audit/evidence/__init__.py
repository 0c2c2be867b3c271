"""Evidence: what audits found, put to the three questions of a data protection officer."""

from anonymizer.audit.attack import Criterion
from anonymizer.audit.evidence.assessment import assessed
from anonymizer.audit.evidence.evidence import (
    Conclusion,
    EvidenceReport,
    Result,
    evidence_from,
    evidence_of,
)
from anonymizer.audit.evidence.evidence_page import page

__all__ = [
    "Conclusion",
    "Criterion",
    "EvidenceReport",
    "Result",
    "assessed",
    "evidence_from",
    "evidence_of",
    "page",
]
