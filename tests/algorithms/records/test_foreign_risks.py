"""Risks and scores beside those of ARX 3.9.2 and sdcMicro's Suda2 (C++, sampled 0.01).

Both ran from their own sources, once, on the columns named here. Figures are as printed.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer

from anonymizer.algorithms.records.risks import risk
from anonymizer.algorithms.records.special_uniques import special_uniques
from anonymizer.domain.arrays import IntArray

THRESHOLD = 0.2
ADULT = ("age", "workclass", "education", "marital-status", "race", "sex")


@dataclass(frozen=True)
class Foreign:
    """What the programs print: average and share at risk, in the table and in its first third.

    `scores` are Suda2's: records with a score, sum of scores, mean and greatest DIS score, and the
    contribution of each column.
    """

    whole: tuple[float, float]
    third: tuple[float, float]
    journalist: tuple[float, float]
    scores: tuple[int, int, float, float]
    contributions: tuple[float, ...]


TUMOURS = Foreign(
    (0.9806678383128296, 1.0),
    (1.0, 1.0),
    (0.9938596491228069, 1.0),
    (548, 2534, 0.2779166, 0.6226084),
    (0.8310971, 0.335438, 0.4605367, 0.4187056),
)
OF_ADULT = Foreign(
    (0.33798102023893617, 0.430085071097325),
    (0.4828634604754008, 0.6010687304219643),
    (0.33639557416994953, 0.42804496038326884),
    (7077, 43535, 0.01135639, 0.599042),
    (0.9309291, 0.5257609, 0.7235328, 0.4835879, 0.3619616, 0.2227633),
)


def _tumours() -> pl.DataFrame:
    loaded = load_breast_cancer()
    digits = {0: 1, 4: 2, 5: 2, 8: 2}
    return pl.DataFrame(
        {str(loaded.feature_names[i]): np.round(loaded.data[:, i], n) for i, n in digits.items()}
    )


def _check(table: pl.DataFrame, foreign: Foreign) -> None:
    def figures(size: IntArray, company: IntArray) -> tuple[float, float]:
        found = risk(size, 1 / company, threshold=THRESHOLD)
        return found.average, found.share_above

    names = table.columns
    size = table.group_by(names).len()["len"].to_numpy()
    assert figures(size, size) == pytest.approx(foreign.whole, rel=1e-13)
    third = (table.height + 1) // 3
    inside = pl.col("row") < third
    both = table.with_row_index("row").group_by(names).agg(F=pl.len(), f=inside.sum())
    both = both.filter(pl.col("f") > 0)
    f, company = both["f"].to_numpy().astype(np.int64), both["F"].to_numpy().astype(np.int64)
    assert figures(f, f) == pytest.approx(foreign.third, rel=1e-13)
    assert figures(f, company) == pytest.approx(foreign.journalist, rel=1e-13)

    codes = [np.unique(table[name].to_numpy(), return_inverse=True)[1] for name in names]
    found = special_uniques(np.column_stack(codes).astype(np.int32), sampled=0.01)
    n, total, mean, greatest = foreign.scores
    assert ((found.score > 0).sum(), found.score.sum()) == (n, total)
    assert (found.dis.mean(), found.dis.max()) == pytest.approx((mean, greatest), rel=1e-6)
    assert found.part.tolist() == pytest.approx(foreign.contributions, rel=1e-6)


def test_a_medical_table_has_the_risks_and_scores_of_other_programs() -> None:
    _check(_tumours(), TUMOURS)


@pytest.mark.data
def test_adult_has_the_risks_and_scores_of_other_programs() -> None:
    folder = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    _check(pl.read_csv(folder / "adult_uci_32561.csv.gz").select(ADULT), OF_ADULT)
