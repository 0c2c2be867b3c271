"""Kernels cost no more to compile than they did: whoever lets one grow says so in the stored sizes.

Stored by `python -m tests.compile_costs`.
"""

import json

import pytest

from tests.compile_costs import PATHS, STORED, sizes_of, worse

FOUND = {"a": [1000], "b": [2000, 2000], "c": [3000], "d": [500], "e": [800]}


@pytest.mark.compiled
@pytest.mark.parametrize("path", PATHS)
def test_no_kernel_has_more_signatures_or_much_more_machine_code_than_is_stored(path: str) -> None:
    assert worse(sizes_of(path), json.loads(STORED.read_text())[path]) == []


def test_a_kernel_that_grows_is_named_on_any_processor() -> None:
    for longer in (0.8, 1.0, 1.5):
        here = {name: [round(longer * n) for n in sizes] for name, sizes in FOUND.items()}
        assert worse(here, FOUND) == []
        for name, sizes in here.items():
            [grown, *more] = worse(here | {name: [round(1.4 * n) for n in sizes]}, FOUND)
            assert grown.startswith(f"{name}: ")
            assert all(each.startswith("all: ") for each in more)
            [more_often] = worse(here | {name: [*sizes, 0]}, FOUND)
            assert "signatures" in more_often
        assert worse(here | {"f": [1]}, FOUND) == ["f: is not stored"]


def test_many_kernels_that_grow_a_little_are_noticed_together() -> None:
    grown = FOUND | {name: [round(1.29 * n) for n in FOUND[name]] for name in "bc"}
    assert [each.split(":")[0] for each in worse(grown, FOUND)] == ["all"]
