"""What a release of records promises of each equivalence class."""

from dataclasses import dataclass, field
from math import inf

SAFE_SHARE, SAFE_SOURCE_SHARE = 0.995, 0.95
"""Of a class, at most, with one value, and with all values of one source, where nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Holds for every equivalence class that is published; every neutral value asks nothing.

    Attributes
    ----------
    k
        Distinct persons.
    d
        Distinct values of every quasi-identifier that are really there: the missing marker, a
        range or padding never counts.
    l
        Distinct values of every sensitive attribute.
    max_share
        Of the persons of a class, at most this share has any one value of a quasi-identifier.
    max_source_share
        Likewise for the values of all quasi-identifiers of one source together.
    min_spread
        Smallest distance between the ends of a numeric quasi-identifier, by name.
    entropy_l
        The entropy of every sensitive attribute is at least log(entropy_l).
    t
        Distance (earth mover's) of every sensitive attribute's distribution in a class from that
        in the whole table is at most this.

    References
    ----------
    .. [1] (k,d), (k,l,d): "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles
       Datasets", Applied Sciences 14(8), 3230, 2024.
    .. [2] A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007.
    .. [3] N. Li et al., "t-closeness: privacy beyond k-anonymity and l-diversity", 2007.
    """

    k: int
    d: int = 1
    l: int = 1  # noqa: E741  the field's name for it
    max_share: float = 1.0
    max_source_share: float = 1.0
    min_spread: dict[str, float] = field(default_factory=dict)
    entropy_l: float = 1.0
    t: float = inf


def bounded_shares(
    d: int, max_share: float | None = None, max_source_share: float | None = None
) -> tuple[float, float]:
    """Return `max_share` and `max_source_share` of a promise; None: what is safe.

    Notes
    -----
    d = 2 still allows a class in which 99 of 100 have one value. Who asks for d = 1 allows that
    all have it: then nothing is bounded where nobody says.
    """
    safe = (1.0, 1.0) if d == 1 else (SAFE_SHARE, SAFE_SOURCE_SHARE)
    return (
        safe[0] if max_share is None else max_share,
        safe[1] if max_source_share is None else max_source_share,
    )


def check_cells_promise(promise: Promise) -> None:
    """Raise `ValueError` where a cell of k persons could not have as many values as is asked for.

    A larger cell could; but whoever asks for it means a larger k, and has to say so.
    """
    if promise.k < 1 or promise.l < 1:
        raise ValueError("k and l are at least 1")
    for name, value in (("l", promise.l), ("entropy-l", promise.entropy_l)):
        if value > promise.k:
            raise ValueError(f"{name} = {value:g} is more than k = {promise.k}, a cell's persons")
