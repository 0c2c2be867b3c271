"""The bearer token of HTTP, as the settings state it."""

from anonymizer.errors import SettingsError
from anonymizer.settings import HttpSettings

LEAST_CHARS = 10
"""Of a token: a shorter one could be guessed, since right tokens are never limited."""
_BY_ALL = 0o007
"""What nobody but the owner and the group of the file may do with it."""


def read_token(settings: HttpSettings) -> str | None:
    """Return the token that requests must present; None: none is required.

    Raises `SettingsError` if the token is too short, or its file cannot be used; the message names
    the setting.
    """
    if settings.token_file is None:
        return _long_enough("token", settings.token.get_secret_value()) if settings.token else None
    try:
        mode = settings.token_file.stat().st_mode
        lines = settings.token_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingsError("http.token_file: cannot be read") from None
    if not lines or not lines[0].strip():
        raise SettingsError("http.token_file: is empty")
    if mode & _BY_ALL:
        raise SettingsError("http.token_file: everybody on this machine may read it: chmod 600")
    return _long_enough("token_file", lines[0].strip())


def _long_enough(key: str, token: str) -> str:
    if len(token) < LEAST_CHARS:
        raise SettingsError(
            f"http.{key}: a token of fewer than {LEAST_CHARS} characters can be guessed: take that "
            "of `openssl rand -base64 24`"
        )
    return token
