"""KACA's parts in plain Python."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise


def squares(points: Sequence[Sequence[float]]) -> float:
    """Squared distances to the mean, summed."""
    n = len(points)
    means = [sum(p[f] for p in points) / n for f in range(len(points[0]))]
    return sum((p[f] - means[f]) ** 2 for p in points for f in range(len(means)))


def members(class_of: Sequence[int]) -> dict[int, list[int]]:
    found = defaultdict(list)
    for i, c in enumerate(class_of):
        if c >= 0:
            found[c].append(i)
    return dict(found)


def arcs(hours: set[int]) -> list[tuple[int, int]]:
    """Every stretch (first hour, length) that holds all hours, the shortest and first one first."""
    every = [
        (first, length)
        for first in range(24)
        for length in range(1, 25)
        if hours <= {(first + i) % 24 for i in range(length)}
    ]
    return sorted(every, key=lambda arc: (arc[1], arc[0]))


def prefix(names: Sequence[str]) -> str:
    """What all names begin with."""
    longest = ""
    for end in range(1, min(map(len, names)) + 1):
        if all(a[:end] == b[:end] for a, b in pairwise(names)):
            longest = names[0][:end]
    return longest


def merged(
    points: Sequence[Sequence[float]], class_of: Sequence[int], k: int
) -> list[set[frozenset[int]]]:
    """Classes after each one below k joined the nearest that is not: all answers, if several.

    Several only where two are equally near; then the answer is empty, for the test to skip.
    """
    groups = members(class_of)
    mean = {
        c: [sum(points[i][f] for i in own) / len(own) for f in range(len(points[0]))]
        for c, own in groups.items()
    }
    large = [c for c, own in groups.items() if len(own) >= k]
    out = {c: list(groups[c]) for c in large}
    for c in groups:
        if c in large:
            continue
        far = sorted(
            (sum((a - b) ** 2 for a, b in zip(mean[c], mean[to], strict=True)), to) for to in large
        )
        if len(far) > 1 and far[1][0] - far[0][0] < 1e-9:
            return []
        out[far[0][1]] += groups[c]
    return [{frozenset(own) for own in out.values()}]
