"""What was reached stays reached: what a reader must load, and what an operator must hold."""

import pytest

from anonymizer.settings.json_schema import json_schema
from tools.figures import n_keys, n_lines_loaded


@pytest.mark.parametrize(
    ("wanted", "most"), [("client", 7_500), ("tables", 9_500), ("settings", 5_000)]
)
def test_who_wants_a_part_does_not_load_the_house(wanted: str, most: int) -> None:
    assert n_lines_loaded(wanted) <= most


def test_settings_are_no_more_than_they_were() -> None:
    """Whoever adds a key names the one that it replaces."""
    assert n_keys(json_schema()) <= 212
