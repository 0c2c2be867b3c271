"""Anonymization of a table: read, form classes, verify, generalize, report."""
