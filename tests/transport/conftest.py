"""Fixtures: the brokers of `tests.brokers`."""

from tests.brokers import (
    broker,
    certificates,
    password_broker,
    persistent_broker,
    tls_broker,
)

__all__ = ["broker", "certificates", "password_broker", "persistent_broker", "tls_broker"]
