"""The privacy promise of a release of records: criteria that every equivalence class meets."""

from dataclasses import dataclass, field
from math import inf

SAFE_SHARE, SAFE_SOURCE_SHARE = 0.995, 0.95
"""Default `max_share` and `max_source_share` of a promise with d > 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The criteria of every published equivalence class.

    The defaults demand a value of every attribute, and nothing else.

    Attributes
    ----------
    k
        Fewest distinct persons.
    d
        Fewest distinct original values of every quasi-identifier. The missing marker, a range
        and padding do not count.
    l
        Fewest distinct values of every sensitive attribute.
    max_share
        Largest share of a class's persons who have the same value of a quasi-identifier.
    max_source_share
        Likewise for the values of all quasi-identifiers of one source together, where it has
        several: that of a source of one is bounded by `max_share`.
    min_spread
        Smallest distance between the ends of a numeric quasi-identifier, by name.
    entropy_l
        The entropy of every sensitive attribute is at least log(entropy_l).
    t
        Largest earth mover's distance between the distribution of a sensitive attribute in a
        class and its distribution in the whole table.
    margin
        Members of a class whom an adversary may have made up: whichever so many of them leave, the
        others meet all bounds on shares and spread, and where more than one value is asked for, l,
        entropy_l and t. k and d are given with them: every class has so many more persons, and
        where d is 2 or more, so many more values.

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
    margin: int = 0


def bounded_shares(
    d: int, max_share: float | None = None, max_source_share: float | None = None
) -> tuple[float, float]:
    """Return `max_share` and `max_source_share` of a promise, with defaults in place of None.

    Notes
    -----
    d = 2 alone still allows a class in which 99 of 100 persons have the same value, so the
    defaults are the safe shares. d = 1 allows that all persons have it, so the defaults are 1.
    """
    safe = (1.0, 1.0) if d == 1 else (SAFE_SHARE, SAFE_SOURCE_SHARE)
    return (
        safe[0] if max_share is None else max_share,
        safe[1] if max_source_share is None else max_source_share,
    )


def check_cells_promise(promise: Promise) -> None:
    """Raise `ValueError` if a cell of k persons could not have the required number of values.

    A larger cell could have them, but then k is too small: it has to be set explicitly.
    """
    if promise.k < 1 or promise.l < 1:
        raise ValueError("k and l are at least 1")
    for name, value in (("l", promise.l), ("entropy-l", promise.entropy_l)):
        if value > promise.k:
            raise ValueError(
                f"{name} = {value:g} is more than k = {promise.k}, the persons of a cell"
            )
