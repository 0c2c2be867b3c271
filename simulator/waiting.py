"""Waiting until a gateway is ready, by what it answers over HTTP."""

import asyncio
import json
import sys
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

from anonymizer.errors import SettingsError

_PAUSE_S = 0.25
_ANSWER_S = 5.0
_MAX_BYTES = 65_536


async def until_ready(url: str, *, tell: Callable[[str], object] | None = None) -> None:
    """Wait until the gateway at an address is ready; say why it is not, whenever that changes.

    Parameters
    ----------
    url
        `http://host[:port]` or `https://`.
    tell
        Takes each line; None: it goes to standard error.

    Raises
    ------
    SettingsError
        If it is no such address.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError("--wait-for: must be http://host[:port] or https://host[:port]")
    told = ""
    while (problem := await asyncio.to_thread(_problem, f"{url.rstrip('/')}/readyz")) is not None:
        if problem != told:
            (tell or _to_standard_error)(f"waiting for {url}: {problem}")
            told = problem
        await asyncio.sleep(_PAUSE_S)


def _problem(url: str) -> str | None:
    """Return why the gateway is not ready; None if it is."""
    try:
        with urlopen(url, timeout=_ANSWER_S):  # noqa: S310  the scheme has been checked
            return None
    except HTTPError as answer:
        try:
            problems = json.loads(answer.read(_MAX_BYTES))["problems"]
            return ", ".join(map(str, problems))
        except (OSError, ValueError, KeyError, TypeError):
            return f"answers {answer.code}"
    except (OSError, HTTPException):
        return "does not answer"


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
