"""What a table may mean otherwise is told, whoever reads it."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable
from anonymizer.files.words_in_doubt import in_doubt, merged_cells

SIZES = st.lists(st.integers(2, 6), min_size=2, max_size=30)


def merged(sizes: list[int]) -> list[str | None]:
    """A column of merged cells as a spreadsheet exports it, of so many rows each."""
    return [cell for i, n in enumerate(sizes) for cell in (f"v{i % 3}", *[None] * (n - 1))]


@given(sizes=SIZES)
def test_merged_cells_are_told_whatever_their_sizes(sizes: list[int]) -> None:
    column = pl.Series("town", merged(sizes), pl.String)
    assert f"{len(column) - len(sizes):,} cells are empty below one" in merged_cells(column)


@given(sizes=SIZES)
def test_a_column_that_states_most_begins_empty_or_repeats_a_value_is_not_merged(
    sizes: list[int],
) -> None:
    cells = merged(sizes)
    filled = pl.Series(cells, dtype=pl.String).fill_null(strategy="forward")
    one = [cell and "v" for cell in cells]
    pairs = [cell for size in sizes for cell in ("a", "b", *[None] * size)]
    for other in (filled.to_list(), [None, *cells], one, pairs, [None] * 9, ["a", *[None] * 9], []):
        assert not merged_cells(pl.Series(other, dtype=pl.String))


def test_profile_release_and_audit_tell_of_merged_cells() -> None:
    town = merged([4] * 10)
    frame = pl.DataFrame(
        {"town": town, "age": [i % 9 for i in range(40)], "ill": ["flu", "gout"] * 20}
    )
    qi, sa = ["town", "age"], ["ill"]
    profile = anonymizer.profile(frame, qi=qi)
    assert "fill them down" in next(each.why for each in profile.columns if each.name == "town")
    release = anonymizer.anonymize(frame, k=4, d=1, model="kd", method="hilbert", qi=qi, sa=sa)
    assert any("town: 30 cells are empty" in told for told in release.report.warnings)
    report = anonymizer.audit_table(release, frame, qi=qi, sa=sa)
    assert any("town: 30 cells are empty" in told for told in report.in_doubt)


def test_identifiers_that_may_be_one_device_with_and_without_a_check_digit_are_told() -> None:
    ids = ["35693803564380", "356938035643809", "3569380356438001", "49015420323751"]
    table = TextTable(Path("t.csv"), pl.DataFrame({"imei": ids, "age": ["1", "2", "3", "4"]}))
    [told] = in_doubt(table, Declared(qis=["age"], id="imei"))
    assert told.startswith("imei: 3 identifiers of 14 to 16 digits")
    one_length = pl.DataFrame({"imei": [f"1000000000000{i:03}" for i in range(20)], "age": "1"})
    assert not [*in_doubt(TextTable(Path("t.csv"), one_length), Declared(qis=["age"], id="imei"))]


SAYS_NOTHING = [
    *("<none>", "(none)", "(leer)", "<empty>", "'NA'", "[]", "{}", "()", "*", "***", "~", "void"),
    *("redacted", "[REDACTED]", "don't know/refused", "n/a (not applicable)", "Inapp.", "DK"),
    *("DK/NR", "-- Select --", "NA_character_", "pd.NA", "[object Object]", "XXXX", ".a", "o. A."),
    *("valeur manquante", "t.b.d.", "not known or refused", "01/01/1900", "<nil>", "sysmis"),
]
SAYS_SOMETHING = [
    "+",
    "++",
    "O-",
    "A",
    "no",
    "yes",
    "\u20ac",
    "None such",
    "Other",
    "x",
    "<5",
    "Ag",
]


def told_of(*cells: str) -> list[str]:
    frame = pl.DataFrame({"ill": [*cells] * 3, "age": "1"})
    return [*in_doubt(TextTable(Path("t.csv"), frame), Declared(qis=["age"], sensitive=["ill"]))]


@pytest.mark.parametrize("word", SAYS_NOTHING)
def test_words_for_no_value_are_told_whatever_stands_around_or_beside_them(word: str) -> None:
    [told] = told_of(word, "measles", "gout")
    assert told.startswith("ill: 3 cells may say that there is no value")
    assert word in told


@pytest.mark.parametrize("word", SAYS_SOMETHING)
def test_what_says_something_is_not_told(word: str) -> None:
    assert not told_of(word, "measles", "gout")


@pytest.mark.parametrize("filler", ["99", "88", "777", "999999", "-1", "-9", "99.9", "-1.0"])
def test_a_number_of_nines_far_beyond_all_others_is_told(filler: str) -> None:
    others = [str(20 + i) for i in range(30)]
    [told] = told_of(filler, *others)
    assert filler in told
    assert not told_of(*others, "50", "55")


def test_a_number_of_nines_among_others_is_one() -> None:
    assert not told_of(*(str(i) for i in range(60, 125)))
    assert not told_of("-1", "-2", "-13", "5")
