"""Parameters of estimators are checked as the options of the functions and commands are."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from anonymizer import SettingsError, anonymize
from anonymizer.estimators import Anonymizer, Minimizer

N = 60
ROWS = pd.DataFrame({"age": np.arange(N) % 9, "pay": np.arange(N) % 7 / 4})
NONSENSE: list[Any] = [True, "5", 5.5, -1, float("nan"), float("inf"), [5], None, 0, "x"]
WHOLE = [each for each in NONSENSE if each != 0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("k", each) for each in [*NONSENSE, 1, np.float64(5)]),
        *(("d", each) for each in WHOLE if each is not None),
        *(("l", each) for each in WHOLE if each is not None),
        *(("max_share", each) for each in (True, "0.5", -1, 2, float("nan"), [0.5])),
        *(("entropy_l", each) for each in (True, "2", 0.5, float("nan"), None)),
        *(("t", each) for each in (True, "0.5", -1, float("nan"))),
        *(("share_price", each) for each in (True, "1", -1, None)),
        ("model", "fog"),
        ("model", ["kd"]),
    ],
    ids=str,
)
def test_what_the_function_refuses_an_estimator_refuses_with_the_same_words(
    name: str, value: object
) -> None:
    asked: dict[str, Any] = {"model": "kd", "method": "hilbert", "k": 5, name: value}
    with pytest.raises(SettingsError) as refused:
        anonymize(ROWS, qi=list(ROWS.columns), **asked)
    estimator = clone(Anonymizer(**asked))  # never before it is fitted, as everywhere there
    with pytest.raises(ValueError, match=name) as also:
        estimator.fit(ROWS)
    assert str(also.value) == str(refused.value)


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8])
def test_a_whole_number_of_any_kind_is_one(kind: type[Any]) -> None:
    numbers: dict[str, Any] = {"k": kind(5), "d": kind(2), "l": kind(1)}
    found = Anonymizer("kd", method="hilbert", **numbers).fit(ROWS)
    assert found.measures_.k >= 5
    model: Any = DecisionTreeClassifier(max_depth=2, random_state=0)
    assert Minimizer(model, k=kind(3), l=kind(1)).fit(ROWS, np.arange(N) % 9 > 4).n_cells_ > 0


@pytest.mark.parametrize("name", ["bands", "min_spread"])
def test_what_is_stated_by_column_is_refused_where_it_is_not(name: str) -> None:
    stated: dict[str, Any] = {name: 5}
    with pytest.raises(TypeError, match="by column"):
        Anonymizer("kd", k=5, **stated).fit(ROWS)


@pytest.mark.parametrize(
    "estimator", [Anonymizer(k=5), Minimizer(DecisionTreeClassifier())], ids=["own", "model"]
)
def test_two_columns_of_one_name_are_refused_by_their_name(estimator: Any) -> None:  # noqa: ANN401
    twice = pd.DataFrame(np.zeros((N, 2)), columns=["age", "age"])
    with pytest.raises(ValueError, match=r"^column age is there twice: rename one of them$"):
        estimator.fit(twice, np.arange(N) % 2)
