"""The documentation: every command and example is run, what is generated is up to date."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anonymizer.cli.demo_view import BEAT
from anonymizer.transport.local_brokers import find_mosquitto, free_port
from tests.audit.tracked import tracked_once
from tests.console import ROOT, Block, Runner, blocks, commands, fits, pages
from tests.mosquitto import HOW
from tools import manual

_PAGES = [page for page in pages() if any(blocks(page))]
PARTS = [
    pytest.param(
        page,
        id=str(page.relative_to(ROOT)),
        # The experiments of the notes have tests of their own.
        marks=[pytest.mark.soak] if page.parent.name == "notes" else [],
    )
    for page in _PAGES
]


@pytest.fixture
def broker_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A Mosquitto of one's own; none for the README, whose reader has none either."""
    if "page" in request.fixturenames and request.getfixturevalue("page").name == "README.md":
        yield f"mqtt://127.0.0.1:{free_port()}"
        return
    program = find_mosquitto()
    assert program, HOW
    port = free_port()
    with subprocess.Popen([program, "-p", str(port)], stderr=subprocess.DEVNULL) as process:
        yield f"mqtt://127.0.0.1:{port}"
        process.kill()  # Mosquitto misses a gentler signal that comes while it starts


@pytest.fixture
def runner(tmp_path: Path, broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """A runner in an empty folder; all that it started has ended well."""
    # Of the audits of random releases, one in a few hundred fails a bar of three standard errors.
    monkeypatch.setattr(secrets, "randbits", lambda _: 1)
    runner = Runner(tmp_path, broker_url, free_port())
    with tracked_once():
        yield runner
    runner.end()


@pytest.mark.parametrize("page", PARTS)
def test_every_command_and_example_of_a_page_does_what_it_says(page: Path, runner: Runner) -> None:
    for block in blocks(page):
        runner.run(block)


def test_the_pages_that_are_generated_are_those_that_are_kept() -> None:
    assert {name for name in manual.kept() if name.endswith(".md")} == manual.GENERATED


def test_what_is_generated_is_what_the_code_says() -> None:
    for name, text in manual.kept().items():
        assert (ROOT / "docs" / name).read_text() == text, f"docs/{name} is out of date: make docs"


@pytest.mark.soak  # `make check` builds it too
def test_the_site_is_built_without_a_warning_and_asks_nobody_for_anything(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    for page in tmp_path.rglob("*.html"):
        foreign = re.findall(r'<(?:script|img|link|iframe)[^>]+"https?://[^"]*"', page.read_text())
        assert foreign == [], page
    for style in tmp_path.rglob("*.css"):
        assert re.findall(r"url\([\"']?https?:", style.read_text()) == [], style


def test_the_site_has_no_fonts_scripts_or_styles_of_others() -> None:
    said = (ROOT / "mkdocs.yml").read_text()
    assert "\n  font: false" in said
    assert "://" not in said


def test_commands_are_found_with_their_output_and_their_other_lines() -> None:
    text = "$ one \\\n> more\n1\n2\n$ two & \n"
    found = [(c.text, c.prints) for c in commands(Block("page", 1, "console", None, text))]
    assert found == [("one \\\nmore", "1\n2\n"), ("two & ", None)]


def test_output_fits_but_for_space_and_for_dots() -> None:
    assert fits("a   b\n", "a b")
    assert fits("one\ntwo 17 three", "one\n... three")
    assert not fits("one two", "one")
    assert not fits("one two three", "... four")


def test_a_page_that_lies_is_found_out(runner: Runner) -> None:
    for language, text in (
        ("console", "$ cat nowhere\n"),
        ("console", "$ wc --version\nnothing of the kind\n"),
        ("console", "$ frobnicate\n"),
        ("console", "$ make nothing\n"),
        ("python", "assert 1 == 2\n"),
        ("toml", "[brokers]\n"),
        ("json", "{"),
        ("", "plain\n"),
    ):
        with pytest.raises((AssertionError, ValueError)):
            runner.run(Block("page", 1, language, None, text))


def test_one_page_says_how_often_a_device_is_published_and_the_first_ones_lead_there() -> None:
    def words(page: str) -> str:
        return " ".join((ROOT / page).read_text().replace("`", "").split())

    pages = [
        str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    ]
    assert [page for page in pages if BEAT in words(page)] == ["docs/choosing.md"]
    assert "[every few seconds](docs/choosing.md)" in words("README.md")
    assert "[every few seconds](choosing.md)" in words("docs/index.md")


def test_every_link_of_the_repository_leads_to_a_file_of_it() -> None:
    written = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "notes").rglob("*.md")]
    found = [
        (page, target)
        for page in written
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not target.startswith("mailto:")
    ]
    assert len(found) > 100
    assert [(page.name, to) for page, to in found if not (page.parent / to).exists()] == []
