"""Anonymization of a table: read, form classes, verify, generalize, report."""

from anonymizer.app.anonymize.class_forming import COSTS
from anonymizer.app.anonymize.plan import ReleasePlan, declared_of, make_plan, make_promise
from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
from anonymizer.app.anonymize.release_report import AnonymizeReport
from anonymizer.app.anonymize.table_anonymization import Anonymized, anonymize

__all__ = [
    "COSTS",
    "AnonymizeReport",
    "Anonymized",
    "ReleasePaths",
    "ReleasePlan",
    "anonymize",
    "declared_of",
    "make_plan",
    "make_promise",
    "write_release",
]
