"""What comes from a file never steers the terminal."""

from io import StringIO
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from anonymizer.cli.terminal import Terminal, printable
from tests.cli.support import anonymizer

NASTY = "\x1b[2J\x1b]0;title\x07name\x9b31m\u202e\x00\r"


@given(st.text())
def test_text_has_no_code_that_a_terminal_obeys(text: str) -> None:
    said = printable(text)
    assert len(said) == len(text)
    assert all(each.isprintable() or each == "\n" for each in said)


def test_a_table_with_such_names_is_printed_without_them() -> None:
    file = StringIO()
    table = Table(NASTY, title=NASTY)
    table.add_row(NASTY)
    Terminal(file=file, width=200, force_terminal=True, color_system=None).print(table, NASTY)
    said = file.getvalue()
    assert "name" in said
    assert not set("\x1b\x9b\x07\u202e\x00\r") & set(said)


def test_no_command_prints_the_codes_of_a_name(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text(f"{NASTY[:-1]},age\na,1\nb,2\n", encoding="utf-8")
    model = ("--model", "kd", "-k", "2", "--qi", NASTY[:5], "--out", tmp_path / "o.csv")
    for words in (("profile", table), ("anonymize", table, *model)):
        said = anonymizer(*map(str, words))
        assert not set("\x1b\x9b\x07") & set(said.stdout + said.stderr)
