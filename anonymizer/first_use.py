"""Names of a package that are imported when they are first used.

If a package imported all its names, whoever needs one of them would load everything.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def on_first_use(package: str, names_of: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package by names of modules; it names a missing extra."""
    module_of = {
        name: f"{package}.{module}" for module, names in names_of.items() for name in names
    }

    def attribute(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value: object = getattr(import_module(module_of[name]), name)
        except ModuleNotFoundError:
            from anonymizer.extras import any_extra  # noqa: PLC0415  only then

            with any_extra():
                raise
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return attribute
