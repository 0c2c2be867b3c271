"""A schema registry of the tests, and a reader of Avro that is not the writer."""

import io
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import avro.io
import avro.schema


class Registry:
    """A server that speaks the part of a registry's protocol that registers schemas."""

    def __init__(self) -> None:
        self.registered: list[tuple[str, dict[str, Any], str | None]] = []
        """Path, body and login of each request."""
        self.answer: tuple[int, bytes] | None = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert self.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
                seen = registry.registered
                seen.append((self.path, body, self.headers.get("Authorization")))
                number = json.dumps({"id": 70_000 + len(seen)}).encode()
                status, answer = registry.answer or (200, number)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def read(schema: dict[str, Any], body: bytes) -> Any:  # noqa: ANN401  what the message says
    """Read a message as another implementation of Avro does."""
    parsed = avro.schema.parse(json.dumps(schema))
    stream = io.BytesIO(body)
    found = avro.io.DatumReader(parsed).read(avro.io.BinaryDecoder(stream))
    assert stream.read() == b""
    return found
