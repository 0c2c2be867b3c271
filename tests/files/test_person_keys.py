"""One person under several writings of an identifier is one person, and two stay two."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.person_key import person_key
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.files.coded_table import Declared, in_meaning
from anonymizer.files.person_keys import n_alike, with_person_keys
from anonymizer.files.tables import TextTable
from anonymizer.spark.persons import _joined
from tests.files import naive_person_keys as naive

ONE_PERSON = [
    ("B-AB 100", "B AB 100", "BAB100", "b.ab/100"),
    ("AA:BB:CC:DD:EE:01", "aa-bb-cc-dd-ee-01", "aabb.ccdd.ee01"),
    ("+358 40 123", "+35840123", "0035840123", "(+358) 40-123", "00358 40 123"),
    ("{0a0b0c0d-aaaa-bbbb-cccc-000000000001}", "0a0b0c0daaaabbbbcccc000000000001"),
    ("DE89 3704 0044 05", "DE893704004405"),
    ("1,000", "1000", "1000.0", "1 000", "+1000", "01000", "1,000.00"),
    ("010203-1234", "0102031234"),
    ("M\u00fcller-1", "Muller1", "M\u00dcLLER 1"),
    ("1-23", "12-3"),
    ("\u0412123\u0410\u042177", "B123AC77", "\u0432123\u0430\u044177"),
    ("M\u00fcller k", "Mueller k"), ("S\u00f8rensen", "Soerensen", "Sorensen"), ("\u00c5s", "As"),
    ("2001:db8::1", "2001:0db8:0:0:0:0:0:1", "[2001:DB8::1]"), ("::ffff:1.2.3.4", "1.2.3.4"),
    ("Meier, Anna", "Anna Meier", "MEIER,ANNA", "Dr. Anna Meier", "Prof. Dr. med. Anna Meier"),
    ("Meier, Dr. Anna", "Dr Anna Meier", "Anna Meier"),
    ("Mr. Ben Roe", "Ben Roe", "Mr Ben Roe", "Roe, Ben", "Roe, Mr. Ben", "Herr Ben Roe"),
    ("Ben Roe, PhD", "Ben Roe Ph.D.", "Dr. Ben Roe, MD", "Ben Roe", "Ben Roe M.Sc."),
    ("Ben Roe Jr", "Ben Roe, Jr.", "Mr. Ben Roe, jr"),
    ("tel:+358401234567", "+358 (0)40 1234567", "+358401234567", "00358(0)401234567"),
    ("mailto:anna@example.org", "Anna Meier <anna@example.org>", "anna@example.org"),
    ("urn:uuid:61d06e8e-3a3f-d373", "61D06E8E3A3FD373"), ("0xAB12cd", "ab12cd"),
]  # fmt: skip
TWO_PERSONS = [
    ("1.5", "15"),
    ("1,5", "15"),
    ("-5", "5"),
    ("1.1.1.11", "1.1.11.1"),
    ("AB-1", "AB-11"),
    ("--x--", "y"),
    ("+", "-"),
    ("10.0", "100"),
    ("aB3x", "zQ1a"), ("aea", "aae", "aa"), ("Meier, Anna", "Anna, Karl"), ("0x1g", "1g"),
    ("2001:db8::1", "2001:db8::10", "2001:db8:1::"), ("telma", "ma"), ("tel:", "mailto:"),
    ("Drake", "ake"), ("Dr. 12", "12"), ("Med", "Dr. Anna"),
    ("Ben Roe Jr", "Ben Roe Sr", "Ben Roe"), ("Msida", "ida"), ("Mr. 12", "12"),
    ("\u0434123", "D123"), ("aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:f0"),
]  # fmt: skip


def keys(*ids: str | None) -> list[str | None]:
    return with_person_keys(pl.Series("id", ids, dtype=pl.String), NO_VALUE)[0].to_list()


@pytest.mark.parametrize("ids", ONE_PERSON)
def test_writings_of_one_person_have_one_key(ids: tuple[str, ...]) -> None:
    assert len({*keys(*ids, "x-1")}) == 1 + 1


@pytest.mark.parametrize("ids", TWO_PERSONS)
def test_two_persons_have_two_keys(ids: tuple[str, ...]) -> None:
    assert len({*keys(*ids, "x-1")}) == len(ids) + 1


def test_who_is_joined_is_counted() -> None:
    ids = pl.Series("id", ["AB-001", "AB001", "AB-001", "ab/001", "AB 002", None, "C1"])
    key, [fold] = with_person_keys(ids, NO_VALUE)
    assert key.n_unique() == 3 + 1
    assert (fold.n_writings, fold.n_values, fold.n_cells) == (3, 1, 2)
    assert n_alike([fold]) == 2
    assert with_person_keys(ids.tail(3), NO_VALUE)[1] == ()


@given(
    st.lists(
        st.sampled_from(
            [
                "AB-1",
                "ab1",
                "AB 1",
                "x-2",
                "X2",
                "1,000",
                "1000",
                "-",
                "NA",
                "0x1",
                "::1",
                "0::1",
                "Müller",
                "Mueller",
                "Muller",
                "Meier, A",
                "A Meier",
                "tel:1",
            ]
        ),
        min_size=1,
    )
)
def test_spark_tells_of_the_same_joined_persons_as_a_table(ids: list[str]) -> None:
    names = pl.Series(ids, dtype=pl.String)
    rows = pl.DataFrame({"q": pl.Series(range(len(ids)), dtype=pl.Int64), "id": names})
    counted = rows["id"].value_counts(name="n").sort("id")
    declared = Declared(qis=["q"], id="id")
    _, _, folds = in_meaning(TextTable(Path("t"), rows), declared)
    on_spark = _joined(counted["id"], counted["n"].to_list(), declared)
    assert on_spark == tuple(each for each in folds if each.column == "id")


def test_nobody_is_made_of_signs_or_of_a_word_for_nobody() -> None:
    assert keys("N-A", "n/a", "-", "?", None, "a b") == ["N-A", "n/a", "-", "?", None, "ab"]


@given(st.lists(st.text("aB01 .,+-:'", min_size=1, max_size=6), min_size=1, max_size=8))
def test_a_cell_by_itself_has_the_key_of_its_column(ids: list[str]) -> None:
    found, _ = with_person_keys(pl.Series("id", ids), ())
    if any(not each.isalnum() for each in ids):
        for each, key in zip(ids, found.to_list(), strict=True):
            assert key in {person_key(each.lower()), person_key(each), each}


@given(st.lists(st.text("aB01 .,+-:'\u00e9", min_size=1, max_size=6), min_size=1, max_size=8))
def test_a_key_is_its_own_key(ids: list[str]) -> None:
    once, _ = with_person_keys(pl.Series("id", ids), ())
    assert with_person_keys(once, ())[0].n_unique() == once.n_unique()


@given(
    st.lists(
        st.none()
        | st.text("aB01 .,+-:'=;", max_size=7)
        | st.from_regex(r"[+-]?[01]{1,4}([.,][01]{3}){0,3}0?", fullmatch=True)
        | st.sampled_from(
            [
                "N/A",
                "n-a",
                "?",
                "",
                "-",
                "10.0",
                "01",
                "a-0",
                "a 0",
                "A0",
                "xY1",
                "1Ab",
                "0xA0",
                "a, B",
                "B a",
                "tel:10",
                "+1 (0)0",
                "::1",
                "0:0:0:0:0:0:0:1",
                "x <a@b>",
            ]
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_column_has_the_keys_of_its_cells_and_counts_what_they_join(
    ids: list[str | None],
) -> None:
    key, folds = with_person_keys(pl.Series("id", ids, dtype=pl.String), NO_VALUE)
    expected, joined = naive.with_person_keys("id", ids, NO_VALUE)
    assert (key.to_list(), list(folds)) == (expected, joined)
