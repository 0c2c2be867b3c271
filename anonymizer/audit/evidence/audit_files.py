"""Files of continuous evidence: one for each attack of a gateway on its traffic, two for a day."""

from datetime import UTC, datetime
from pathlib import Path

from anonymizer.errors import InputError
from anonymizer.settings import Settings

_MOMENT = "%Y-%m-%dT%H%M%SZ"
_PREFIX = "audit-"


def name_of_audit(ended: datetime) -> str:
    """Return the name of the file for a sample that ended then."""
    return f"{_PREFIX}{ended.astimezone(UTC):{_MOMENT}}.json"


def names_of_day(day: datetime) -> tuple[str, str]:
    """Return the names of the page of a day, and of the same as JSON."""
    name = f"evidence-{day:%Y-%m-%d}"
    return f"{name}.html", f"{name}.json"


def audits_in(
    folder: Path, *, since: datetime | None = None, until: datetime | None = None
) -> list[Path]:
    """Return the files of samples that ended after `since`, and not after `until`, by time.

    Raises `InputError` if the folder cannot be read.
    """
    found = []
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}") from None
    for name in names:
        try:
            ended = datetime.strptime(name, f"{_PREFIX}{_MOMENT}.json").replace(tzinfo=UTC)
        except ValueError:
            continue
        if (since is None or ended > since) and (until is None or ended <= until):
            found.append(folder / name)
    return found


def audits_since(since: datetime, settings: Settings | None) -> list[Path]:
    """Return the files that a gateway has written since then (UTC), by time.

    Raises `InputError` if the settings name no directory, or it has none.
    """
    folder = None if settings is None else settings.watch.reports
    if folder is None:
        raise InputError("since: needs settings (-c) with watch.reports")
    found = audits_in(folder, since=since.replace(tzinfo=UTC))
    if not found:
        raise InputError(f"{folder}: has no audit since then; they are kept for 31 days")
    return found
