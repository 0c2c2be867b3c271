"""The HTTP side of the gateway."""

from anonymizer.web.application import Health, create_application
from anonymizer.web.server import HttpServer

__all__ = ["Health", "HttpServer", "create_application"]
