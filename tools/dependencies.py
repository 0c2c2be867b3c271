"""What the project is made of: `python -m tools.dependencies`, run by `make check`.

Every requirement is pinned to one version and to hashes, what is installed is what is pinned, and
the licence that each states is one that a user of a service can live with. Nothing is asked of the
network: known vulnerabilities are `make audit`'s business, which needs it.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("requirements.txt", "requirements-demo.txt", "requirements-dev.txt")
UNINSTALLED = ("requirements-spark.txt", "requirements-judge.txt")
"""Of other environments: that they are pinned and hashed is all that can be seen here."""

ALLOWED = frozenset(
    {
        "0BSD", "Apache", "Apache-2.0", "Apache License 2.0", "Apache Software License",
        "BSD", "BSD License", "BSD-2-Clause", "BSD-3-Clause", "3-Clause BSD License", "CC0-1.0",
        "ISC", "ISC License (ISCL)", "MIT", "MIT License", "MIT-0", "MIT-CMU", "PSF-2.0",
        "Python Software Foundation License", "Unlicense", "Zlib",
        # The file-level copyleft of these concerns changes to their own files.
        "EPL-2.0", "MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)",
    }
)  # fmt: skip
"""As packages state them: SPDX identifiers, the last part of a classifier, or free words."""

IN_A_FILE_ALONE = {"skops": "MIT"}
"""Licences that a package does not state, but includes: somebody has read them."""

_PINNED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;]+)(?:\s*;\s*([^\\]+?))?\s*\\")
_HASH = re.compile(r"\s+--hash=sha256:[0-9a-f]{64}( \\)?")


def pins(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and version of each requirement.

    Raises
    ------
    ValueError
        With the number of a line that is neither a pinned requirement nor a hash of one.
    """
    n_hashes = 1
    for number, line in enumerate(text.splitlines(), 1):
        if _HASH.fullmatch(line):
            n_hashes += 1
        elif (found := _PINNED.fullmatch(line)) and n_hashes:
            n_hashes = 0
            yield found[1], found[2]
        else:
            raise ValueError(f"line {number}: is not pinned and hashed")
    if not n_hashes:
        raise ValueError("the last requirement has no hash")


def allowed(expression: str) -> bool:
    """Return whether a licence may be accepted: all of `AND`, one of `OR`, whatever the `WITH`."""
    plain = re.sub(r" WITH [\w.-]+", "", expression)
    choices = re.sub(r"[()]", "", plain).split(" OR ")
    return expression in ALLOWED or any(
        all(part.strip() in ALLOWED for part in choice.split(" AND ")) for choice in choices
    )


def licence_of(package: Distribution) -> list[str]:
    """Return the licences that a package states; each of them may be chosen."""

    def said(field: str) -> list[str]:
        return [text.strip() for text in package.metadata.get_all(field) or []]

    approved = [c for c in said("Classifier") if c.startswith("License :: OSI Approved :: ")]
    named = [classifier.rpartition(" :: ")[2] for classifier in approved]
    known = IN_A_FILE_ALONE.get(package.name)
    return said("License-Expression") or named or said("License") or ([known] if known else [])


def faults() -> Iterator[str]:
    """Yield what is wrong, a line each."""
    for file in (*FILES, *UNINSTALLED):
        try:
            pinned = list(pins((ROOT / file).read_text()))
        except ValueError as error:
            yield f"{file}: {error}"
            continue
        if file in UNINSTALLED:
            continue
        versions: dict[str, set[str]] = {}
        for name, version in pinned:  # one for each version of Python that needs its own
            versions.setdefault(name, set()).add(version)
        for name, known in versions.items():
            try:
                package = distribution(name)
            except PackageNotFoundError:
                continue  # for another platform
            if package.version not in known:
                yield f"{file}: {name}: another version is installed; run make install"
            if not any(map(allowed, licence_of(package))):
                yield f"{file}: {name}: its licence is not on the list in {Path(__file__).name}"


def main() -> int:
    """Return the exit code: 0 all is well, 1 something is not, said on standard error."""
    found = list(faults())
    sys.stderr.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
