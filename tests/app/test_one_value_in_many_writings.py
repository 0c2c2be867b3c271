"""One value in several writings counts once, and two values stay two, for whoever counts."""

import polars as pl
import pytest

import anonymizer
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.files.meanings import meant
from tests.app.test_one_folding import (
    ALIKE,
    COUNTS,
    DAYS,
    TRUTHS,
    Cells,
    Classes,
    classes,
    distinct_in_an_audit,
    of_a_csv,
    of_a_window,
    of_an_estimator,
    of_spark,
)

ONE = [
    DAYS[:7],
    TRUTHS[:6],
    COUNTS[:6],
    ALIKE[:4],
    ALIKE[4:],
    ("SW1A 1AA", "SW1A1AA"),
    ("113 46", "11346"),
    ("A01.1", "A011"),
    ("50 pct", "50%", "50 percent"),
    ("1,000", "1000", "1000.00", "$1,000", "USD 1000", "1000 USD", "$1000"),
    ("<5", "< 5"),
    (">=5", "\u22655", ">= 5"),
    ("10-20", "10 - 20", "[10-20]", "10 -20"),
    ("a;b", "a; b", "a ; b"),
    ("2024-03-01", "20240301", "2024-061"),
    ("COVID-19", "Covid 19", "covid19"),
    ("HIV -", "HIV-"),
    ("True", "1.0", "yes", ".T."),
    ("tak", "1", "true"),
    ("\u306f\u3044", "1", "true"),
    ("\u0434\u0430", "\u0438\u0441\u0442\u0438\u043d\u0430", "1"),
    ("HIV", "hiv", "Hiv"),
    ("\xc9", "E\u0301", "\xe9"),
    ("\uff21\uff22", "AB", "ab"),
    ("a b", "a  b", "a\xa0b", "a\u200b b", "\ufeffa b", "a\tb"),
    ("true", "Yes", "1", "y", "TRUE"),
    ("1", "01", "1.0", "+1", "1.", "\u0661", "\uff11"),
    ("1.5", "1,5", "1.50"),
    ("1234", "1 234", "1\xa0234", "1'234"),
    ("2023-01-03", "2023/1/3", "03.01.2023"),
    ("a-b", "a\u2013b", "A\u2010B"),
    ("flu", "fl\u034fu", "flu\u3164", "\u2800flu"),
    ("\u0393\u03a1\u0399\u03a0\u0397", "\u0393\u03c1\u03af\u03c0\u03b7"),
    ("\u0442\u0451\u043c\u043d\u044b\u0439", "\u0442\u0435\u043c\u043d\u044b\u0439"),
    ("\u05e1\u05e8\u05d8\u05df", "\u05e1\u05b7\u05e8\u05b0\u05d8\u05b8\u05df"),
    (
        "\u0633\u0643\u0631\u064a",
        "\u0633\u0640\u0640\u0643\u0631\u064a",
        "\u0633\u064f\u0643\u0651\u064e\u0631\u064a",
        "\u0633\u06a9\u0631\u06cc",
    ),
    ("Stra\xdfe", "STRASSE"),
    ("flu", "f\u200blu", "flu\u200d"),
    ("bad flu", "bad\xa0flu", "bad  flu", "\xa0bad flu"),
    ("\xe9", "e\u0301"),
    ("flu", "\uff46\uff4c\uff55"),
    ("flu", "\u200fflu", "flu\u202e"),
    ("flu", "FLU", "Flu"),
    ("\ufb02u", "flu"),
    ("h\u0131gh", "high"),
    ("in\xadfluenza", "influenza"),
    ("self-harm", "self\u2010harm", "self\u2013harm", "self harm"),
    ("o'brien", "o\u2019brien", "o`brien", "o\xb4brien"),
    ("flu", "flu."),
    ("bad_flu", "bad flu", "bad-flu"),
    ("ja", "Ja", "wahr"),
    ("oui", "Oui", "vrai", "1"),
    ("depression", "d\xe9pression"),
    ('"flu"', "flu"),
    ("'flu", "flu"),
    ('="flu"', "flu"),
    ("cancer", "c\u0430ncer"),
    ("ABC", "\u0391BC"),
    ("3 Mar 2024", "2024-03-03", "3. M\xe4rz 2024"),
    ("45354", "2024-03-03"),
    ("03/03/2024", "2024-03-03"),
    ("2024-03-03", "2024-03-03 00:00:00", "2024-03-03T00:00"),
    ("2024-03-03T12:00Z", "2024-03-03T13:00+01:00"),
    ("-5", "(5)", "5-"),
    ("5", "+5", "5.", "05", "5.0"),
    ("5 mg", "5mg", "5 MG", "5\xa0mg", "5.0 mg"),
    ("5%", "5 %", "5.0%", "05%"),
    ("$5", "$ 5", "$5.00"),
    ("flu", "flu\x07", "\x1fflu"),
    ("bad flu", "bad\tflu"),
    ("bad\nflu", "bad\r\nflu", "bad flu"),
    ("caf&eacute;", "caf\xe9"),
    ("\u2163", "IV"),
    ("m\xb2", "m2"),
    ("\u2764\ufe0f", "\u2764"),
    ("\xe9tat", "\xc3\xa9tat"),
    ("\xbd", "1/2"),
    ("0.5", "\xbd", "1/2", ".5"),
    ("37.2", "37.20000076293945", "37.20"),
    ("5.25", "5\xbc", "5 1/4"),
    ("10 mw", "10 MW", "10 Mw"),
    ("10 mW", "10 mw", "10"),
    ("10\xb2", "10^2"),
    ("H\u2082O", "H2O"),
    ("37 \xbaC", "37 \xb0C", "37\xb0C", "37 \u2103", "37 \u02daC"),
    ("\u201cflu\u201d", "flu", "\u201eflu\u201c", "\xabflu\xbb"),
    ("o\u02bbbrien", "o'brien", "o\u201bbrien"),
    ("a-b", "a\u2014b", "a \u2014 b"),
    ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', '{ "b": [2], "a": 1 }'),
    ("diabetes (E11)", "diabetes E11", "E11 diabetes", "Diabetes [E11]"),
    ("100k", "100000", "100K", "100.0k"),
    ("<b>flu</b>", "flu", "<span class='x'>flu</span>", "&lt;b&gt;flu&lt;/b&gt;"),
    ("POINT (10 20)", "POINT(10 20)", "point ( 10  20 )", "POINT(10.0 20.00)"),
    ("POLYGON((0 0, 1 0, 1 1))", "POLYGON ((0 0,1 0,1 1))"),
    ("$100k", "$100,000", "100 k$", "USD 100000", "$0.1M", "100K USD", "100 k USD"),
    ("\u20ac1.5M", "1.5 Mio. \u20ac", "1,500,000 EUR", "1.5 million EUR", "1500000 euros"),
    ("12 kg", "12 kilograms", "12kgs", "12000 g", "12000 grams"),
    ("3 yrs", "3 years", "3y", "36 months", "36 mo", "3 Jahre"),
    ("2 days", "48 h", "48 hours", "2d", "2880 min"),
    ("37 \u00b0C", "37C", "37 Celsius", "37 \u2103"),
    ("5 lb", "5 lbs", "5 pounds"),
    ("30 \u5c81", "30\u5c81", "30 years"),
]
TWO = [
    ("A01", "A10"),
    ("5 mg", "50 mg"),
    ("$5m", "5 m", "5 mm"),
    ("$5M", "$5k", "5 km"),
    ("5 years", "5 months", "5 weeks", "5 days"),
    ("$100k", "\u20ac100k"),
    ("37 \u00b0C", "37 \u00b0F"),
    ("1.5", "15"),
    ("O-", "O+"),
    ("C", "C++", "C#"),
    ("a-b", "b-a"),
    ("HIV-", "HIV+"),
    ("<5", ">5"),
    ("<=5", "<5"),
    ("-1", "1"),
    ("Type 1", "Type 11"),
    ("1-23", "12-3"),
    ("$100", "\u20ac100"),
    ("1 1/2", "11/2"),
    ("A1.11", "A11.1"),
    ("0,125", "125"),
    ("2024-03-01", "20240302"),
    ("tak", "nie"),
    ("01067", "98765", "10670"),
    ("B-A 1", "B-A 10", "B-A 100"),
    ("E", "E\u0301", "\xc8"),
    ("\u0434\u043e\u0439\u043a\u0430", "\u0434\u043e\u0438\u043a\u0430"),
    ("v2", "1.1", "1.10", "1.2.3"),
    ("1E5", "100000", "12A4"),
    ("May", "No", "On", "Ny"),
    ("aB3x", "AB3X", "xY9z", "zQ1a"),
    ("yes", "no"),
    ("none", "flu"),
    ("12345678901234567", "12345678901234568"),
    ("\u0418", "\u0419"),
    ("\u304b", "\u304c"),
    ("A+", "A-", "A"),
    ("1.5", "15", "-15"),
    ("5 mg", "5 g"),
    ("$5", "\u20ac5"),
    ("2024-03-03", "2024-03-04"),
    ("a_b@x.org", "a-b@x.org"),
    ("1.1", "1.10", "beta", "rc"),
    ("2024-03-03 00:00", "2024-03-03 12:00"),
    ("10 mW", "10 MW"),
    ("10 mW", "10 MW", "20"),
    ("heater of 5 kB", "heater of 5 kb"),
    ("5 Nm", "5 nm", "5 nM"),
    ("10\xb2", "102", "10\u2082"),
    ("5\xbd", "51/2"),
    ("5\u2460", "51"),
    ("2/4", "1/2"),
    ("O\u2212", "O+"),
    ("none", "Unknown fever", "flu"),
    ("Na", "K", "Ca"),
    ("37.2", "37.20000076293", "37.2000007"),
    ('{"a": 1, "b": 2}', '{"a": 2, "b": 1}'),
    ("diabetes (E11)", "diabetes (E12)", "asthma (E11)"),
    ("100k", "100", "100m", "1000"),
    ("<5", "<5>"),
    ("POINT (1 23)", "POINT (12 3)"),
]
NOBODYS = ["#BEZUG!", "#WERT!", "#N/V", "#NOMBRE?", "#\u00a1REF!", "Err:502", "+inf",
           "not recorded", "UNK", "ohne Angabe", "\u4e0d\u660e", "??",
           "\\N", "NULL", "-", "unknown", "Unknown", "#N/A", "missing", "not available", "k. A.",
           "k.A.", "keine Angabe", "inconnu", "Unbekannt", "\u672a\u77e5",
           "None given", "NOT STATED", "not_stated", "(Unknown)", "<unknown>", "unknown.", "N/a",
           "K/A", "sin dato", "Nicht Bekannt", "[not known]", "not-known", "nicht erhoben",
           "\u043d/\u0434", "...", "\u2026", "----", "____", "????",
           "Sans r\u00e9ponse"]  # fmt: skip


def of_a_column(cells: Cells) -> Classes:
    """A word for no value that stands alone is left to who reads the column."""
    column = pl.Series("x", cells, dtype=pl.String)
    shown = meant(column, markers=NO_VALUE).of(column).to_list()
    return classes([-1 if each is None else shown.index(each) for each in shown],
                   [each is None for each in shown])  # fmt: skip


READERS = [of_a_column, of_a_csv, of_an_estimator, of_spark, of_a_window]


@pytest.mark.parametrize("cells", ONE, ids=str)
def test_writings_of_one_value_are_one(cells: Cells) -> None:
    found = {reader.__name__: len(reader(cells)[0]) for reader in READERS}
    assert found == dict.fromkeys(found, 1)
    assert distinct_in_an_audit(cells) == 1


@pytest.mark.parametrize("cells", TWO, ids=str)
def test_values_that_look_alike_stay_apart_and_as_they_are_written(cells: Cells) -> None:
    found = {reader.__name__: len(reader(cells)[0]) for reader in READERS}
    assert found == dict.fromkeys(found, len(cells))
    assert distinct_in_an_audit(cells) == len(cells)
    if "20240302" not in cells:  # days are published in one form
        column = pl.Series("x", cells)
        assert meant(column, markers=NO_VALUE).of(column).to_list() == [*cells]


@pytest.mark.parametrize("word", NOBODYS)
def test_no_value_is_none(word: str) -> None:
    cells = ["flu", word, "flu"]
    found = {reader.__name__: reader(cells) for reader in READERS if reader is not of_a_column}
    assert found == dict.fromkeys(found, (frozenset({frozenset({0, 2})}), frozenset({1})))
    assert distinct_in_an_audit(cells) == 1


def test_floats_of_32_bits_beside_those_of_64_are_one_value_each() -> None:
    values = [37.2, 0.1, 60.17, 5.0, 1e-7]
    column = pl.Series("x", [*values, *values, *pl.Series(values, dtype=pl.Float32).to_list()])
    assert column.n_unique() == 9
    assert meant(column, markers=NO_VALUE).of(column).to_list() == values * 3


def test_a_vehicle_with_three_plates_is_one_and_its_number_is_told() -> None:
    plates = [form.format(100 + i) for i in range(20) for form in ("B-AB {}", "B AB {}", "BAB{}")]
    table = pl.DataFrame({"plate": plates, "speed": [50 + i // 6 for i in range(60)]})
    made = anonymizer.anonymize(
        table, qi=["speed"], id="plate", k=6, d=1, max_share=1, method="hilbert"
    )
    assert (made.frame.height, made.report.k) == (20, 6)
    assert any("40 identifiers differ" in each for each in made.report.warnings)
    assert "plate: 60 writings count as 20 values" in str(made.report.folds[0])


def test_a_word_that_may_be_no_value_is_told() -> None:
    table = pl.DataFrame({"age": range(40), "ill": ["flu", "refused"] * 20})
    made = anonymizer.anonymize(
        table, qi=["age"], sa="ill", k=5, l=2, model="kld", method="hilbert"
    )
    assert any(each.startswith("ill: 20 cells may say") for each in made.report.warnings)
