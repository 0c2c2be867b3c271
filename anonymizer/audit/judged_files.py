"""The SHA-256 of what an audit judged, which binds a page of evidence to a published file.

Of published files alone: a small file of raw data could be guessed from its digest.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from anonymizer.errors import InputError

Judged: TypeAlias = dict[str, str | None]
"""By role, such as `release`, the SHA-256 in hex of the file; None: it was no file by itself."""


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 of a file in hex; None: it is a pipe or another thing that is read once.

    Raises `InputError` if it cannot be read.
    """
    if path.exists() and not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


@contextmanager
def judging(role: str, path: Path, *, truth: Path | None = None) -> Iterator[Judged]:
    """Yield the digest of a published file that is audited in the block.

    `truth`: a file of raw data; if the published one is the same, no digest is told.

    Raises `InputError` if the file cannot be read, or is another one when the block ends.
    """
    digest = digest_of(path) if path.is_file() else None
    is_raw = truth is not None and truth.is_file() and digest_of(truth) == digest
    yield {role: None if is_raw else digest}
    if digest is not None and digest_of(path) != digest:
        raise InputError(f"{path}: was changed while it was audited: audit it again")


def digests_of(files: Iterable[Path], judged: Mapping[Path, Judged | None]) -> dict[Path, str]:
    """Return the SHA-256 of files that audits have judged.

    `judged`: what each audit says of itself, by its file; None: nothing.

    Raises `InputError` if one is no file, or no audit has judged it.
    """
    known = {digest for each in judged.values() if each for digest in each.values()}
    found = {}
    for path in files:
        digest = digest_of(path)
        if digest is None:
            raise InputError(f"{path}: is no regular file: name and audit a file with its content")
        if digest not in known:
            raise InputError(f"{path}: no audit given here has judged this file: {_to_do(judged)}")
        found[path] = digest
    return found


def _to_do(judged: Mapping[Path, Judged | None]) -> str:
    """Say how a file comes to be judged."""
    for name, each in judged.items():
        if each is None:
            return f"{name} names none: run `anonymizer audit` on the file again, with this version"
        if None in each.values():
            return (
                f"{name} is of a pipe, or of a recording that is also the truth: audit a file with "
                "what is published, alone"
            )
    return "audit it, and give that report, too (settings are named with -c)"
