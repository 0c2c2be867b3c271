"""See to it that there is a Chromium and its driver: `python -m tests.chromium`, by `make test`.

Finds them, or installs them with apt where that may be done, or exits 2 with one line that says
how to get them. Nothing is skipped for want of a browser.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
HOW = (
    "tests: Chromium and its driver are needed: apt-get install chromium chromium-driver, "
    "or brew install --cask chromium chromedriver"
)


class Chromium(NamedTuple):
    """A browser, and the program that drives it."""

    browser: str
    driver: str


def find_chromium() -> Chromium | None:
    """Return the one on the PATH, or None."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return Chromium(browser, driver) if browser and driver else None


def install() -> None:
    """Install it, if we are root on a machine with apt; else do nothing."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", "chromium", "chromium-driver"],
    ):
        subprocess.run([apt, *arguments], env=environment, capture_output=True, check=False)


def main() -> int:
    """Return the exit code: 0 there is one, 2 there is none."""
    if find_chromium() is None:
        install()
    if find_chromium() is not None:
        return 0
    sys.stderr.write(f"{HOW}\n")
    return 2


def arguments(profile: Path, *, width: int, height: int) -> list[str]:
    """Return what Chromium is started with: no window, no past, no requests of its own."""
    return [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
    ]


if __name__ == "__main__":
    sys.exit(main())
