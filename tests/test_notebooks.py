"""What a notebook shows is HTML of its own making: nothing in a table is read as markup."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.client.tables import Table
from anonymizer.notebooks import MOST_ROWS, html_report, html_table

TAGS = {"table", "thead", "tbody", "tr", "th", "td", "p", "h4", "h5"}


class Tags(HTMLParser):
    """The tags of a text, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.text = set[str](), list[str]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ANN401  of the library
        assert not attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


WORDS = st.text(alphabet="<>&'\"/=a img\n", max_size=12)
VALUES = st.recursive(
    WORDS | st.integers() | st.floats() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(head=st.lists(WORDS, min_size=1, max_size=3), said=st.dictionaries(WORDS, VALUES))
def test_nothing_that_is_shown_is_markup(head: list[str], said: dict[str, Any]) -> None:
    for text in (html_table(head, [head], n=1), html_report(head[0], said)):
        assert Tags(text).tags <= TAGS


def test_a_long_table_is_cut_and_says_so() -> None:
    table = Table({"road": [f"<{i}>" for i in range(1_000)], "speed": np.arange(1_000) / 3})
    shown = Tags(table._repr_html_())
    assert "20 of 1,000 rows" in shown.text
    assert "<19>" in shown.text
    assert "<20>" not in shown.text
    assert html_table(["a"], [[1]] * MOST_ROWS, n=MOST_ROWS).count("rows") == 0


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_a_release_shows_its_first_rows_and_no_row_of_the_auditor_s_map(kind: Any) -> None:  # noqa: ANN401  two libraries
    people = kind({"age": list(range(40)), "zip": ["1a", "2b"] * 20})
    release = anonymizer.anonymize(people, qi=["age", "zip"], k=4, max_share=1, max_source_share=1)
    shown = release._repr_html_()
    assert "40 of 40 rows published" in shown
    assert "zip" in shown
    assert "in_row" not in shown
    report = release.report._repr_html_()
    assert Tags(report).tags <= TAGS
    assert re.search(r"<td>gcp: \w+</td><td>0?\.?\d+", report)


def test_reports_of_traces_and_audits_are_shown() -> None:
    ids, nodes = [f"taxi {i}" for i in range(40)], [i % 9 for i in range(40)]
    trace = pl.DataFrame({"device_id": ids, "ts": 0.5, "node": nodes})
    cloaked = anonymizer.cloak(trace, "grid:3x3", region="snapshot")
    shown = cloaked._repr_html_()
    assert "40 of 40 positions published" in shown
    assert "outcomes: published" in shown
    assert "taxi" not in shown
    report = anonymizer.audit_stream(
        cloaked, trace, "grid:3x3", auditor_map=cloaked.auditor_map, mode="snapshot"
    )
    assert "<h5>findings</h5>" in report._repr_html_()
    assert "taxi" not in report._repr_html_()
