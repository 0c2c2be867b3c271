"""A program of the project without extras: `python -m tests.slim NAMES PROGRAM ARGUMENTS...`.

NAMES are extras with commas between, PROGRAM is `anonymizer` or `simulator`. An import of a module
of these extras fails as if it were not installed.
"""

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

from anonymizer.extras import EXTRAS


class Blocked(MetaPathFinder):
    """Finds none of some top-level modules, and lets no other finder look for them."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._modules = frozenset(modules)

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002  the protocol's
        target: object = None,  # noqa: ARG002  likewise
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self._modules:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def remove(names: Iterable[str]) -> None:
    """Make the modules of extras fail to import in this process."""
    modules = [module for name in names for module in EXTRAS[name].modules]
    assert not {name.partition(".")[0] for name in sys.modules} & set(modules)
    sys.meta_path.insert(0, Blocked(modules))


if __name__ == "__main__":
    extras, program = sys.argv[1:3]
    remove(extras.split(","))
    sys.argv = [program, *sys.argv[3:]]
    import_module(f"{program}.__main__").main()
