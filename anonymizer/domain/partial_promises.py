"""The part of a promise that concerns some of the attributes."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import BY_NAME, criteria_of
from anonymizer.domain.promises import Promise


def promise_about(promise: Promise, names: Collection[str], *, sensitive: bool = True) -> Promise:
    """Return what concerns these attributes, by name; `sensitive`: whether any are sensitive."""
    bounds: dict[str, Any] = {
        each.name: {name: x for name, x in getattr(promise, each.name).items() if name in names}
        for each in BY_NAME
    }
    if not sensitive:
        bounds |= {each.name: each.default for each in criteria_of(Of.SENSITIVE)}
    return replace(promise, **bounds)
