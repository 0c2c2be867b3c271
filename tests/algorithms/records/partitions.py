"""Partitions of small tables, good and bad: what is to be measured, checked and attacked."""

import numpy as np
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records
from tests.algorithms.records.made import records


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Records, Int32Array]:
    """Records of `SCHEMA` in classes numbered without a gap, some of them left out."""
    table = draw(records(repeats=draw(st.booleans())))
    drawn = draw(st.lists(st.integers(-1, 4), min_size=table.n, max_size=table.n))
    number = {c: i for i, c in enumerate(sorted(set(drawn) - {-1}))}
    return table, np.array([number.get(c, SUPPRESSED) for c in drawn], np.int32)
