"""Brokers for these tests; see `tests.brokers`."""

from tests.brokers import broker, password_broker

__all__ = ["broker", "password_broker"]
