"""Labels cover their members to the last digit, whatever the numbers of a table."""

import contextlib
import random
import re
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from anonymizer.app.anonymize import Plan, anonymize
from anonymizer.app.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.errors import InputError
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import Table

K = 3
PLAN = Plan(model="kd", method="hilbert", promise=Promise(k=K, d=1))
ROWS = 24


def ends(label: str) -> tuple[Decimal, Decimal]:
    """Return the ends of a range, read without any code of the package."""
    found = re.fullmatch(r"\[(-?[0-9.]+)-(-?[0-9.]+)\]", label)
    assert found is not None
    return Decimal(found[1]), Decimal(found[2])


def released(rows: Table, declared: Declared) -> pl.DataFrame:
    """Return the release of a table, which the audit finds in order."""
    made = anonymize(rows, declared, PLAN)
    report = audit_table(
        rows,
        Table(Path("out.csv"), made.publication.frame),
        declared,
        Promise(k=K, d=0),
        auditor_map=Table(Path("map.csv"), made.publication.row_map()),
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
    frame = released(Table(Path("t.csv"), pl.DataFrame([cells])), Declared(qis=["x"]))
    for label, number in zip(frame["x"], numbers, strict=True):
        lo, hi = ends(label)
        assert lo <= number <= hi
        assert {int(lo), int(hi)} <= set(numbers)
    assert frame["x"].n_unique() > 1


def test_labels_of_long_decimals_cover_their_members() -> None:
    texts = [f"0.123456789012345678{i:02}" for i in range(ROWS)]
    frame = released(Table(Path("t.csv"), pl.DataFrame({"x": texts})), Declared(qis=["x"]))
    for label, text in zip(frame["x"], texts, strict=True):
        lo, hi = ends(label)
        assert lo <= Decimal(text) <= hi


def random_table(seed: int) -> Table:
    """Return a table of columns of many types, some cells of which are empty."""
    rng = random.Random(seed)  # noqa: S311  a table of a test
    n = rng.randint(K, 30)

    def cells() -> list[str | None]:
        kind = rng.randrange(9)
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
                )[kind]
            )
        if rng.random() < 0.3:
            made[rng.randrange(n)] = None
        return made

    names = [f"c{i}" for i in range(rng.randint(1, 4))]
    return Table(
        Path("t.csv"), pl.DataFrame({name: pl.Series(cells(), dtype=pl.String) for name in names})
    )


def check(seed: int) -> None:
    rows = random_table(seed)
    with contextlib.suppress(InputError):  # some tables cannot keep the promise
        released(rows, Declared(qis=rows.frame.columns))


@pytest.mark.parametrize("batch", range(4))
def test_no_label_of_a_random_table_lies_outside_its_member(batch: int) -> None:
    for seed in range(batch * 60, (batch + 1) * 60):
        check(seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_label_of_ten_thousand_random_tables_lies_outside_its_member() -> None:
    for seed in range(10_000):
        check(seed)
