"""What is used of numba without being promised by it: named here, so that a change is said."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import anonymizer

PRIVATE = {
    "bytecode.FunctionIdentity": ("_unique_ids",),
    "caching._Cache": (),
    "codegen.get_host_cpu_features": (),
    "compiler.CompileResult": ("_rebuild", "_reduce"),
    "compiler_lock.global_compiler_lock": (),
    "dispatcher.Dispatcher": ("compile", "get_call_template"),
    "registry.cpu_target": (),
    "serialize.dumps": (),
}
"""By the name below `numba.core`: attributes that are used, too."""


@pytest.mark.parametrize("name", PRIVATE)
def test_numba_still_has_what_it_never_promised(name: str) -> None:
    module, _, thing = name.partition(".")
    found = getattr(import_module(f"numba.core.{module}"), thing, None)
    assert found is not None, f"numba.core.{name} is gone: see who imports it in anonymizer"
    for attribute in PRIVATE[name]:
        said = f"numba.core.{name} has no {attribute} any more: see kernel_cache.py"
        assert hasattr(found, attribute), said


def test_nothing_else_of_numba_core_is_imported() -> None:
    used = {
        f"{module}.{name}"
        for path in Path(anonymizer.__file__).parent.rglob("*.py")
        for module, names in re.findall(
            r"^\s*from numba\.core\.(\w+) import (.+?)(?:  #.*)?$", path.read_text(), re.MULTILINE
        )
        for name in names.split(", ")
    }
    assert used == set(PRIVATE)
