"""Categories of an estimator count by what they mean, as those of a table do."""

import numpy as np
import pytest

from anonymizer.estimators import Anonymizer

N = 40


def rows(*illnesses: str) -> np.ndarray:
    ages = np.arange(N) // 2
    return np.array(
        [[age, illnesses[i % len(illnesses)]] for i, age in enumerate(ages.tolist())], object
    )


def test_writings_of_one_value_are_one_sensitive_value() -> None:
    made = Anonymizer("cells", k=4, l=2, categorical=[1], sensitive=[1])
    with pytest.raises(ValueError, match="the promise cannot be kept"):
        made.fit(rows("HIV", "hiv", "\\N"))


def test_a_class_publishes_one_writing_of_a_quasi_identifier() -> None:
    table = rows("Nurse", "nurse", "NURSE ", "nurse", "clerk", "\\N", "?")
    made = Anonymizer("cells", k=4, categorical=[1])
    assert set(made.fit_transform(table)[:, 1]) <= {"nurse", "clerk", "?"}
    assert set(made.transform(table)[:, 1]) <= {"nurse", "clerk", "?"}
