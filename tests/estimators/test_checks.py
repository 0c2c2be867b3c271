import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from anonymizer.estimators import Anonymizer, Minimizer
from tests.lanes import some

EACH = [
    Anonymizer("cells"),
    Anonymizer("kd", method="best"),
    Anonymizer("kaca"),
    Minimizer(Ridge()),
]
OTHERS = [
    Anonymizer("kd"),
    Anonymizer("kd", method="mondrian"),
    Anonymizer("kld", l=1),
    Anonymizer("kaca", method="kmeans", k=3),
    Minimizer(DecisionTreeClassifier(max_depth=3, random_state=0), target_score=0.8),
]


@pytest.mark.parametrize("estimator", some([*EACH, *OTHERS], EACH), ids=str)
def test_an_estimator_is_what_scikit_learn_says_one_is(estimator: Anonymizer | Minimizer) -> None:
    outcomes = check_estimator(estimator, on_skip=None)
    # Only what needs a library that is not installed, or an environment of its own, is left out.
    assert {each["check_name"] for each in outcomes if each["status"] != "passed"} <= {
        "check_array_api_input",
        "check_dataframe_column_names_consistency",
    }
    assert len(outcomes) > 40
