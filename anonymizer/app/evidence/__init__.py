"""Evidence: what audits found, put to the three questions of a data protection officer."""

from anonymizer.app.evidence.assessment import assessed
from anonymizer.app.evidence.evidence import Answer, Evidence, Result, evidence_of
from anonymizer.app.evidence.evidence_page import page
from anonymizer.app.evidence.readings import Criterion

__all__ = ["Answer", "Criterion", "Evidence", "Result", "assessed", "evidence_of", "page"]
