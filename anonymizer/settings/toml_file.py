"""Settings file: one TOML file, overridden by the environment and by command-line options.

`ANONYMIZER__BROKER__URL=mqtts://broker.example` overrides `url` in `[broker]`. A value is read as
TOML if possible (`8081`, `[4, 10]`, `true`), otherwise as text. A name that matches no setting is
an error, as in the file: a typo must not leave a default in force.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from anonymizer.errors import SettingsError
from anonymizer.settings.mistakes import sentence, variable_for
from anonymizer.settings.model import Settings

PREFIX = "ANONYMIZER__"
MAX_BYTES = 1_048_576
"""Size of a settings file, and of an override."""
_MAX_DEPTH = 32
"""Levels of a dotted key; the parser takes memory with the square of their number."""
_MAX_BITS = 63
"""Bits of an integer without its sign, as TOML requires of a reader."""
_LARGE = f"is larger than {MAX_BYTES:,} bytes"
_LONG = "contains an integer of more than 64 bits"
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MARKED = "begins with a byte-order mark: save it as UTF-8 without one"
_HINTS = {
    "Expected '='": "; write key = value",
    "Invalid value": '; text needs straight quotes, "...", and true and false are in small letters',
    "Unescaped": "; write paths with / or in single quotes",
    "hex value": "; write paths with / or in single quotes",
    "Expected newline": '; write a number alone, without a unit, or text in quotes: "..."',
    "Illegal character": "; text ends with a quote on its own line",
    "twice": "; a table may be there once",
    "overwrite": "; a key may be there once",
    "Invalid statement": "; write [table], key = value, or a comment after #",
}
"""What to write, by what the parser says."""
_MAX_SHOWN = 100
"""Characters of a key or of the parser's reason that a message shows."""
_STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?|\#[^\n]*''',
    re.DOTALL,
)
_DEEP = re.compile(rf"(?:\.[^.=,\[\]{{}}\n]*){{{_MAX_DEPTH}}}")
_TEXTS = {"password", "username", "client_id", "version", "token"}


def load_settings(
    path: str | PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    whole: bool = False,
) -> Settings:
    """Load the settings of a file (None: the defaults) with their overrides.

    Parameters
    ----------
    path
        A TOML file.
    environment
        Environment variables; they override the file. None: those of this process.
    options
        Tables from the command line or a program; they override both.
    whole
        Whether the last line of the file must have an end. One that was cut off has none, and may
        be a number that lacks digits.

    Raises
    ------
    SettingsError
        If the settings cannot be used; one line names the file and the key, never a value.

    Examples
    --------
    >>> import anonymizer
    >>> settings = anonymizer.load_settings(options={"adka": {"k_floor": 5}})
    >>> settings.adka.k_floor
    5
    """
    path = None if path is None else Path(path)
    environment = os.environ if environment is None else environment
    tables = {} if path is None else _read(path, whole=whole)
    source_of: dict[str, str] = {}
    for name, text in environment.items():
        if name.startswith(PREFIX):
            keys = name.removeprefix(PREFIX).lower().split("__")
            source = f"environment: {_shown(name)}"
            _put(tables, keys, _value(keys, text, source), source)
            source_of[".".join(keys)] = "environment"
        elif name.startswith("ANONYMIZER_") and (meant := variable_for(name, text)):
            raise SettingsError(f"environment: {_shown(name)}: did you mean {meant}?")
    for table, values in (options or {}).items():
        if not isinstance(values, Mapping):
            raise SettingsError(f"options: {table} is not a table")
        for key, value in values.items():
            _put(tables, [table, key], value, "options")
            source_of[f"{table}.{key}"] = "options"
    return validated(tables, path or "settings", source_of)


def validated(
    tables: Mapping[str, Any],
    source: Path | str,
    source_of: Mapping[str, str] = MappingProxyType({}),
) -> Settings:
    """Return the settings given by tables.

    Parameters
    ----------
    source
        Source of the tables, for error messages; empty: it is not named.
    source_of
        Other sources of some keys, by dotted name.

    Raises
    ------
    SettingsError
        If the settings cannot be used; one line names the source and the key, never a value.
    """
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        key, message = sentence(error)
        where = _source(key.partition(" (")[0], source_of) or source
        raise SettingsError(": ".join(filter(None, (str(where), _shown(key), message)))) from None


def _read(path: Path, *, whole: bool) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _TooMuchError(_LARGE)  # noqa: TRY301  like what `_parsed` raises
        if whole and not content.endswith(b"\n"):
            raise _TooLittleError  # noqa: TRY301  likewise
        if content.startswith(_MARKS):
            raise _TooMuchError(_MARKED)  # noqa: TRY301  likewise
        return _parsed(content.decode())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        said = _shown(str(error))
        hint = next((hint for part, hint in _HINTS.items() if part in said), "")
        raise SettingsError(f"{path}: is not TOML: {said}{hint}") from None
    except _TooMuchError as error:
        raise SettingsError(f"{path}: {error}") from None
    except _TooLittleError:
        raise SettingsError(f"{path}: is cut off, or its last line has no end") from None


class _TooLittleError(Exception):
    """The file ends within a line."""


class _TooMuchError(Exception):
    """Why text is not given to the parser, or defeats it."""


def _parsed(text: str) -> dict[str, Any]:
    """Parse TOML whose cost is bounded.

    Raises
    ------
    tomllib.TOMLDecodeError
        If it is not TOML.
    _TooMuchError
        If it is too large, or contains tables, arrays or numbers that are too deep or too long.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _TooMuchError(_LARGE)
    if _DEEP.search(_STRING_OR_COMMENT.sub("_", text)):
        raise _TooMuchError(f"has a key of more than {_MAX_DEPTH} levels")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise _TooMuchError("is nested too deeply") from None
    except ValueError:  # of `int`, which bounds the number of digits
        raise _TooMuchError(_LONG) from None
    left: list[Any] = [tables]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise _TooMuchError(_LONG)
    return tables


def _shown(text: str) -> str:
    """Return text as one line of bounded length."""
    line = text if text.isprintable() else repr(text)[1:-1]
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}..."


def _source(key: str, source_of: Mapping[str, str]) -> str | None:
    """Return the source of the override that contains `key` or is part of it, if there is one."""
    for other, source in source_of.items():
        if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
            return source
    return None


def _value(keys: list[str], text: str, source: str) -> object:
    """Parse an override; some keys are text even if the value looks like a number."""
    if len(keys) > _MAX_DEPTH:
        raise SettingsError(f"{source}: has more than {_MAX_DEPTH} levels")
    if keys[-1] in _TEXTS:
        return text
    try:
        return _parsed(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    except _TooMuchError as error:
        raise SettingsError(f"{source}: {error}") from None


def _put(tables: dict[str, Any], keys: list[str], value: object, source: str) -> None:
    for key in keys[:-1]:
        tables = tables.setdefault(key, {})
        if not isinstance(tables, dict):
            raise SettingsError(f"{source}: {_shown(key)} is not a table")
    tables[keys[-1]] = value
