"""One folding everywhere: whoever reads a dirty column finds the same classes of meaning.

Each reader gives the classes of the rows of one column: which rows have one value, and which none.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

import anonymizer
from anonymizer.app.tuning.bench import Trained, bench_of_table
from anonymizer.audit.lone_release import judge_release
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.estimators.frame_columns import code_rows
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.tables import TextTable, read_table
from anonymizer.pipeline.records.join import Joined, as_written
from anonymizer.spark.persons import PersonNumbers
from anonymizer.spark.survey import _values
from tests.pipeline.records.made import Sent, stream

Cells: TypeAlias = Sequence[str | None]
Classes: TypeAlias = tuple[frozenset[frozenset[int]], frozenset[int]]
NO_VALUE = (None, "", " ", "?", "\\N", "NaT", "n/a", "#NV", "\u00a0", "\u200b")
WORDS = (
    "Asthma",
    "Stra\u00dfe",
    "D\u00e9pression",
    "\u0413\u0440\u0438\u043f\u043f",
    "flu",
    "none",
)
DAYS = ("2024-03-03", "2024/3/3", "03.03.2024", "3 Mar 2024", "3. M\u00e4rz 2024", "March 3, 2024",
        "2024\u5e743\u67083\u65e5", "2024-03-04", "04.03.2024", "4 de marzo de 2024")  # fmt: skip
TRUTHS = ("true", "TRUE", "Yes", "1", "ja", "oui", "false", "No", "0", "nein", "non")
COUNTS = ("7", "07", "7.0", "+7", "\u0667", "\uff17", "1000", "1 000", "1\u202f000", "12", "012")
ALIKE = ("cancer", "c\u0430ncer", "\u0441ancer", "CANCER", "\u041c\u043e\u0441\u043a\u0432\u0430",
         "\u041c\u043e\u0441\u043a\u0432a")  # fmt: skip


def _written(word: str) -> st.SearchStrategy[str]:
    forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    cased = [x for form in forms for x in (form, form.upper(), form.lower(), form.title())]
    return st.sampled_from([y for x in cased for y in (x, f" {x}", f"{x}\u00a0", f"{x}\u200b")])


def _columns() -> st.SearchStrategy[list[str | None]]:
    kinds = [st.sampled_from(WORDS).flatmap(_written)]
    kinds += [st.sampled_from(each) for each in (DAYS, TRUTHS, COUNTS, ALIKE)]
    kinds += [st.one_of(kinds)]
    return st.one_of(
        [st.lists(st.one_of(kind, kind, st.sampled_from(NO_VALUE)), min_size=6, max_size=24)
         for kind in kinds]
    )  # fmt: skip


def classes(code: Sequence[int], is_missing: Sequence[bool]) -> Classes:
    rows: dict[int, set[int]] = {}
    for i, (c, none) in enumerate(zip(code, is_missing, strict=True)):
        if not none:
            rows.setdefault(c, set()).add(i)
    return frozenset(map(frozenset, rows.values())), frozenset(np.flatnonzero(is_missing).tolist())


def _table(cells: Cells) -> TextTable:
    rows = {"x": pl.Series(cells, dtype=pl.String), "there": ["a", "b"] * (len(cells) // 2)
            + ["a"] * (len(cells) % 2)}  # fmt: skip
    return TextTable(Path("t"), pl.DataFrame(rows))


def _declared(*, as_id: bool = False) -> Declared:
    return Declared(qis=["there"], sensitive=() if as_id else ["x"], id="x" if as_id else None)


def of_a_frame(cells: Cells) -> Classes:
    coded = code_table(_table(cells), _declared())
    [x] = coded.schema.sensitive
    code = coded.records.sensitive[:, 0]
    return classes(code.tolist(), (code == x.missing).tolist())


def of_a_csv(cells: Cells) -> Classes:
    path = Path("/tmp") / f"one_folding_{np.random.default_rng().integers(2**40)}.csv"  # noqa: S108
    try:
        _table(cells).frame.write_csv(path)
        coded = code_table(read_table(path), _declared())
    finally:
        path.unlink()
    [x] = coded.schema.sensitive
    code = coded.records.sensitive[:, 0]
    return classes(code.tolist(), (code == x.missing).tolist())


def of_an_estimator(cells: Cells) -> Classes:
    rows = _table(cells).frame.to_numpy().astype(object)
    _, coded = code_rows(rows, ["x", "there"], categorical=[0, 1], sensitive=[0])
    [x] = coded.schema.sensitive
    code = coded.records.sensitive[:, 0]
    return classes(code.tolist(), (code == x.missing).tolist())


def of_spark(cells: Cells) -> Classes:
    frame = _table(cells).frame.select("x")
    found = _values(frame.group_by("x").len("count"), _declared(), "x")
    at = found.index_of(frame["x"])
    return classes(found.code[at].tolist(), found.missing[at].tolist())


def _stated(cells: Cells) -> list[str | None]:
    """Return what the codec of records makes of texts of an open domain."""
    [reader] = stream(
        sources=[{"name": "all", "tells": ["x", "type"]}],
        attributes=[
            {"name": "x", "role": "sensitive", "values": "any"},
            {"name": "type", "values": ["a", "b"]},
        ],
    ).readers
    found = []
    for cell in cells:
        part = reader.read(Sent("v", "all", 1.0, {"x": cell, "type": "a"}).payload)
        assert not isinstance(part, Outcome)
        found.append(anonymizer.codecs.record_parts.texts_of(part[1], n_attributes=2)[0])
    return found


def _joined(texts: Cells) -> Joined:
    values, codes = as_written(texts)
    n = len(texts)
    cells: Int32Array = np.array(codes, np.int32)[:, None]
    person = np.arange(n, dtype=np.int32)
    return Joined(
        cells, [b""] * n, person, np.ones(n, np.int64), np.ones((n, 1), bool), {0: values}
    )


def of_a_window(cells: Cells) -> Classes:
    joined = _joined(_stated(cells)).meant()
    code, missing = joined.cells[:, 0], len(joined.values_of[0]) or 1
    return classes(code.tolist(), (code == missing).tolist())


def of_identifiers(cells: Cells) -> Classes:
    coded = code_table(_table(cells), _declared(as_id=True))
    nobody = np.ones(len(cells), bool)
    nobody[coded.row] = False
    person = np.zeros(len(cells), np.int64)
    person[coded.row] = coded.records.person
    return classes(person.tolist(), nobody.tolist())


def of_identifiers_on_spark(cells: Cells) -> Classes:
    counted = pl.Series(cells, dtype=pl.String).drop_nulls().value_counts(name="n")
    ids, counts = counted[:, 0].to_list(), counted[:, 1].to_list()
    numbers = [PersonNumbers.of(ids, counts, _declared(as_id=True))(cell) for cell in cells]
    return classes([each or 0 for each in numbers], [each is None for each in numbers])


def n_of_each_in_tuning(cells: Cells) -> list[int]:
    """Its windows are in an order of their own."""
    bench = bench_of_table(_table(cells), _declared(), Trained(), seed=0)
    code = bench.windows[0].records.sensitive[:, 0]
    return sorted(Counter(code[code != bench.schema.sensitive[0].missing].tolist()).values())


def distinct_in_an_audit(cells: Cells) -> int:
    """As l of one class: all rows agree in what is known of them."""
    one_class = _table(cells).frame.with_columns(there=pl.lit("a"))
    return (
        judge_release(TextTable(Path("t"), one_class), ["there"], ["x"]).sensitive["x"].distinct_l
    )


READERS: list[Callable[[Cells], Classes]] = [
    of_a_csv, of_an_estimator, of_spark, of_a_window, of_identifiers,
    of_identifiers_on_spark,
]  # fmt: skip


@settings(max_examples=15)  # eight readers each
@given(cells=_columns())
def test_every_reader_finds_the_same_classes_of_meaning(cells: list[str | None]) -> None:
    expected = of_a_frame(cells)
    n_of_each = sorted(map(len, expected[0]))
    assert distinct_in_an_audit(cells) == len(n_of_each)
    if n_of_each:  # a table in which nobody states anything is refused
        found = {reader.__name__: reader(cells) for reader in READERS}
        assert found == dict.fromkeys(found, expected)
        assert n_of_each_in_tuning(cells) == n_of_each
