"""The criteria that a promise may have, and classes that have a field for each."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, make_dataclass
from importlib import import_module
from typing import Any, TypeVar

from anonymizer.domain.criteria import MODULES
from anonymizer.domain.criteria.criterion import ClassCriterion, Of

T = TypeVar("T", bound=type)

CRITERIA: tuple[ClassCriterion, ...] = tuple(import_module(each).CRITERION for each in MODULES)
FURTHER = tuple(each for each in CRITERIA if each.name not in {"k", "d", "l"})
"""Those besides k, d and l, which models have defaults for and others name."""

BY_D = [each for each in FURTHER if each.safe is not None]
"""Those whose default depends on d."""
BY_NAME = [each for each in FURTHER if each.per_attribute]
"""Those of which a bound is stated for each number, by its name."""


def criteria_of(*of: Of) -> list[ClassCriterion]:
    """Return the criteria of these kinds."""
    return [each for each in CRITERIA if each.of in of]


def named(criteria: Iterable[ClassCriterion], last: str) -> str:
    """Return the names of criteria as a text, such as `l, m or t`."""
    *names, one = [each.name for each in criteria]
    return f"{', '.join(names)} {last} {one}" if names else one


def bounds_of(stated: Mapping[str, Any], d: int) -> dict[str, Any]:
    """Return the bounds of all further criteria; of what is not stated, those of the default."""
    return {each.name: each.bound_of(stated.get(each.name), d) for each in FURTHER}


def with_fields(fields: Callable[[], Mapping[str, tuple[Any, Any]]]) -> Callable[[T], T]:
    """Give a frozen dataclass further fields, each with its type and default, as its last ones."""

    def extended(cls: T) -> T:
        made: Any = make_dataclass(
            cls.__name__,
            [(name, *_field(type_, default)) for name, (type_, default) in fields().items()],
            bases=(cls,),
            namespace={"__doc__": cls.__doc__, "__module__": cls.__module__},
            frozen=True,
            slots=True,
            kw_only=True,
        )
        return made  # type: ignore[no-any-return]

    return extended


def _field(type_: Any, default: Any) -> tuple[Any, Any]:  # noqa: ANN401  any field's
    if isinstance(default, dict):
        return type_, field(default_factory=default.copy)
    return type_, field(default=default)
