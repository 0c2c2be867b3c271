"""What holds for every test."""

import gc
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import structlog
import typer.main
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# Before numpy is loaded: a pool of BLAS that waits for work keeps a core busy that others need.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# What helpers assert fails with the values that were compared, as in the tests themselves.
pytest.register_assert_rewrite(
    *(f"tests.{path.stem}" for path in Path(__file__).parent.iterdir() if path.stem != "conftest")
)

# `make test-cluster` runs these in an environment of their own, and fails if it finds none.
collect_ignore = [] if find_spec("pyspark") else ["spark"]

# Kernels compile at their first call, and machines are shared: time is no property of a case.
_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The cases of a test follow from its source: chance fails no run, so every run tries the same few.
# Mutants judge them (tests/mutation). `make search` and `make soak` draw many new ones.
_few = settings(_patient, derandomize=True, max_examples=40)
settings.register_profile("anonymizer", _few)
settings.register_profile("search", _patient, print_blob=True, max_examples=200)
# A mutant only has to be noticed: no time is spent on the simplest case that shows it.
settings.register_profile("mutants", _few, phases=[Phase.explicit, Phase.generate])
settings.load_profile("anonymizer")

# Hypothesis takes some values from the source of the modules that are loaded, which depends on what
# a worker ran before: one of them failed a test in one run of many. It has no setting for that.
_constants_of_loaded = providers._get_local_constants
_NO_CONSTANTS = Constants()


def _constants() -> Constants:
    return _NO_CONSTANTS if settings().derandomize else _constants_of_loaded()


providers._get_local_constants = _constants

# Typer makes a command line anew for every call, which takes longer than most of what is called.
typer.main.get_command = cache(typer.main.get_command)

# Files that take or wait longest come first, or one core would wait for the one that begins last.
# Those that compile other kernels than their neighbours take turns: one process compiles a kernel.
_LONG = (
    "test_first_hour.py",
    "test_accidents.py",
    "test_docs.py",
    "test_clock_of_a_process.py",
    "test_modes_under_attack.py",
    "test_local_search.py",
    "test_map_browser.py",
    "test_service.py",
    "test_demo.py",
    "test_tracking_experiment.py",
    "test_service_failures.py",
    "test_whole_files.py",
    "test_overload.py",
    "test_api.py",
    "test_recorder.py",
    "test_child_processes.py",
    "test_multisource_experiment.py",
    "test_extras.py",
    "test_adka_experiment.py",
    "test_stages_of_a_cluster.py",
    "test_own_evidence.py",
    "test_contract.py",
    "test_kernel_cache.py",
    "test_wheel.py",
    "test_unfolding.py",
    "test_notebook.py",
    "test_tuning.py",
    "test_toll.py",
    "test_latency_outside.py",
    "test_all_methods.py",
)
_WAITING = ("gateway", "live_map", "transport", "web", "deploy")
"""Folders whose tests wait for programs and links: side by side, they leave the cores idle."""
_WAITING_ENDS = 0.9
"""Share of the run in which they begin: what waits last keeps everybody waiting."""
_NEW_OBJECTS = 10_000
"""Between two collections of garbage, which take a tenth of the time of tests at Python's 700."""

gc.disable()  # while tests are collected, which makes none; a fifth of that time


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = {name: place for place, name in enumerate(_LONG)}
    real = {item.path for item in items if item.get_closest_marker("data")}  # that is much data
    others = [path for path in dict.fromkeys(item.path for item in items) if path.name not in long]
    others.sort(key=lambda path: path not in real)
    place: dict[Path, tuple[int, float]] = {}
    for waits, share in ((True, _WAITING_ENDS), (False, 1.0)):
        alike = [path for path in others if (path.parent.name in _WAITING) == waits]
        place |= {path: (len(long), share * i / len(alike)) for i, path in enumerate(alike)}
    items.sort(key=lambda item: place.get(item.path) or (long[item.path.name], 0.0))


def pytest_runtest_teardown() -> None:
    """Forget where a test sent the log: its standard error is closed when it has ended."""
    structlog.reset_defaults()


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what is loaded, which stays to the end of the run."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    gc.enable()
