"""The HTTP side of the gateway."""

from anonymizer.web.server import Health, HttpServer, create_application

__all__ = ["Health", "HttpServer", "create_application"]
