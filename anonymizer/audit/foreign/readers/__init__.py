"""Kinds of files that releases of others come in: each becomes one table."""
