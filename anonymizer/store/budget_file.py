"""The budget of a period on disk, so that a restart or a crash does not renew it.

One row says of the current period how many intervals have been charged, under which settings. It is
written before anything is drawn or published. The file belongs to one process at a time.
"""

import math
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from anonymizer.errors import SettingsError, StoreError

_APPLICATION_ID = 0x616E6264
_MODE = 0o600
_ALL = 2**31


class BudgetFile:
    """Charges intervals to the budget of their period.

    Parameters
    ----------
    path
        Made if it does not exist.
    plan
        What the budget is made for. Under other settings the rest of a period is refused: what has
        been spent under them cannot be compared.
    held_s
        For so long after the end of a period, a budget with other settings is refused, too.

    Raises
    ------
    SettingsError
        If the file cannot be made or used, is another program's, or is in use.
    """

    def __init__(self, path: Path, plan: str, *, held_s: float = 0.0) -> None:
        self._path = path
        self._plan = plan
        self._held_s = held_s
        try:
            # Whoever can put a link there must not choose which file is changed.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, _MODE))
            self._file = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=0.1
            )
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from None
        try:
            self._open()
        except sqlite3.Error as error:
            self._file.close()
            raise self._unusable(error) from None

    def _open(self) -> None:
        run = self._file.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("PRAGMA synchronous=FULL")
        run("BEGIN EXCLUSIVE")  # held as long as the file is open
        (application,) = run("PRAGMA application_id").fetchone()
        (n_tables,) = run("SELECT count(*) FROM sqlite_master").fetchone()
        if n_tables and application != _APPLICATION_ID:
            raise sqlite3.DatabaseError("is not a file of budgets")
        run(
            "CREATE TABLE IF NOT EXISTS budget"
            " (plan TEXT NOT NULL, starts REAL NOT NULL, ends REAL NOT NULL, n INTEGER NOT NULL)"
        )
        run(f"PRAGMA application_id={_APPLICATION_ID}")
        run("COMMIT")
        self._charged = run("SELECT starts, ends FROM budget").fetchone() or (-math.inf, -math.inf)

    def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:
        """Charge one interval to a period; return how many are charged, this one included.

        Parameters
        ----------
        starts_s, ends_s
            The period, unix seconds.
        most
            Intervals that its budget suffices for.

        Returns
        -------
        n
            None: nothing is charged, because the budget is spent, or a budget with other settings
            holds until later than the period starts.

        Raises
        ------
        StoreError
            If the file cannot be written; then nothing may be published.
        """
        try:
            row = self._file.execute("SELECT plan, starts, ends, n FROM budget").fetchone()
        except sqlite3.Error as error:
            raise self._lost(error) from None
        if row is None or row[2] + self._held_s * (row[0] != self._plan) <= starts_s:
            n = 0
        elif row[:3] == (self._plan, starts_s, ends_s):
            n = row[3]
        else:
            return None
        if n >= most:
            return None
        self._replace((self._plan, starts_s, ends_s, n + 1))
        return n + 1

    def ahead_until(self, now: float) -> float | None:
        """Return when the budget's period ends, if it has not begun yet; `now`: unix seconds.

        A clock that was ahead has charged it. Until then every interval is refused.
        """
        starts_s, ends_s = self._charged
        return ends_s if starts_s > now else None

    def go_on(self, starts_s: float, ends_s: float) -> None:
        """Take all of a period for spent, in place of the one that is charged.

        What was spent in this period before the clock went ahead is not known, and what has been
        spent since counts in it.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        plan = self._file.execute("SELECT plan FROM budget").fetchone()
        self._replace((plan[0] if plan else self._plan, starts_s, ends_s, _ALL))

    def _replace(self, row: tuple[str, float, float, int]) -> None:
        try:
            self._file.execute("BEGIN EXCLUSIVE")
            self._file.execute("DELETE FROM budget")
            self._file.execute("INSERT INTO budget VALUES (?, ?, ?, ?)", row)
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._file.execute("ROLLBACK")
            raise self._lost(error) from None
        self._charged = row[1:3]

    def close(self) -> None:
        """Leave the file to others."""
        self._file.close()

    def _lost(self, error: Exception) -> StoreError:
        return StoreError(f"store.path: {self._path}: cannot be used: {error}")

    def _unusable(self, error: Exception) -> SettingsError:
        is_locked = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        problem = "is in use by another gateway" if is_locked else f"cannot be used: {error}"
        return SettingsError(f"store.path: {self._path}: {problem}")
