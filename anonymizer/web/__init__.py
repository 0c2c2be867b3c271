"""HTTP: health, metrics, the live map, the toll API and its tools for language models."""

from anonymizer.web.server import Health, HttpServer, create_application

__all__ = ["Health", "HttpServer", "create_application"]
