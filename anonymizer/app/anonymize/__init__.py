"""Anonymization of a table: read, form classes, verify, generalize, report."""

from anonymizer.app.anonymize.models import MODELS, Model
from anonymizer.app.anonymize.plan import Plan
from anonymizer.app.anonymize.release_files import Places, write_release
from anonymizer.app.anonymize.release_report import AnonymizeReport
from anonymizer.app.anonymize.table_anonymization import COSTS, Anonymized, anonymize

__all__ = [
    "COSTS",
    "MODELS",
    "AnonymizeReport",
    "Anonymized",
    "Model",
    "Places",
    "Plan",
    "anonymize",
    "write_release",
]
