"""What holds for every test."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# What helpers assert fails with the values that were compared, as in the tests themselves.
pytest.register_assert_rewrite(
    *(f"tests.{path.stem}" for path in Path(__file__).parent.iterdir() if path.stem != "conftest")
)

# `make test-cluster` runs these in an environment of their own, and fails if it finds none.
_NEEDS = {"spark": "pyspark", "cluster": "quixstreams"}
collect_ignore = [folder for folder, module in _NEEDS.items() if not find_spec(module)]

# Kernels compile at their first call, and machines are shared: time is no property of a case.
_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The cases of a test follow from its source: chance fails no run. `make search` draws new ones.
settings.register_profile("anonymizer", _patient, derandomize=True)
settings.register_profile("search", _patient, print_blob=True)
# A mutant only has to be noticed: no time is spent on the simplest case that shows it.
settings.register_profile(
    "mutants", _patient, derandomize=True, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("anonymizer")
