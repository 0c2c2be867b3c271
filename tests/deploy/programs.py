"""See to it that there are Prometheus and the others: `python -m tests.deploy.programs`.

Run by `make test`: finds them, or installs them with apt where that may be done, or exits 2 with
one line that says how to get them. Nothing is skipped for want of a program.
"""

import os
import shutil
import subprocess
import sys

PACKAGE_OF = {
    "curl": "curl",
    "openssl": "openssl",
    "mosquitto_passwd": "mosquitto",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "systemd-analyze": "systemd",
}


def missing() -> set[str]:
    """Return the Debian packages of the programs that are not on the PATH."""
    return {package for program, package in PACKAGE_OF.items() if shutil.which(program) is None}


def install(packages: set[str]) -> None:
    """Install them, if we are root on a machine with apt; else do nothing."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", *sorted(packages)],
    ):
        subprocess.run([apt, *arguments], env=environment, capture_output=True, check=False)


def main() -> int:
    """Return the exit code: 0 all are there, 2 some are not."""
    if packages := missing():
        install(packages)
    if packages := missing():
        sys.stderr.write(f"tests: needed: apt-get install {' '.join(sorted(packages))}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
