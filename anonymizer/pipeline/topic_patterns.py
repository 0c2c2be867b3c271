"""Patterns of topics: which topics a filter matches, and the levels that are an id."""

import re

from anonymizer.settings.base import is_field


def pattern_of(topic: str) -> re.Pattern[str]:
    """Return what matches the topics of a filter whole; its groups are the levels of the id."""
    *levels, last = topic.split("/")
    own = "/".join(map(_expression, levels if last == "#" else [*levels, last]))
    rest = ("(?:/.*)?" if levels else ".*") if last == "#" else ""
    return re.compile(own + rest, re.DOTALL)


def _expression(level: str) -> str:
    if is_field(level):
        return "([^/]*)"
    return "[^/]*" if level == "+" else re.escape(level)
