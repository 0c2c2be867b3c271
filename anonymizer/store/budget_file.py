"""The budget of a period on disk, so that a restart or a crash does not renew it.

One row says of the current period how many intervals have been charged, under which settings;
another, up to which time something was published. They are written before anything is drawn or
published. The file belongs to one process at a time.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from anonymizer.domain.told_times import ToldTimes
from anonymizer.errors import SettingsError, StoreError

_APPLICATION_ID = 0x616E6264
_MODE = 0o600
_ALL = 2**31
_WRITE = {
    "budget": ("DELETE FROM budget", "INSERT INTO budget VALUES (?, ?, ?, ?)"),
    "told": ("DELETE FROM told", "INSERT INTO told VALUES (?)"),
}
"""How the only row of each table is replaced."""


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
    most
        Intervals that the budget of a period suffices for, so that it can be said when it is spent.

    Raises
    ------
    SettingsError
        If the file cannot be made or used, is another program's, or is in use.
    """

    def __init__(self, path: Path, plan: str, *, held_s: float = 0.0, most: int = 1) -> None:
        self._path = path
        self._plan = plan
        self._held_s = held_s
        self._most = most
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
        run("CREATE TABLE IF NOT EXISTS told (until REAL NOT NULL)")
        run(f"PRAGMA application_id={_APPLICATION_ID}")
        run("COMMIT")
        self._charged: tuple[str, float, float, int] | None = run(
            "SELECT plan, starts, ends, n FROM budget"
        ).fetchone()
        self._ahead: tuple[str, float, float, int] | None = None
        """What was charged, if that was of a later time than now."""
        self._told = ToldTimes(*(run("SELECT until FROM told").fetchone() or ()))

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

    def tell(self, starts_s: float, ends_s: float) -> bool:
        """Return whether something may be published of the times of an interval, which it then is.

        `starts_s`, `ends_s`: unix seconds, as readers see them.

        Raises `StoreError` if the file cannot be written; then nothing may be published.
        """
        if not self._told.take(starts_s, ends_s):
            return False
        self._write("told", (self._told.until_s,))
        return True

    def ahead_until(self, now: float, *, steady: float | None = None) -> float | None:
        """Return until when every interval is refused because a clock was ahead; None: none is.

        Parameters
        ----------
        now
            The wall clock, unix seconds.
        steady
            The clock by which periods are charged; None: the wall clock, as before the first is.
        """
        found = [now, self._told.until_s]
        if self._charged is not None:
            plan, starts_s, ends_s, n = self._charged
            if starts_s > (now if steady is None else steady):
                self._ahead = self._charged
            if self._charged is self._ahead:
                held_s = self._held_s * (plan != self._plan)
                is_spent = plan != self._plan or n >= self._most
                found.append(ends_s + held_s if is_spent else starts_s)
        return max(found) if max(found) > now else None

    def go_on(self, starts_s: float, ends_s: float) -> None:
        """Take all of a period for spent, in place of the one that is charged and all later times.

        What was spent in this period before the clock went ahead is not known, and what has been
        spent since counts in it.

        Raises `StoreError` if the file cannot be written.
        """
        plan = self._file.execute("SELECT plan FROM budget").fetchone()
        self._replace((plan[0] if plan else self._plan, starts_s, ends_s, _ALL))
        self._told = ToldTimes(min(self._told.until_s, ends_s))
        self._write("told", (self._told.until_s,))

    def _replace(self, row: tuple[str, float, float, int]) -> None:
        self._write("budget", row)
        self._charged = row

    def _write(self, table: str, row: tuple[str | float, ...]) -> None:
        delete, insert = _WRITE[table]
        try:
            self._file.execute("BEGIN EXCLUSIVE")
            self._file.execute(delete)
            self._file.execute(insert, row)
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._file.execute("ROLLBACK")
            raise self._lost(error) from None

    def close(self) -> None:
        """Leave the file to others."""
        self._file.close()

    def _lost(self, error: Exception) -> StoreError:
        return StoreError(f"store.path: {self._path}: cannot be used: {error}")

    def _unusable(self, error: Exception) -> SettingsError:
        is_locked = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        problem = "is in use by another gateway" if is_locked else f"cannot be used: {error}"
        return SettingsError(f"store.path: {self._path}: {problem}")
