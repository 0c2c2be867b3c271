"""See to it that there is a Mosquitto 2: `python -m tests.mosquitto`, run by `make test`.

Finds one, or installs it with apt where that may be done, or exits 2 with one line that says how
to get it. Nothing is skipped for want of a broker.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from anonymizer.transport.local_brokers import find_mosquitto

WANTED = (2, 0)
HOW = (
    "tests: Mosquitto 2.0 or newer is needed: apt-get install mosquitto, brew install mosquitto, "
    "or https://mosquitto.org/download"
)


def version_of(program: Path) -> tuple[int, ...]:
    """Return the version a Mosquitto prints of itself; () if it prints none."""
    said = subprocess.run([program, "-h"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"mosquitto version (\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()


def good_mosquitto() -> bool:
    """Return whether this machine has one that will do."""
    program = find_mosquitto()
    return program is not None and version_of(program) >= WANTED


def install() -> None:
    """Install it, if we are root on a machine with apt; else do nothing."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", "mosquitto"],
    ):
        subprocess.run([apt, *arguments], env=environment, capture_output=True, check=False)


def main() -> int:
    """Return the exit code: 0 there is one, 2 there is none."""
    if good_mosquitto():
        return 0
    install()
    if good_mosquitto():
        return 0
    sys.stderr.write(f"{HOW}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
