"""What was reached stays reached: what a reader must load, and what an operator must hold."""

import re
from pathlib import Path

import pytest

from anonymizer.settings.json_schema import json_schema
from tests.console import ROOT
from tools import reach
from tools.figures import (
    files_entered,
    n_bytes_of_notes,
    n_bytes_of_pages,
    n_keys,
    n_lines_loaded,
    names_of_two_classes,
)
from tools.house import Lines, files_of_rooms, lines_of, named_rooms

_ROOMS = ("anonymizer", "simulator", "experiments", "benchmarks", "tools")
_ASKED_BEFORE = {
    "accounting.py", "decoded.py", "devices.py", "network.py", "operator.py", "pace.py",
    "ports.py", "release.py",
}  # fmt: skip
"""Files of which a step before their own takes a type, a time or a count."""


@pytest.mark.parametrize(
    ("wanted", "most"),
    [("client", 8_112), ("tables", 8_856), ("settings", 6_490), ("MQTT", 3_750)],
)
def test_who_wants_a_part_does_not_load_the_house(wanted: str, most: int) -> None:
    assert n_lines_loaded(wanted) <= most


def test_settings_are_no_more_than_they_were() -> None:
    """Whoever adds a key names the one that it replaces."""
    assert n_keys(json_schema()) <= 170


def test_pages_are_no_longer_than_they_were() -> None:
    """Whoever adds to a page takes as much away; the laboratory is in notes."""
    assert n_bytes_of_pages() <= 211_000


def test_notes_keep_what_a_decision_rests_on() -> None:
    """What is superseded goes when its successor comes: git keeps it."""
    assert n_bytes_of_notes() <= 120_000


def test_a_public_class_has_a_name_of_its_own() -> None:
    assert names_of_two_classes() == []


def test_a_text_stands_behind_the_value_that_it_tells_of() -> None:
    two = re.compile(r'^( *)"""(?:(?!""").)*"""\n\1"""', re.DOTALL | re.MULTILINE)
    assert two.search('A = 1\n"""Of A."""\n"""Of B."""\n')
    files = [path for room in _ROOMS for path in (ROOT / room).rglob("*.py")]
    assert [str(path.relative_to(ROOT)) for path in files if two.search(path.read_text())] == []


def test_the_page_of_the_architecture_names_the_files_that_a_position_enters_in_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    walk = page.partition("## From the socket to a message")[2].partition("\n## ")[0]
    step_of: dict[str, int] = {}
    for number, step in enumerate(re.split(r"^\d+\. ", walk, flags=re.MULTILINE)):
        for entry in re.findall(r"`([\w/]+\.py)`", step):
            step_of.setdefault(entry.rpartition("/")[2], number)
    entered = [path.name for path in files_entered()]
    assert [name for name in entered if name not in step_of] == []
    assert len(entered) <= 38  # one idea each
    steps = [step_of[name] for name in entered if name not in _ASKED_BEFORE]
    assert steps == sorted(steps)
    assert set(steps) == {3, 4, 5, 6, 7, 8, 9}


def test_the_notes_on_the_house_have_a_row_for_each_room() -> None:
    page = (ROOT / "notes" / "house.md").read_text()
    assert named_rooms(page) == files_of_rooms().keys()


def test_lines_are_of_five_kinds(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text('''"""Two
lines."""

import os  # not a line of its own

# A line of its own.
A = """
no docstring"""
"""What A is."""
''')
    assert lines_of([file]) == Lines(1, code=2, docstrings=3, imports=1, blank=2, comments=1)


def test_the_reach_of_commits_counts_files_of_the_packages() -> None:
    log = (
        "\0\n\nanonymizer/a.py\ntests/a.py\n"
        "\0\n\nanonymizer/a.py\nanonymizer/out/b.py\nsimulator/c.py\n"
        "\0\n\ndocs/a.md\n"
        "\0\n\nanonymizer/out/b.py\n"
    )
    commits = reach.files_of_commits(log)
    assert list(map(len, commits)) == [1, 3, 1], "what touches no package does not count"
    said = "3 commits touch 1 / 3 / 3 files (median, p75, p90); 67% touch one"
    assert reach.summary(commits) == said
    assert reach.together(commits, "out/", "a.py") == (2, 1)
