"""Ensure that Mosquitto 2 is installed: `python -m tests.mosquitto`, run by `make test`.

It finds Mosquitto, or installs it with apt if it may, or exits with 2 and one line that says how
to install it. No test is skipped because there is no broker.
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
    """Return the version that a Mosquitto prints; () if it prints none."""
    output = subprocess.run([program, "-h"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"mosquitto version (\d+)\.(\d+)", output)
    return tuple(map(int, found.groups())) if found else ()


def good_mosquitto() -> bool:
    """Return whether a recent enough Mosquitto is installed."""
    program = find_mosquitto()
    return program is not None and version_of(program) >= WANTED


def install() -> None:
    """Install Mosquitto as root with apt; else do nothing."""
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
    """Return the exit code: 0 if Mosquitto is installed, else 2."""
    if good_mosquitto():
        return 0
    install()
    if good_mosquitto():
        return 0
    sys.stderr.write(f"{HOW}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
