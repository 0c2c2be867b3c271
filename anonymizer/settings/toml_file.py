"""Settings file: one TOML file, overridden by the environment and by command-line options.

`ANONYMIZER__BROKER__URL=mqtts://broker.example` overrides `url` in `[broker]`. A value is read as
TOML if possible (`8081`, `[4, 10]`, `true`), otherwise as text. A name that matches no setting is
an error, as in the file: a typo must not leave a default in force.
"""

import os
import tomllib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from anonymizer.errors import SettingsError
from anonymizer.settings.model import Settings

PREFIX = "ANONYMIZER__"
_TEXTS = {"password", "username", "client_id", "version", "token"}


def load_settings(
    path: str | PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
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
    tables = {} if path is None else _read(path)
    source_of: dict[str, str] = {}
    for name, text in environment.items():
        if name.startswith(PREFIX):
            keys = name.removeprefix(PREFIX).lower().split("__")
            _put(tables, keys, _value(keys, text), f"environment: {name}")
            source_of[".".join(keys)] = "environment"
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
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        where = _source(key, source_of) or source
        message = first["msg"].removeprefix("Value error, ")
        more = error.error_count() - 1
        rest = f" (and {more} more)" if more else ""
        raise SettingsError(": ".join(filter(None, (str(where), key, message + rest)))) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: is not TOML: {error}") from None


def _source(key: str, source_of: Mapping[str, str]) -> str | None:
    """Return the source of the override that contains `key` or is part of it, if there is one."""
    for other, source in source_of.items():
        if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
            return source
    return None


def _value(keys: list[str], text: str) -> object:
    """Parse an override; some keys are text even if the value looks like a number."""
    if keys[-1] in _TEXTS:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(tables: dict[str, Any], keys: list[str], value: object, source: str) -> None:
    for key in keys[:-1]:
        tables = tables.setdefault(key, {})
        if not isinstance(tables, dict):
            raise SettingsError(f"{source}: {key} is not a table")
    tables[keys[-1]] = value
