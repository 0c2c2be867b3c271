"""A table of records, anonymized: read, put into classes, verified, generalized, reported."""

from anonymizer.app.anonymize.models import MODELS, Model
from anonymizer.app.anonymize.plan import Plan
from anonymizer.app.anonymize.publication import Places, write_release
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
