"""A release of anybody's: its k, l and t are those that a naive count finds."""

from collections import defaultdict
from math import exp, log
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.measures import measure
from anonymizer.audit.lone_release import judge_release
from anonymizer.errors import InputError
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.tables import TextTable
from tests.cli.support import anonymizer

LABELS = ["*", "[20, 30[", "[30, 40[", "20-29", "(29.5, 40.0]", "{a|b}", "Western", "", "NA"]


def _table(rows: list[tuple[str, str, str]]) -> TextTable:
    frame = pl.DataFrame(rows, schema=["age", "zip", "illness"], orient="row")
    return TextTable(Path("release.csv"), frame)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(LABELS), st.sampled_from(LABELS[:4]), st.sampled_from(["a", "b", "c"])
        ),
        min_size=1,
        max_size=30,
    )
)
def test_figures_are_those_of_a_naive_count(rows: list[tuple[str, str, str]]) -> None:
    found = judge_release(_table(rows), ["age", "zip"], ["illness"], k_asked=3)
    gone = {"*", "", "NA"}
    kept = [row for row in rows if not (row[0] in gone and row[1] in gone)] or rows
    classes = defaultdict(list)
    for age, postal, illness in kept:
        classes["*" if age in gone else age, "*" if postal in gone else postal].append(illness)
    assert found.n_suppressed == len(rows) - len(kept)
    assert found.n_classes == len(classes)
    assert found.k == min(map(len, classes.values()), default=0)
    assert found.n_alone == sum(len(each) == 1 for each in classes.values())
    assert found.n_below == sum(len(each) for each in classes.values() if len(each) < 3)
    whole = [row[2] for row in kept]
    ls, ts, entropies = [], [], []
    for each in classes.values():
        p = {x: each.count(x) / len(each) for x in "abc"}
        ls.append(len(set(each)))
        ts.append(sum(abs(p[x] - whole.count(x) / len(whole)) for x in "abc") / 2)
        entropies.append(-sum(q * log(q) for q in p.values() if q))
    told = found.sensitive["illness"]
    assert told.distinct_l == min(ls)
    assert told.t == pytest.approx(max(ts))
    assert told.entropy_l == pytest.approx(exp(min(entropies)))
    matching = [
        sum(
            all(x in gone or y in gone or x == y for x, y in zip(one[:2], other[:2], strict=True))
            for other in kept
        )
        for one in kept
    ]
    assert found.k_by_wildcards == min(matching)


@pytest.mark.parametrize(
    "pair",
    [("HIV", "hiv"), ("flu", "NA"), ("flu", ""), ("flu", "*"), ("Yes", "true"),
     ("\u00e9", "e\u0301"), ("flu", "Flu "), ("0", "00"), ("5 mg", "5mg")],
    ids=str,
)  # fmt: skip
def test_two_writings_of_a_value_and_a_missing_one_are_no_diversity(pair: tuple[str, str]) -> None:
    found = judge_release(_table([("a", "1", x) for x in pair * 5]), ["age"], ["illness"])
    assert found.sensitive["illness"].distinct_l == 1


def test_numbers_lie_as_far_apart_as_their_ranks() -> None:
    """The salaries of Li et al., example 3: 3k, 4k, 5k of 3k ... 11k are .375 from the whole."""
    rows = [("x" if i < 3 else "y", "1", str(3 + i)) for i in range(9)]
    found = judge_release(_table(rows), ["age"], ["illness"])
    assert found.sensitive["illness"].ordered
    assert found.sensitive["illness"].t == pytest.approx(0.375)


@pytest.mark.parametrize("outlier", ["", "17000", "100000000"])
def test_t_of_a_release_is_that_of_the_program_that_made_it(outlier: str) -> None:
    pay = [*("1000", "1001", "2000", "17000") * 5, outlier]
    rows = [("ab"[i % 3 == 0], "1", each) for i, each in enumerate(pay)]
    found = judge_release(_table(rows), ["age"], ["illness"]).sensitive["illness"]
    table = TextTable(Path("t"), _table(rows).frame)
    coded = code_table(table, Declared(qis=["age"], sensitive=["illness"]))
    class_of = coded.records.qi[:, 0]
    assert found.t == pytest.approx(measure(coded.records, coded.schema, class_of).t[0])
    assert found.ordered


@given(
    st.lists(
        st.tuples(
            st.sampled_from(LABELS), st.sampled_from(LABELS[:4]), st.sampled_from(["1", "2", "3"])
        ),
        min_size=1,
        max_size=30,
    )
)
def test_who_takes_two_spellings_for_one_label_finds_no_release_worse(
    rows: list[tuple[str, str, str]],
) -> None:
    """What labels cover needs no asking: it can only join classes."""
    alike = [("20-29" if age == "[20, 30[" else age, place, x) for age, place, x in rows]
    apart = judge_release(_table(rows), ["age", "zip"], ["illness"])
    joined = judge_release(_table(alike), ["age", "zip"], ["illness"])
    assert joined.k >= apart.k
    one, other = apart.sensitive["illness"], joined.sensitive["illness"]
    assert other.distinct_l >= one.distinct_l
    assert other.entropy_l >= one.entropy_l - 1e-9
    assert other.t <= one.t + 1e-9
    assert other.share <= one.share + 1e-9


@given(st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_a_row_counts_as_often_as_it_says(n: list[int]) -> None:
    rows = [("a", "1", "x"), ("a", "1", "y"), ("b", "1", "x")]
    written = _table(rows).frame.with_columns(pl.Series("count", n).cast(pl.String))
    table = TextTable(Path("release.csv"), written)
    whole = _table([row for row, each in zip(rows, n, strict=True) for _ in range(each)])
    asked = ["age", "zip"], ["illness"]
    assert judge_release(table, *asked, count="count") == judge_release(whole, *asked)
    with pytest.raises(InputError, match="must hold counts"):
        judge_release(table, ["zip"], ["illness"], count="age")


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InputError, match="agee"):
        judge_release(_table([("a", "b", "c")]), ["agee"], [])


def test_what_a_release_lacks_is_said_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text(
        "age;zip;illness\n[20, 30[;12*;flu\n[20, 30[;12*;gout\n30-39;1**;flu\n*;*;flu\n"
    )
    done = anonymizer("audit", "release", path, "--qi", "age,zip", "--sa", "illness")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 of 3 rows can be told apart from all others by age, zip")
    again = anonymizer("audit", "release", path, "--qi", "age", "--qi", "zip", "--sa", "illness")
    assert again.stdout == done.stdout, "repeated, it names several"
    done = anonymizer("audit", "release", path, "--qi", "age,zip", "--sa", "illness", "-k", "2")
    assert done.returncode == 1
    assert "k is 1, not 2" in done.stderr


def test_a_column_is_one_thing_alone(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text("age,zip,n\n1,2,3\n")
    for more in (("--sa", "age"), ("--count", "age"), ("--sa", "n", "--count", "n")):
        done = anonymizer("audit", "release", path, "--qi", "age,zip", *more)
        assert done.returncode == 2, more
        assert "state it for one thing alone" in done.stderr, more


@pytest.mark.parametrize("last", ["[20-30],total", "total,", "Summe,x", "age,ill"])
def test_a_line_of_totals_or_a_heading_is_nobody(last: str, tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text("age,ill\n" + "[20-30],flu\n[20-30],gout\n" * 2 + last + "\n")
    done = anonymizer("audit", "release", path, "--qi", "age", "--sa", "ill", "-k", "5", "-l", "3")
    assert done.returncode == 1
    assert "k is 4, not 5; ill: l is 2, not 3" in done.stderr
    assert "Nobody's: 1 rows" in done.stdout


@pytest.mark.parametrize("label", ["*", "*****", "{a|b}", "[20-30]", "?", "20-29"])
def test_no_row_with_a_label_is_nobody(label: str) -> None:
    rows = [("[20-30]", "1", "x")] * 20 + [(label, label, "y")]
    assert judge_release(_table(rows), ["age", "zip"], ["illness"]).n_nobodys == 0


def test_columns_beside_are_named_and_fail_if_they_hold_direct_identifiers(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    rows = [f"[20-30],{i % 2},p{i}@x.org,{i % 3}" for i in range(10)]
    path.write_text("\n".join(["age,ill,contact,ward", *rows]) + "\n")
    asked = "audit", "release", path, "--qi", "age", "--sa", "ill", "-k", "5", "-l", "2"
    done = anonymizer(*asked)
    assert done.returncode == 1
    assert "Not judged: contact, ward (neither --qi nor --sa)." in done.stdout
    assert "contact: 10 cells hold e-mail addresses" in done.stderr
    assert anonymizer(*asked, "--keep-anyway", "contact=a hotline").returncode == 0
    done = anonymizer(*asked, "--keep-anyway", "age=why")
    assert done.returncode == 2
    assert "age is no column beside --qi and --sa" in done.stderr


def test_a_column_that_seems_to_say_what_a_label_hides_is_told(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    place = [i * 7 % 12 for i in range(240)]
    rows = [f"[{x // 4 * 4}-{x // 4 * 4 + 3}],T{x},W{x // 4},{i % 3}" for i, x in enumerate(place)]
    path.write_text("\n".join(["zip,town,ward,ill", *rows]) + "\n")
    done = anonymizer("audit", "release", path, "--qi", "zip", "--sa", "ill")
    assert done.returncode == 0
    assert "town tells the label of zip, and more" in done.stdout
    assert "ward tells" not in done.stdout
    assert "ill tells" not in done.stdout
