"""Run the command line with a wall clock that can be put forward or back while it runs.

`python -m tests.app.gateway.shifted_clock FILE ARGUMENTS`: FILE holds the shift in seconds, as a
double; `put` changes it.
"""

import mmap
import struct
import sys
import time
from pathlib import Path


def put(file: Path, shift_s: float) -> None:
    """Let the wall clock be ahead by so many seconds."""
    with file.open("r+b" if file.exists() else "w+b") as content:
        content.write(struct.pack("<d", shift_s))


def _main() -> None:
    with Path(sys.argv[1]).open("rb") as file:
        shift = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    true = time.time
    # Before anything of the package has been imported: some of it keeps the function.
    time.time = lambda: true() + struct.unpack("<d", shift[:8])[0]
    sys.argv = ["anonymizer", *sys.argv[2:]]
    from anonymizer.cli.main import main  # noqa: PLC0415  see above

    main()


if __name__ == "__main__":
    _main()
