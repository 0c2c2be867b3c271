"""Brokers for these tests; see `tests.brokers`."""

from tests.brokers import certificates, password_broker

__all__ = ["certificates", "password_broker"]
