"""What was reached stays reached: what a reader must load, and what an operator must hold."""

import re

import pytest

from anonymizer.settings.json_schema import json_schema
from tests.console import ROOT
from tools.figures import files_entered, n_keys, n_lines_loaded


@pytest.mark.parametrize(
    ("wanted", "most"), [("client", 7_500), ("tables", 9_500), ("settings", 5_000), ("MQTT", 3_500)]
)
def test_who_wants_a_part_does_not_load_the_house(wanted: str, most: int) -> None:
    assert n_lines_loaded(wanted) <= most


def test_settings_are_no_more_than_they_were() -> None:
    """Whoever adds a key names the one that it replaces."""
    assert n_keys(json_schema()) <= 218


def test_the_page_of_the_architecture_names_every_file_that_a_position_enters() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    steps = page.partition("## From the socket to a message")[2].partition("\n## ")[0]
    entered = files_entered()
    named = {entry.rpartition("/")[2] for entry in re.findall(r"`([\w/]+\.py)`", steps)}
    assert [path.name for path in entered if path.name not in named] == []
    assert len(entered) <= 34
