"""The start of the service: probes are answered at once, and say what is still to be done."""

from fastapi import FastAPI, Response
from prometheus_client import CollectorRegistry

from anonymizer.settings import HttpSettings
from anonymizer.web import HttpServer, create_application

_RETRY_S = "2"


class Startup:
    """Answers requests until there is a gateway: alive, not ready, nothing else yet.

    Raises `SettingsError` if the address cannot be used.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self.doing = "reads the settings"
        """What is being done, for `/readyz`."""
        application = create_application(
            CollectorRegistry(), alive=list, ready=lambda: [f"starting: {self.doing}"]
        )
        _answer_the_rest(application)
        self.server = HttpServer(application, settings)
        """The server, which the gateway takes over."""


def _answer_the_rest(application: FastAPI) -> None:
    @application.get("/{path:path}", include_in_schema=False)
    async def not_yet(path: str) -> Response:  # noqa: ARG001  whatever it is
        """Answer that the gateway starts."""
        return Response("the gateway starts", 503, {"Retry-After": _RETRY_S})
