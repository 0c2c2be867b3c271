"""Certificates for these tests; see `tests.brokers`."""

from tests.brokers import certificates

__all__ = ["certificates"]
