"""A field of settings for each criterion of a class."""

from functools import update_wrapper
from math import inf
from typing import Annotated, Any, TypeVar

from pydantic import Field, create_model

from anonymizer.domain.criteria.criterion import ClassCriterion
from anonymizer.domain.criteria.registry import FURTHER
from anonymizer.settings.base import Group

GroupT = TypeVar("GroupT", bound=type[Group])


def with_criteria(group: GroupT) -> GroupT:
    """Give a table of settings a key for each criterion besides k, d and l, as its last ones."""
    keys: dict[str, Any] = {each.name: _key(each) for each in FURTHER}
    made: Any = create_model(group.__name__, __base__=group, **keys)
    # What it wraps is the class whose source tells the other keys.
    update_wrapper(made, group, ("__module__", "__qualname__", "__doc__"), ())
    return made  # type: ignore[no-any-return]


def _key(each: ClassCriterion) -> tuple[Any, Any]:
    """Return the type of a key and its default; None stands for that of the promise."""
    limits: dict[str, Any] = {"gt" if each.above_least else "ge": each.least}
    limits |= {"allow_inf_nan": False} if each.most == inf else {"le": each.most}
    number: Any = Annotated[float, Field(**limits)]
    text = each.meaning + (f" None: {each.unstated}." if each.unstated else "")
    if each.per_attribute:
        return dict[str, number], Field(default={}, description=text)
    if each.unstated:
        return number | None, Field(default=None, description=text)
    return number, Field(default=each.default, description=text)
