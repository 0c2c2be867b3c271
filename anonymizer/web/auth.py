"""Who may ask: those who show the bearer token, where there is one."""

import hmac
from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request

from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings


def read_token(settings: HttpSettings) -> str | None:
    """Return the token that requests must show; None: none is needed.

    Raises
    ------
    SettingsError
        If its file cannot be used; the message names the setting.
    """
    if settings.token_file is None:
        return settings.token.get_secret_value() if settings.token else None
    try:
        lines = settings.token_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingsError("http.token_file: cannot be read") from None
    if not lines or not lines[0].strip():
        raise SettingsError("http.token_file: is empty")
    return lines[0].strip()


def bearer(token: str | None) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency that refuses requests without the token; None: refuses nobody."""

    async def check(request: Request) -> None:
        if token is None:
            return
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        # In constant time: how long a refusal takes must not tell how much of it was right.
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            shown.strip().encode(), token.encode()
        ):
            raise HTTPException(
                401, "a bearer token is needed", headers={"WWW-Authenticate": "Bearer"}
            )

    return check
