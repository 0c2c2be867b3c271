"""Labels cover their members to the last digit, whatever the numbers of a table."""

import contextlib
import random
import re
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from anonymizer.algorithms.records.time_columns import LEVELS
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.errors import InputError
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable

K = 3
PLAN = ReleasePlan(model="kd", method="hilbert", promise=Promise(k=K, d=1))
BY_NODE = replace(PLAN, cost="taxonomy")
ROWS = 24


def ends(label: str) -> tuple[Decimal, Decimal]:
    """Return the ends of a range, read without any code of the package."""
    found = re.fullmatch(r"\[(-?[0-9.]+)-(-?[0-9.]+)\]", label)
    assert found is not None
    return Decimal(found[1]), Decimal(found[2])


def released(rows: TextTable, declared: Declared, plan: ReleasePlan = PLAN) -> pl.DataFrame:
    """Return the release of a table, which the audit finds in order."""
    made = anonymize(rows, declared, plan)
    report = audit_table(
        rows,
        TextTable(Path("out.csv"), made.publication.frame),
        declared,
        Promise(k=K, d=0),
        auditor_map=TextTable(Path("map.csv"), made.publication.row_map()),
        bands={},
    )
    assert report.holds, [(f.attack, f.attribute, f.figures) for f in report.failures]
    who = made.publication.row_map().drop_nulls().sort("in_row")
    return made.publication.frame[who["out_row"]]


@pytest.mark.parametrize(
    ("first", "step"),
    [
        (1_700_000_007_010, 7),  # milliseconds
        (350_000_000_000_001, 13),  # IMEI
        (2**53 - 4, 1),
        (2**63 - 40, 1),
        (-(2**63), 3),
    ],
)
@pytest.mark.parametrize("dtype", [pl.Int64, pl.String])
def test_labels_of_whole_numbers_of_64_bits_cover_their_members(
    first: int, step: int, dtype: type[pl.DataType]
) -> None:
    numbers = [first + step * (i % 13) for i in range(ROWS)]
    cells = pl.Series("x", [str(n) for n in numbers] if dtype is pl.String else numbers, dtype)
    frame = released(TextTable(Path("t.csv"), pl.DataFrame([cells])), Declared(qis=["x"]))
    for label, number in zip(frame["x"], numbers, strict=True):
        lo, hi = ends(label)
        assert lo <= number <= hi
        assert {int(lo), int(hi)} <= set(numbers)
    assert frame["x"].n_unique() > 1


def test_labels_of_long_decimals_cover_their_members() -> None:
    texts = [f"0.123456789012345678{i:02}" for i in range(ROWS)]
    frame = released(TextTable(Path("t.csv"), pl.DataFrame({"x": texts})), Declared(qis=["x"]))
    for label, text in zip(frame["x"], texts, strict=True):
        lo, hi = ends(label)
        assert lo <= Decimal(text) <= hi


def test_labels_of_floats_have_no_digits_that_their_members_have_not() -> None:
    numbers = [i * 0.1 for i in range(ROWS)]  # 0.30000000000000004 is one of them
    frame = released(
        TextTable(Path("t.parquet"), pl.DataFrame({"x": numbers})), Declared(qis=["x"])
    )
    written = {Decimal(repr(number)) for number in numbers}
    for label in frame["x"].unique():
        assert set(ends(label)) <= written
        assert len(label) <= len("[0.30000000000000004-0.30000000000000004]")


@pytest.mark.parametrize(
    ("label", "holds"),
    [
        ("[2023-01-03..2023-02-05]", True),
        ("[2023-01-04..2023-02-05]", False),
        ("[2023-01-03..2023-02-04]", False),
        ("[2023-02-05..2023-01-03]", False),
        ("2023", True),
        ("*", True),
        ("2023-01", False),
        ("2024", False),
        ("2023-01-03", False),
    ],
)
def test_the_audit_finds_times_outside_of_their_label(label: str, *, holds: bool) -> None:
    rows = TextTable(
        Path("t.csv"), pl.DataFrame({"x": ["2023-01-03", "2023-02-05", "2023-02-04"] * 2 + LATER})
    )
    declared = Declared(qis=["x"], calendars={"x": LEVELS})
    n, classes = len(rows), [0] * 6 + [1] * 4
    out = pl.DataFrame({"class_id": classes, "x": [label] * 6 + LATER})
    row_map = pl.DataFrame({"in_row": range(n), "out_row": range(n)})
    try:
        report = audit_table(
            rows,
            TextTable(Path("out.csv"), out),
            declared,
            Promise(k=K, d=0),
            auditor_map=TextTable(Path("map.csv"), row_map),
            bands={},
        )
    except InputError:  # it cannot be a release of this table
        assert not holds
    else:
        assert (not report.failures) is holds


LATER = ["2024-01-01"] * 4


def random_table(seed: int) -> TextTable:
    """Return a table of columns of many types, some cells of which are empty."""
    rng = random.Random(seed)  # noqa: S311  a table of a test
    n = rng.randint(K, 30)

    def cells() -> list[str | None]:
        kind = rng.randrange(13)
        base = rng.choice([0, 1, -5, 10**12, 2**53, 2**63 - 99, -(2**63), 10**15])
        width = rng.choice([1, 3, 40, 10**6, 2**40])
        made: list[str | None] = []
        for _ in range(n):
            whole = base + rng.randrange(width)
            made.append(
                (
                    str(whole),
                    f"{rng.uniform(-1, 1) * width:.{rng.randrange(9)}f}",
                    repr(rng.uniform(-1e3, 1e3)),
                    repr(rng.gauss(0, 1) * 10 ** rng.randint(-30, 30)),
                    f"{whole}.{rng.randrange(10**6):06}",
                    rng.choice(["a", "b|c", "d}", "{e", "\\", "[1-2]", "-"]),
                    rng.choice(["1", "2", "x", "007"]),
                    f"2023-01-{rng.randint(1, 28):02} {rng.randrange(24):02}:07",
                    rng.choice(["NA", "nan", "inf", "?", "1,5", "1.000,5", "3"]),
                    f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 29):02}",
                    f"{rng.randint(1, 28)}/{rng.randint(1, 28)}/2023 {rng.randint(1, 12)}:30 pm",
                    f"2023-12-31T23:59:59.{rng.randrange(10**9)}{rng.choice(ZONES)}",
                    rng.choice(["P1DT2H", "PT1.5S", "26:30", "-1 days +23:00:00", "90 min", "2 h"]),
                )[kind]
            )
        if rng.random() < 0.3:
            made[rng.randrange(n)] = None
        return made

    names = [f"c{i}" for i in range(rng.randint(1, 4))]
    return TextTable(
        Path("t.csv"), pl.DataFrame({name: pl.Series(cells(), dtype=pl.String) for name in names})
    )


def check(seed: int) -> None:
    rows = random_table(seed)
    with contextlib.suppress(InputError):  # some tables cannot keep the promise
        released(rows, Declared(qis=rows.frame.columns))
    calendars = dict.fromkeys(rows.frame.columns[: seed % 3], LEVELS)
    with contextlib.suppress(InputError):  # a column of anything but dates and times
        released(rows, Declared(qis=rows.frame.columns, calendars=calendars), BY_NODE)


FIRST = datetime(1999, 12, 30, 22, 58, 59)  # noqa: DTZ001  moments of a table have no zone
ZONES = ("Z", "+05:30", "-1145")
FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%d.%m.%Y", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y", "%I:%M:%S %p")


@pytest.mark.parametrize("form", FORMS)
def test_labels_of_dates_and_times_cover_their_members_in_the_form_of_the_column(form: str) -> None:
    rng = random.Random(form)  # noqa: S311  a table of a test
    moments = [FIRST + timedelta(seconds=rng.randrange(40 * 86_400)) for _ in range(ROWS)]
    moment_of = {m.strftime(form): datetime.strptime(m.strftime(form), form) for m in moments}  # noqa: DTZ007
    cells = [m.strftime(form) for m in moments]
    frame = released(TextTable(Path("t.csv"), pl.DataFrame({"x": cells})), Declared(qis=["x"]))
    for label, cell in zip(frame["x"], cells, strict=True):
        first, last = label.removeprefix("[").removesuffix("]").split("..")
        assert moment_of[first] <= moment_of[cell] <= moment_of[last]
    assert frame["x"].n_unique() > 1


def test_nodes_of_a_calendar_are_the_beginning_of_the_times_below_them() -> None:
    cells = [f"{FIRST + i * timedelta(minutes=17):%Y-%m-%dT%H:%M}" for i in range(ROWS)]
    declared = Declared(qis=["x"], calendars={"x": LEVELS})
    frame = released(TextTable(Path("t.csv"), pl.DataFrame({"x": cells})), declared, BY_NODE)
    nodes = set(frame["x"])
    assert nodes <= {"*", "1999-12", "1999-12-30", "1999-12-31"} | {c[:13] for c in cells}
    assert len(nodes) > 2
    for node, cell in zip(frame["x"], cells, strict=True):
        assert node == "*" or cell.startswith(node)


def test_no_label_of_a_random_table_lies_outside_its_member() -> None:
    for seed in range(20):
        check(seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_label_of_ten_thousand_random_tables_lies_outside_its_member() -> None:
    for seed in range(10_000):
        check(seed)
