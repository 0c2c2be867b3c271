"""What holds for every test."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# What helpers assert fails with the values that were compared, as in the tests themselves.
pytest.register_assert_rewrite(
    *(f"tests.{path.stem}" for path in Path(__file__).parent.iterdir() if path.stem != "conftest")
)

# `make test-cluster` runs these in an environment of their own, and fails if it finds none.
_NEEDS = {"spark": "pyspark", "cluster": "quixstreams"}
collect_ignore = [folder for folder, module in _NEEDS.items() if not find_spec(module)]

# Kernels compile at their first call, and machines are shared: time is no property of a case.
settings.register_profile("anonymizer", deadline=None)
# A mutant only has to be noticed: no time is spent on the simplest case that shows it.
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("anonymizer")
