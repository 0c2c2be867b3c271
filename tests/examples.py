"""On how many examples a property is tried: a multiple of what the profile says (conftest.py)."""

from hypothesis import settings


def many(factor: float) -> settings:
    """Return a decorator for properties of what keeps a promise, and for those that are cheap."""
    return settings(max_examples=round(factor * settings().max_examples))
