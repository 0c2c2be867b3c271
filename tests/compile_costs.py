"""What kernels cost to compile, by the machine code that is made of them.

Seconds depend on the machine and on what else it does. The size of machine code hardly does, and
LLVM takes most of the time for it. It is read from the cache on disk, where it is after the first
run of the tests, so that nothing is compiled in order to be measured. Code of kernels that a kernel
calls is a part of its own.

`python -m tests.compile_costs` stores what it finds: whoever lets kernels grow says so there.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

Sizes: TypeAlias = Mapping[str, Sequence[int]]
"""Bytes of machine code for each signature of each kernel, by its name."""
STORED = Path(__file__).with_suffix(".json")
WORSE, WORSE_IN_ALL = 1.3, 1.1
"""Times what is stored, of one kernel and of all together."""
PATHS = {
    "positions": """
from anonymizer.app.compilation import call_kernels
call_kernels(("session", "snapshot", "adka"))
""",
    "search": """
from anonymizer.algorithms.records.local_search import warm_up
from anonymizer.domain.promises import Promise
from tests.algorithms.records.made import SCHEMA
warm_up(SCHEMA, Promise(k=3, d=2, l=2, max_share=0.9, max_source_share=0.8, entropy_l=1.2, t=0.9))
""",
}
"""What calls the kernels of a gateway's first ticks, and of a table's search."""
_FIND = """
import json, sys
from numba.core.dispatcher import Dispatcher
found = {}
for name, module in list(sys.modules.items()):
    if name.startswith("anonymizer."):
        for kernel in vars(module).values():
            if isinstance(kernel, Dispatcher) and kernel.overloads:
                own, cached = kernel.py_func, kernel._cache
                files = [[each / cached._file(types) for each in cached._readable()]
                         for types in kernel.overloads]
                found[f"{own.__module__}.{own.__qualname__}"] = sorted(
                    next(path for path in some if path.exists()).stat().st_size for some in files)
json.dump(found, sys.stdout)
"""


def sizes_of(path: str) -> dict[str, list[int]]:
    """Return the sizes of the kernels that one of `PATHS` calls, in a process of its own.

    A process that compiles a kernel also has those that it calls, so another one has been before.
    """
    subprocess.run([sys.executable, "-c", PATHS[path]], check=True)
    command = [sys.executable, "-c", PATHS[path] + _FIND]
    found: dict[str, list[int]] = json.loads(subprocess.check_output(command))
    return found


def worse(found: Sizes, stored: Sizes) -> list[str]:
    """Return a sentence for each kernel that costs more than stored, and one for all together.

    Another processor has instructions of other lengths: the kernel in the middle is the measure.
    """
    both = found.keys() & stored.keys()
    here = median(sum(found[name]) / sum(stored[name]) for name in both)
    said = [f"{name}: is not stored" for name in sorted(found.keys() - both)]
    for name in sorted(both):
        n, most = len(found[name]), len(stored[name])
        if n > most:
            said.append(f"{name}: has {n} signatures, not {most}")
        elif sum(found[name]) > WORSE * here * sum(stored[name]):
            said.append(f"{name}: {sum(found[name]):,} bytes, not {sum(stored[name]):,}")
    total, before = (sum(sum(each[name]) for name in both) for each in (found, stored))
    if total > WORSE_IN_ALL * here * before:
        said.append(f"all: {total:,} bytes, not {before:,}")
    return said


def main() -> None:
    """Store the sizes of now."""
    every = {path: dict(sorted(sizes_of(path).items())) for path in PATHS}
    STORED.write_text(json.dumps(every, indent=1) + "\n")


if __name__ == "__main__":
    main()
