"""A mark beside a store: which store lies there, and what it was when it was closed.

A store remembers what was published; one that is missing, emptied, replaced by an older copy or
damaged would let it be published again, in another way. The mark tells these from a first start.
"""

import json
import os
import secrets
import sqlite3
from hashlib import blake2b
from pathlib import Path

from anonymizer.errors import SettingsError

_MODE = 0o600
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_CHUNK_BYTES = 1 << 20
_MOST_HASHED_BYTES = 1 << 30
"""A larger file is not read whole when it is closed: a gateway has to end in time."""


class StoreMark:
    """The mark of the store at a path, `PATH-mark`.

    Notes
    -----
    Whenever a store is opened, it gets a new random name, first in the mark, then in the store. A
    crash in between leaves the name before, which the mark still knows; an older copy has neither.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.with_name(f"{path.name}-mark")
        self._name = self._before = self._closed_as = self._boot = ""
        self.version = 0
        """Version of the store; 0: not known."""
        self.exists = self._file.exists()
        if self.exists:
            try:
                said = json.loads(self._file.read_text())
                self._name, self._before = said["name"], said["before"]
                self._closed_as = said["closed_as"]
                self._boot, self.version = said.get("boot", ""), said.get("version", 0)
            except (OSError, ValueError, KeyError, TypeError):
                raise self.lost(f"its mark {self._file} cannot be read") from None

    def check_there(self) -> None:
        """Check that there is a store if there was one; before it is created.

        Raises `SettingsError` if it is missing or empty.
        """
        if self.exists and not (self._path.exists() and self._path.stat().st_size):
            raise self.lost(f"is missing or empty, and {self._file} says that there was one")

    def is_as_closed(self) -> bool | None:
        """Return whether the file is the one that was closed; None: a crash leaves that open."""
        return self._closed_as == _digest(self._path) if self._closed_as else None

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the store was opened last since the machine has power, as far as is known."""
        return bool(self._boot) and self._boot == _boot()

    def damaged(self) -> SettingsError:
        """Return the error that says so."""
        return self.lost("is damaged: its content is not what it was when it was closed")

    def turn(self, connection: sqlite3.Connection, version: int) -> None:
        """Check that this is the store that was opened last, and name it anew.

        Raises `SettingsError` if it is another one, such as an older copy.
        """
        row = connection.execute("SELECT value FROM secrets WHERE name = 'opened'").fetchone()
        found = row[0].hex() if row else ""  # a copy has none
        if not self.exists and not row:
            found = self._named(connection)
        if self.exists and found not in {self._name, self._before}:
            raise self.lost(f"is not the store that {self._file} says was used last")
        self._boot, self.version = _boot(), version
        self._write(secrets.token_hex(16), found, "")
        self._named(connection, self._name)

    @staticmethod
    def _named(connection: sqlite3.Connection, name: str | None = None) -> str:
        """Name the store, at random by default."""
        name = name or secrets.token_hex(16)
        connection.execute(
            "INSERT OR REPLACE INTO secrets (name, value) VALUES ('opened', ?)",
            (bytes.fromhex(name),),
        )
        return name

    def close(self) -> None:
        """Note the content, once the store is closed and has no log."""
        log = self._path.with_name(f"{self._path.name}-wal")
        whole = not log.exists() and self._path.stat().st_size <= _MOST_HASHED_BYTES
        self._write(self._name, self._before, _digest(self._path) if whole else "")

    def _write(self, name: str, before: str, closed_as: str) -> None:
        self._name, self._before = name, before
        said = json.dumps(
            {
                "name": name,
                "before": before,
                "closed_as": closed_as,
                "boot": self._boot,
                "version": self.version,
            }
        )
        new = self._file.with_name(f"{self._file.name}.part")
        with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, _MODE), "w") as file:
            file.write(said)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._file)

    def lost(self, what: str) -> SettingsError:
        """Return the error that says what is wrong with the store, and what to do."""
        return SettingsError(
            f"store.path: {self._path}: {what}. Put the newest backup there and remove"
            f" {self._file}, or remove both to begin anew: windows and vehicles of before are"
            " forgotten then, and what was published of them can be published again"
        )


def _boot() -> str:
    """Return what names the time since the machine has power; empty: nothing does."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
