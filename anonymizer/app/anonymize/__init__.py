"""Anonymization of a table: read, form classes, verify, generalize, report."""

from anonymizer.app.anonymize.class_forming import COSTS
from anonymizer.app.anonymize.plan import Plan, declared_of, make_plan, make_promise
from anonymizer.app.anonymize.release_files import Places, write_release
from anonymizer.app.anonymize.release_report import AnonymizeReport
from anonymizer.app.anonymize.table_anonymization import Anonymized, anonymize

__all__ = [
    "COSTS",
    "AnonymizeReport",
    "Anonymized",
    "Places",
    "Plan",
    "anonymize",
    "declared_of",
    "make_plan",
    "make_promise",
    "write_release",
]
