"""The minimality attack in an audit: it needs the original table, and nothing of the method."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer.audit.findings import Finding
from anonymizer.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.files.coded_table import Declared
from anonymizer.files.tables import TextTable

N = 240
L = Promise(k=5, d=0, l=2)


def found(promise: Promise, *, by_chance: bool) -> list[Finding]:
    """What is found where one of each class fits another better: who alone is ill, or anybody."""
    number, place = np.divmod(np.arange(N), 6)
    age = 10 * number + np.array([0, 1, 2, 3, 4, 32])[place]
    who = np.random.default_rng(1).integers(0, 6, N // 6) if by_chance else np.full(N // 6, 5)
    table = pl.DataFrame({"age": age, "ill": np.where(place == who[number], "yes", "no")})
    label = pl.Series([f"[{10 * c}-{10 * c + 32}]" for c in number.tolist()])
    out = pl.DataFrame({"class_id": number, "age": label, "ill": table["ill"]})
    out = out.with_row_index("in_row").sort("class_id", "ill", "in_row")
    numbers = pl.DataFrame({"in_row": out["in_row"], "out_row": range(N)}).sort("in_row")
    report = audit_table(
        TextTable(Path("t.csv"), table),
        TextTable(Path("o.csv"), out.drop("in_row").cast(pl.String)),
        Declared(qis=["age"], sensitive=["ill"]),
        promise,
        auditor_map=TextTable(Path("m.csv"), numbers.cast(pl.String)),
        bands={},
    )
    return [each for each in report.findings if each.attack == "minimality"]


@pytest.mark.parametrize("promise", [L, Promise(k=1, d=0, l=2)])
def test_who_is_in_a_class_for_their_value_is_named(promise: Promise) -> None:
    [finding] = found(promise, by_chance=False)
    assert finding.attribute == "ill"
    assert finding.holds is False
    assert finding.figures["average"] == 1
    assert finding.figures["guess"] == pytest.approx(1 / 6)
    assert not finding.required


def test_who_is_there_by_chance_is_not() -> None:
    [finding] = found(L, by_chance=True)
    assert finding.holds is True


def test_where_nothing_is_promised_of_values_it_is_not_mounted() -> None:
    assert not found(Promise(k=5, d=0, l=0), by_chance=False)
