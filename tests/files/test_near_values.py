"""Values that may be writings of one are told, and opposites are not."""

import tracemalloc

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.files.near_values import MOST_VALUES, near_values

NEAR = [
    ["E11: diabetes", "E11"],
    ["E11: diabetes", "diabetes"],
    ["cold, gout", "gout, cold"],
    ["cold;gout", "gout; cold"],
    ["type 2 diabetes", "diabetes type 2", "Diabetes, type 2"],
    ["flu*", "flu"],
    ["flu\u00b9", "flu"],
    ["flu?", "flu"],
    ["flu (sic)", "flu"],
    ["1 - male", "male", "2 - female", "female"],
    ["M", "male", "F", "female"],
    ["pos", "positive", "neg.", "negative"],
    ["cancer", "lung cancer"],
    ["ID: 17", "17"],
    ["<5", "less than 5"],
    ["1-5", "1 to 5"],
    ["stage IV", "stage 4"],
    ["\u56db", "4"],
    ["IV", "4", "V"],
    ["asthma", "astma"],
    ["pneumonia", "pnuemonia"],
    ["tumour", "tumor"],
    ["diarrhea", "diarrhoea"],
    ["headache", "headaches"],
    ["haematoma", "hematoma"],
    ["H.I.V.", "HIV"],
    ["HeartAttack", "heart_attack"],
    ["\u2713", "yes"],
]
FAR = [
    ["flu", "gout", "cold"],
    ["HIV+", "HIV-"],
    ["A", "B", "AB", "O"],
    ["Self-emp-inc", "Self-emp-not-inc"],
    ["Married", "Never-married"],
    ["<5", ">5", "5"],
    ["2020-01-02", "2020-02-01"],
    ["Type 1", "Type 2", "Type 11"],
    ["C", "C++", "C#"],
    ["flu", "Flu", "FLU.", "f\u200blu"],
    ["E11 diabetes", "diabetes (E11)"],
    ["a-b", "b-a"],
    ["Gambia", "Zambia", "Mali", "Malta"],
    ["hypertension", "hypotension"],
    ["10th", "11th", "9th"],
    [">50K", "<=50K"],
    ["\u2605", "\u2605\u2605"],
    ["12 weeks", "12 months"],
    ["male", "female"],
    ["-5", "5"],
    [],
    [""],
]
WORDS = st.sampled_from(["flu", "gout", "not", "type", "E11", "2", "+", "", "severe"])
VALUES = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), unique=True, max_size=8)


@pytest.mark.parametrize("values", NEAR, ids=str)
def test_values_that_may_be_writings_of_one_are_told(values: list[str]) -> None:
    assert near_values(values) > 0
    rows = values * 20
    frame = pl.DataFrame({"age": [30 + i % 5 for i in range(len(rows))], "ill": rows})
    made = anonymizer.anonymize(frame, k=4, l=2, model="kld", qi=["age"], sa=["ill"])
    [told] = [each for each in made.report.warnings if "in another order" in each]
    assert told.startswith("ill: ")
    report = anonymizer.audit_table(made, frame, qi=["age"], sa=["ill"])
    assert told in report.in_doubt


@pytest.mark.parametrize("values", FAR, ids=str)
def test_other_values_opposites_and_what_counts_as_one_are_not(values: list[str]) -> None:
    assert near_values(values) == 0


@given(st.permutations(["flu", "severe", "chronic"]), VALUES)
def test_the_same_words_in_another_order_are_told_in_any_company(
    words: list[str], others: list[str]
) -> None:
    pair = [" ".join(words), ", ".join(reversed(words))]
    assert near_values([*pair, *others]) >= len(pair)


@given(VALUES)
def test_no_more_are_told_than_there_are_whatever_their_order(values: list[str]) -> None:
    assert 0 <= near_values(values) == near_values(values[::-1]) <= len(values)


def test_a_column_of_texts_of_their_own_is_not_compared() -> None:
    assert near_values([f"flu {i}" for i in range(MOST_VALUES)] + ["flu"]) == 0


def test_long_texts_take_memory_as_they_are_long_and_not_as_its_square() -> None:
    values = ["".join(chr(97 + (i * j + j // 7) % 26) for j in range(5_000)) for i in range(10)]
    tracemalloc.start()
    near_values(values)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100 * sum(map(len, values))
