"""A real browser on the live map, as its user: `Viewer`. Also makes the picture for the README.

`python -m tests.web.browsing PICTURE.png`, run by `make screenshot`.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.chromium import HOW, arguments, find_chromium
from tests.end_to_end import ANONYMIZER, DEADLINE_S

T = TypeVar("T")

PICTURE = (1360, 880)
_COLOURS = 160
"""Of the picture: without a palette it would be three times the size."""
_CHARTED_FRAMES = 45
_STATE = """
const c = document.getElementById('map')?.city;
const state = JSON.stringify([
  location.href, innerWidth, innerHeight, matchMedia('(prefers-color-scheme: dark)').matches,
  c?.areas, c?.chosen?.id, c?.map.getZoom(), c?.map.getCenter(),
  [...document.querySelectorAll('input:not(#areas)')].map(
    (e) => [e.checked, e.value, e.checkVisibility()]),
]);
"""
"""What a user can change on the page, the position of the map included; `#areas` tells `areas`."""
_POLL_S = 0.25


class Viewer:
    """Somebody at a browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.requests: list[str] = []

    def leave(self) -> None:
        """Leave the page, which may try to reach a gateway that is gone, and forget what it did."""
        self.driver.get("about:blank")
        self.complaints()
        self.asked()
        self.requests.clear()

    def open(self, url: str) -> None:
        """Go to the map."""
        self.driver.get(url)

    def note_as_opened(self) -> None:
        """Let the page remember that it is now as it opens."""
        self.script(f"{_STATE} window.asOpened = state")

    def is_as_opened(self) -> bool:
        """Return whether a user could not tell this page from one that has just been opened."""
        return self.state() == "live" and bool(
            self.script(f"{_STATE} return window.asOpened === state")
        )

    def element(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return what these elements say, all of one moment."""
        return list(
            self.script(
                f"return [...document.querySelectorAll('{selector}')].map((e) => e.innerText)"
            )
        )

    def text(self, selector: str) -> str:
        """Return what the first such element says; nothing if there is none."""
        return next(iter(self.texts(selector)), "")

    def state(self) -> str:
        """Return whether the page is `live` or its line `lost`."""
        return str(self.script("return document.getElementById('status')?.className"))

    def is_shown(self, selector: str) -> bool:
        return bool(
            self.script(f"return document.querySelector('{selector}')?.checkVisibility() ?? false")
        )

    def script(self, code: str) -> Any:  # noqa: ANN401  whatever the script returns
        return self.driver.execute_script(code)

    def log(self, kind: str) -> list[dict[str, Any]]:
        """Return what is in a log of the browser since the last time."""
        entries: list[dict[str, Any]] = self.driver.get_log(kind)  # type: ignore[no-untyped-call]
        return entries

    def until(
        self,
        look: Callable[[], T],
        true: Callable[[T], object] = bool,
        *,
        within_s: float = DEADLINE_S,
    ) -> T:
        """Look again and again until it is true."""
        deadline = time.monotonic() + within_s
        while not true(seen := look()):
            assert time.monotonic() < deadline, f"never came true; last seen: {seen}"
            time.sleep(_POLL_S)
        return seen

    def frame(self) -> int:
        return int(self.script("return document.documentElement.dataset.frame || 0"))

    def after(self, n_frames: int = 2) -> None:
        """Wait for so many frames more."""
        now = self.frame()
        self.until(self.frame, lambda frame: frame >= now + n_frames)

    def n_regions(self) -> int:
        return int(self.script("return document.getElementById('map').city?.regions.length ?? 0"))

    def is_painted(self) -> bool:
        """Return whether the first pictures of the roads and of what is live are there."""
        return bool(
            self.script(
                "const c = document.getElementById('map').city;"
                "return !!(c?.ground._bounds && c.sheet._bounds)"
            )
        )

    def colours(self, sheet: int) -> int:
        """Return how many colours there are on a canvas of the map: 0 the roads, 1 what is live."""
        return int(
            self.script(
                f"const c = document.querySelectorAll('#map canvas')[{sheet}];"
                "const ink = new OffscreenCanvas(c.width, c.height).getContext('2d');"
                "ink.drawImage(c, 0, 0);"
                "const data = ink.getImageData(0, 0, c.width, c.height).data;"
                "const seen = new Set(); let last = 0;"  # most pixels are as the one before
                "for (const pixel of new Uint32Array(data.buffer))"
                " if (pixel !== last && pixel >>> 24) seen.add((last = pixel) & 0xffffff);"
                "return seen.size"
            )
        )

    def press(self, *keys: str) -> None:
        """Type, wherever the focus is."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        """Return what has the focus: its id, else its name and value."""
        return str(
            self.script("const e = document.activeElement; return e.id || e.value || e.className")
        )

    def scheme(self, name: Literal["dark", "light"]) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def screen(self, width: int, height: int, *, mobile: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def complaints(self) -> list[str]:
        """Return what is on the console since the last time."""
        return [entry["message"] for entry in self.log("browser")]

    def asked(self) -> list[str]:
        """Return the addresses of all requests over a network since the page was opened."""
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if urlsplit(url).scheme not in {"data", "blob", "chrome"}:
                    self.requests.append(url)
            elif message["method"] == "Network.webSocketCreated":
                self.requests.append(message["params"]["url"])
        return self.requests


@contextmanager
def opened_browser() -> Iterator[Viewer]:
    """Start a browser without a window or a past."""
    found = find_chromium()
    assert found is not None, HOW
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = found.browser
        for argument in arguments(Path(profile), width=PICTURE[0], height=PICTURE[1]):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(found.driver))
        try:
            viewer = Viewer(driver)
            viewer.screen(*PICTURE)
            yield viewer
        finally:
            driver.quit()


@contextmanager
def running_demo(*options: str) -> Iterator[str]:
    """Run `anonymizer demo`; yield the address of its map, as it prints it."""
    process = subprocess.Popen(
        [ANONYMIZER, "demo", "--headless", *options],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        yield next(line.split()[1] for line in lines if line.startswith("map "))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)


def take_picture(viewer: Viewer, path: Path, *, n_frames: int) -> None:
    """Take the picture for the README: a region chosen, and where everybody truly is."""
    viewer.until(viewer.n_regions)
    viewer.scheme("dark")
    viewer.until(viewer.frame, lambda frame: frame >= n_frames)
    viewer.element("#map").send_keys(Keys.ENTER)
    viewer.script("document.activeElement.blur()")
    viewer.after()
    with Image.open(BytesIO(viewer.driver.get_screenshot_as_png())) as picture:
        picture.convert("RGB").quantize(_COLOURS).save(path, optimize=True)


def main(path: Path) -> None:
    with running_demo() as url, opened_browser() as viewer:
        viewer.open(url)
        take_picture(viewer, path, n_frames=_CHARTED_FRAMES)
    sys.stdout.write(f"{path}: {path.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
