"""Files that are served as they are, from memory: there is no path to climb out of."""

import gzip
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import Request, Response

_TYPE_OF = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    "": "text/plain; charset=utf-8",
}
_WORTH_PACKING = 1400
"""Bytes; less fits into one packet anyway."""


class Asset:
    """Something that does not change while the gateway runs.

    Parameters
    ----------
    content
        As it is.
    media_type
        What it is.
    """

    def __init__(self, content: bytes, media_type: str = "application/octet-stream") -> None:
        self._content = content
        self._packed = gzip.compress(content, 6, mtime=0) if len(content) > _WORTH_PACKING else None
        self._media_type = media_type
        self._etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'

    def answer(self, request: Request) -> Response:
        """Return it, packed where the browser can unpack it, or say that nothing has changed."""
        headers = {"ETag": self._etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self._etag:
            return Response(status_code=304, headers=headers)
        content = self._content
        if self._packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            content = self._packed
            headers["Content-Encoding"] = "gzip"
        return Response(content, media_type=self._media_type, headers=headers)


def read_assets() -> dict[str, Asset]:
    """Return the files of the live map by their path below `static/`."""
    return dict(_below(files("anonymizer.web") / "static", ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        else:
            suffix = f".{entry.name.rpartition('.')[2]}" if "." in entry.name else ""
            found.append((name, Asset(entry.read_bytes(), _TYPE_OF[suffix])))
    return found
