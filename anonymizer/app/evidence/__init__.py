"""Evidence: what audits found, put to the three questions of a data protection officer."""

from anonymizer.app.evidence.assessment import assessed
from anonymizer.app.evidence.evidence import (
    Conclusion,
    EvidenceReport,
    Result,
    evidence_from,
    evidence_of,
)
from anonymizer.app.evidence.evidence_page import page
from anonymizer.app.evidence.readings import Criterion

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
