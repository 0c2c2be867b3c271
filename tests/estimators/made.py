"""Small tables for the tests of estimators."""

import numpy as np
import polars as pl
from hypothesis import strategies as st

JOBS = ["baker", "clerk", "driver", "?"]
ILLS = ["flu", "gout", "mumps"]


def frame(n: int = 60, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 40, n),
            "job": rng.choice(JOBS, n),
            "pay": rng.normal(30, 5, n).round(1),
            "ill": rng.choice(ILLS, n),
            "note": [f"n{i}" for i in range(n)],
        }
    )


@st.composite
def tables(draw: st.DrawFn) -> list[list[object]]:
    """Rows of age, job, ill."""
    row = st.tuples(st.integers(0, 4), st.sampled_from(JOBS), st.sampled_from(ILLS))
    return [list(each) for each in draw(st.lists(row, min_size=2, max_size=40))]
