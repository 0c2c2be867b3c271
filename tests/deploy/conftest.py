"""Brokers for these tests; see `tests.brokers`."""

from tests.brokers import certificates, password_broker
from tests.deploy.deployment import deployed

__all__ = ["certificates", "deployed", "password_broker"]
