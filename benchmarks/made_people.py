"""Made people whose attributes depend on each other, in any number of rows."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray


def made(n: int, *, seed: int = 1) -> pl.DataFrame:
    """Return n rows of people whose attributes depend on each other."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(6, 7, n), 0, 99).astype(int)
    school = np.clip(rng.normal(12, 3, n) + (age > 25), 4, 20).astype(int)
    region = np.minimum(rng.geometric(0.12, n), 30)
    income = (np.exp(rng.normal(6 + school / 10, 0.5, n)) / 50).astype(int) * 50
    columns = {
        "age": age,
        "school": school,
        "region": _named("r", region),
        "income": np.minimum(income, 20_000),
        "sex": _among("fm", rng.choice(2, n)),
        "children": np.minimum(rng.poisson(np.clip((age - 20) / 20, 0, 2)), 6),
        "job": _named("j", (school + rng.integers(0, 6, n)) % 17),
        "rooms": np.minimum(1 + rng.poisson(2, n), 9),
        "married": rng.random(n) < np.clip((age - 18) / 40, 0, 0.8),
        "car": _among(("none", "small", "large", "van"), rng.choice(4, n, p=[0.3, 0.4, 0.2, 0.1])),
        "commute": np.minimum((rng.gamma(2, 12, n)).astype(int), 120),
        "illness": _named("i", np.minimum(rng.geometric(0.4, n) + age // 40, 8)),
    }
    return pl.DataFrame(columns)


def _named(letter: str, numbers: NDArray[np.int64]) -> pl.Series:
    """Return names such as `r7`; a list of them would take more memory than a release."""
    return letter + pl.Series(numbers).cast(pl.String)


def _among(names: Sequence[str], numbers: NDArray[np.int64]) -> pl.Series:
    return pl.Series(list(names)).gather(numbers)
