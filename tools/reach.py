"""How far a change reaches: files of the package that commits touch, and which change together.

`python -m tools.reach` prints it for the last 200 commits, `python -m tools.reach RANGE` for those
of a range of git; `python -m tools.reach RANGE A B` also how often commits that touch a file whose
path contains A touch one with B.
"""

import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from tools.figures import ROOT

_PACKAGES = ("anonymizer/", "simulator/")
_LAST = 200


def files_of_commits(log: str) -> list[frozenset[str]]:
    """Return the files of the packages that each commit touches, without merges and empty ones.

    `log` is as `git log --format=%x00 --name-only` prints it.
    """
    commits = [frozenset(part.split("\n")) for part in log.split("\0")]
    own = [frozenset(file for file in each if file.startswith(_PACKAGES)) for each in commits]
    return [each for each in own if each]


def together(commits: Sequence[frozenset[str]], one: str, other: str) -> tuple[int, int]:
    """Return how many commits touch a path with `one`, and how many of these one with `other`."""
    ones = [each for each in commits if any(one in file for file in each)]
    return len(ones), sum(any(other in file for file in each) for each in ones)


def summary(commits: Sequence[frozenset[str]]) -> str:
    """Return in words how many files commits touch."""
    sizes = [len(each) for each in commits]
    median, p75, p90 = np.percentile(sizes, [50, 75, 90], method="inverted_cdf").tolist()
    share = sum(size == 1 for size in sizes) / len(sizes)
    return (
        f"{len(sizes)} commits touch {median} / {p75} / {p90} files (median, p75, p90);"
        f" {share:.0%} touch one"
    )


def main(arguments: Sequence[str]) -> None:
    """Print the reach of commits."""
    which = arguments[:1] or [f"-{_LAST}"]
    command = ["git", "log", "--no-merges", "--no-renames", "--format=%x00", "--name-only", *which]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    log = ran.stdout
    commits = files_of_commits(log)
    print(summary(commits) if commits else "no commit touches the packages")  # noqa: T201
    if len(arguments) == 3:
        n, n_both = together(commits, *arguments[1:])
        print(f"{n_both} of {n} with {arguments[1]} also touch {arguments[2]}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
