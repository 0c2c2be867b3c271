"""The privacy promise of a release of records: criteria that every equivalence class meets."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import BY_NAME, CRITERIA, FURTHER, criteria_of, with_fields
from anonymizer.errors import SettingsError


@with_fields(lambda: {each.name: (Any, each.default) for each in FURTHER})
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The criteria of every published equivalence class: a bound of each of `criteria.registry`.

    The defaults demand a value of every attribute, and nothing else.
    """

    k: int
    d: int = 1
    l: int = 1  # noqa: E741  the field's name for it
    """`k`, `d`, `l`: fewest distinct persons, values of every quasi-identifier and of every
    sensitive attribute."""
    margin: int = 0
    """Members of a class whom an adversary may have made up: whichever so many of them leave, the
    others meet all criteria, l where more than one value is asked for. k and d are given with them:
    every class has so many more persons, and where d is 2 or more, so many more values."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            k: int,
            d: int = 1,
            l: int = 1,  # noqa: E741  likewise
            margin: int = 0,
            **bounds: Any,  # noqa: ANN401  of further criteria
        ) -> None: ...

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  likewise


def bounds_sensitive(promise: Promise) -> bool:
    """Return whether there is a criterion on sensitive attributes."""
    return any(each.is_asked(getattr(promise, each.name)) for each in criteria_of(Of.SENSITIVE))


def asked_of(promise: Promise, of: Of, attribute: str) -> list[tuple[ClassCriterion, float]]:
    """Return the criteria that not every class meets for an attribute of a kind, and its bounds."""
    bounds = [
        (each, each.bound_for(getattr(promise, each.name), attribute)) for each in criteria_of(of)
    ]
    return [(each, bound) for each, bound in bounds if bound != each.neutral]


def check_numbers(promise: Promise, qis: Iterable[Any], sensitive: Iterable[Any]) -> None:
    """Raise `SettingsError` if a bound is stated of what is no number of the criterion's kind.

    `qis`, `sensitive`: attributes; not those in bands, whose places are ranks without a distance.
    """
    kinds = {Of.QI: qis, Of.SENSITIVE: sensitive}
    for each in BY_NAME:
        numbers = {attribute.name for attribute in kinds[each.of] if attribute.numeric}
        if strays := [name for name in getattr(promise, each.name) if name not in numbers]:
            but = " without bands" if each.of is Of.SENSITIVE else ""
            raise SettingsError(f"{each.name}: {strays[0]} is not a numeric {each.of.value}{but}")


def check_cells_promise(promise: Promise) -> None:
    """Raise `ValueError` if a cell of k persons could not have the required number of values.

    A larger cell could have them, but then k is too small: it has to be set explicitly.
    """
    if promise.k < 1 or promise.l < 1:
        raise ValueError("k and l are at least 1")
    for each in CRITERIA:
        if each.counts_values and (value := getattr(promise, each.name)) > promise.k:
            raise ValueError(
                f"{each.name.replace('_', '-')} = {value:g} is more than k = {promise.k}, the"
                " persons of a cell"
            )
