"""The privacy promise of a release of records: criteria that every equivalence class meets."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, FURTHER, criteria_of, with_fields


@with_fields(lambda: {each.name: (Any, each.default) for each in FURTHER})
@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The criteria of every published equivalence class: a bound of each of `criteria.registry`.

    The defaults demand a value of every attribute, and nothing else.

    Attributes
    ----------
    k, d, l
        Fewest distinct persons, values of every quasi-identifier and of every sensitive attribute.
    margin
        Members of a class whom an adversary may have made up: whichever so many of them leave, the
        others meet all criteria, l where more than one value is asked for. k and d are given with
        them: every class has so many more persons, and where d is 2 or more, so many more values.
    """

    k: int
    d: int = 1
    l: int = 1  # noqa: E741  the field's name for it
    margin: int = 0

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


def promise_about(promise: Promise, qis: Collection[str], *, sensitive: bool = True) -> Promise:
    """Return the part of a promise that concerns these quasi-identifiers, by name.

    `sensitive`: whether it concerns sensitive attributes, too.
    """
    bounds: dict[str, Any] = {
        each.name: {name: x for name, x in getattr(promise, each.name).items() if name in qis}
        for each in criteria_of(Of.QI)
        if each.per_attribute
    }
    if not sensitive:
        bounds |= {each.name: each.default for each in criteria_of(Of.SENSITIVE)}
    return replace(promise, **bounds)


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
