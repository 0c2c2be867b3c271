"""HTTP: health, metrics, the live map, the toll API and its tools for language models."""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.web.server import Health, HttpServer, create_application

__all__ = ["Health", "HttpServer", "create_application"]
__getattr__ = on_first_use(__name__, {"server": __all__})
