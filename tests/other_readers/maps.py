"""Maps that nobody here wrote show cloaked phones: OwnTracks's and Home Assistant's, unmodified.

`make test-maps` says what it needs. The gateway echoes what it publishes, by the recipes of the
manual as printed. A server of this file stands in for OwnTracks's recorder, and draws the tiles.
With `ANONYMIZER_PICTURES`, a folder, the pictures are kept.
"""

import asyncio
import contextlib
import json
import math
import os
import ssl
import subprocess
import threading
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import numpy as np
import pytest
from PIL import Image, ImageDraw
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from anonymizer.app.gateway.gateway import Gateway
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker, free_port
from tests.app.gateway.started import running
from tests.brokers import Certificates, broker, certificates
from tests.chromium import arguments, find_chromium
from tests.console import ROOT, blocks
from tests.end_to_end import DEADLINE_S, client, eventually, send, witness
from tests.web.browsing import Viewer

__all__ = ["broker", "certificates"]
NETWORK = load_network("city:400")
N_PHONES = 10
SIZE = (900, 700)
_TILE = 256
_COLOURS = 64


def recipe(codec: str) -> dict[str, Any]:
    """Return the settings of the manual that echo in this format, as printed."""
    for block in blocks(ROOT / "docs" / "recipes.md"):
        if block.language == "toml":
            tables = tomllib.loads(block.text)
            if any(
                each.get("codec") == codec and "echo" in each for each in tables.get("inputs", ())
            ):
                return tables
    raise AssertionError(codec)


def says(codec: str, phone: int, node: int) -> tuple[str, bytes]:
    """Return what a phone says that is at a node."""
    lat, lon = float(NETWORK.lat[node]), float(NETWORK.lon[node])
    if codec == "owntracks":
        body = {"_type": "location", "lat": lat, "lon": lon, "acc": 5, "batt": 50 + phone}
        return f"owntracks/person-{phone}/phone", json.dumps(body).encode()
    body = {"latitude": lat, "longitude": lon, "gps_accuracy": 5, "battery_level": 50 + phone}
    return f"location/phone-{phone}", json.dumps(body).encode()


@asynccontextmanager
async def echoes(broker: LocalBroker, codec: str) -> AsyncIterator[dict[str, dict[str, Any]]]:
    """Run a gateway and ten phones; yield the newest echo of each pseudonym, by its topic."""
    tables = recipe(codec) | {
        "network": {"source": "city:400"},
        "broker": {"url": broker.url},
        "adka": {"density_steps": [], "k_values": [3]},
        # One pseudonym for each phone, however long it takes to look at them.
        "session": {"epoch_s": 1e6, "beat_s": 1},
        "presence": {"ttl_s": 2.5e6},
        "http": {"host": ""},
    }
    tree = tables["inputs"][0]["echo"].partition("{")[0]
    at = np.random.default_rng(3).integers(NETWORK.n_nodes, size=N_PHONES)
    newest: dict[str, dict[str, Any]] = {}
    async with (
        running(Gateway(Settings.model_validate(tables), NETWORK)),
        client(broker.url, "phones") as phones,
        witness(broker.url) as watching,
    ):

        async def shown() -> int:
            await send(phones, [says(codec, i, int(at[i])) for i in range(N_PHONES)])
            echoed = [m for m in watching.seen if m.topic.startswith(tree)]
            newest.update({m.topic: json.loads(m.payload) for m in echoed})
            return len(newest)

        await eventually(shown, lambda n: n == N_PHONES)
        yield newest


def tile(zoom: int, x: int, y: int) -> bytes:
    """Return the roads of the network in a tile of the usual web map."""
    scale = _TILE * 2**zoom

    def pixel(lat: float, lon: float) -> tuple[float, float]:
        north = math.asinh(math.tan(math.radians(lat))) / math.pi
        return (lon + 180) / 360 * scale - x * _TILE, (1 - north) / 2 * scale - y * _TILE

    image = Image.new("RGB", (_TILE, _TILE), "#f4f1ea")
    draw = ImageDraw.Draw(image)
    tail = np.repeat(np.arange(NETWORK.n_nodes), np.diff(NETWORK.first_arc_of))
    for a, b in zip(tail.tolist(), NETWORK.neighbour_of.tolist(), strict=True):
        ends = [pixel(float(NETWORK.lat[v]), float(NETWORK.lon[v])) for v in (a, b)]
        draw.line(ends, fill="#c9c2b4", width=2)
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


class Recorder(SimpleHTTPRequestHandler):
    """OwnTracks's frontend, and what it asks its recorder for."""

    newest: dict[str, dict[str, Any]]
    folder: str
    config = """window.owntracks = {config: {
        map: {url: "/tiles/{z}/{x}/{y}.png", attribution: "roads: made up",
              circle: {fillOpacity: 0.03}},
    }};"""

    def __init__(self, *args: Any) -> None:  # noqa: ANN401  of the server
        super().__init__(*args, directory=self.folder)

    def log_message(self, *_: Any) -> None:  # noqa: ANN401
        """Say nothing."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/config/config.js":
            self.answer(self.config.encode(), "text/javascript")
        elif "tiles/" in url.path:
            zoom, x, y = url.path.partition(".png")[0].removesuffix("@2x").split("/")[-3:]
            self.answer(tile(int(zoom), int(x), int(y)), "image/png")
        elif url.path.startswith("/api/0/"):
            answer = self.of_recorder(url.path.removeprefix("/api/0/"), parse_qs(url.query))
            self.answer(json.dumps(answer).encode(), "application/json")
        else:
            super().do_GET()

    def of_recorder(self, method: str, query: dict[str, list[str]]) -> Any:  # noqa: ANN401
        """Return what the recorder does, which calls the levels of a topic user and device."""
        last = [
            body | {"topic": topic, "username": topic.split("/")[1], "device": topic.split("/")[2]}
            for topic, body in self.newest.items()
        ]
        asked = {name: value[0] for name, value in query.items()}
        chosen = [
            each
            for each in last
            if asked.get("user", each["username"]) == each["username"]
            and asked.get("device", each["device"]) == each["device"]
        ]
        if method == "version":
            return {"version": "0"}
        if method == "list":
            level = "device" if "user" in asked else "username"
            return {"results": sorted({each[level] for each in chosen})}
        return chosen if method == "last" else {"count": len(chosen), "data": chosen}

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(
    folder: str, newest: dict[str, dict[str, Any]], *, tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """Serve a folder, what a recorder knows, and tiles; yield the port."""
    handler = type("Handler", (Recorder,), {"folder": folder, "newest": newest})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def browser(profile: Path, *more: str) -> Iterator[Viewer]:
    found = find_chromium()
    assert found is not None
    options = webdriver.ChromeOptions()
    options.binary_location = found.browser
    for argument in (*arguments(profile, width=SIZE[0], height=SIZE[1]), *more):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(found.driver))
    try:
        yield Viewer(driver)
    finally:
        driver.quit()


def keep(viewer: Viewer, name: str) -> None:
    """Keep a picture, if somebody asks for it."""
    folder = os.environ.get("ANONYMIZER_PICTURES")
    if folder:
        image = Image.open(BytesIO(viewer.driver.get_screenshot_as_png())).convert("RGB")
        image.quantize(_COLOURS).save(Path(folder) / name, optimize=True)


def n_on_map(viewer: Viewer, selector: str) -> int:
    """Return how many such elements there are, in shadow trees as well."""
    return int(viewer.script(f"return ({IN_DEPTH})(document, '{selector}').length"))


def loaded(viewer: Viewer) -> bool:
    n = n_on_map(viewer, ".leaflet-tile")
    return n > 0 and n == n_on_map(viewer, ".leaflet-tile-loaded")


IN_DEPTH = """function find(root, selector) {
    const inside = [...root.querySelectorAll("*")].filter((e) => e.shadowRoot);
    return [...root.querySelectorAll(selector),
            ...inside.flatMap((e) => find(e.shadowRoot, selector))];
}"""


@pytest.mark.skipif(not os.environ.get("ANONYMIZER_OWNTRACKS"), reason="needs the frontend")
async def test_the_frontend_of_owntracks_shows_ten_cloaked_phones(
    broker: LocalBroker, tmp_path: Path
) -> None:
    async with echoes(broker, "owntracks") as newest:

        def look() -> list[str]:
            with (
                serving(os.environ["ANONYMIZER_OWNTRACKS"], newest) as port,
                browser(tmp_path / "profile") as viewer,
            ):
                viewer.driver.get(f"http://127.0.0.1:{port}")
                viewer.until(lambda: n_on_map(viewer, ".leaflet-marker-icon") == N_PHONES)
                for _ in range(2):
                    viewer.element(".leaflet-control-zoom-out").click()
                    time.sleep(1)
                viewer.until(lambda: loaded(viewer))
                keep(viewer, "owntracks.png")
                paths = "[...document.querySelectorAll('.leaflet-overlay-pane path')]"
                shapes = viewer.script(f"return {paths}.map((e) => e.getAttribute('fill'))")
                return [fill for fill in shapes if fill not in {"none", "transparent"}]

        circles = await asyncio.to_thread(look)
    assert len(circles) == N_PHONES, "a circle of `acc` metres around each"
    assert len({(body["lat"], body["lon"]) for body in newest.values()}) > 1


OLDER_NAMES = {
    "triggers:": "trigger:",
    "- trigger: mqtt": "- platform: mqtt",
    "actions:": "action:",
    "- action: device_tracker.see": "- service: device_tracker.see",
}
"""What the lines of an automation were called before version 2024.10."""


def automation() -> str:
    """Return the automation of the manual, in the words of the Home Assistant that runs here."""
    [text] = [
        block.text
        for block in blocks(ROOT / "docs" / "recipes.md")
        if "device_tracker.see" in block.text
    ]
    for name, older in OLDER_NAMES.items():
        assert name in text
        text = text.replace(name, older)
    lines = text.splitlines()
    return "\n".join(["automation:", f"  - {lines[0]}", *(f"    {line}" for line in lines[1:])])


class HomeAssistant:
    """A Home Assistant that has been set up as its pages do it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.tokens: dict[str, Any] = {}

    def ask(self, path: str, body: object = None, *, form: bool = False) -> Any:  # noqa: ANN401
        token = self.tokens.get("access_token")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is None:
            found = httpx.get(self.url + path, headers=headers, timeout=DEADLINE_S)
        elif form:
            found = httpx.post(self.url + path, data=body, headers=headers, timeout=DEADLINE_S)  # type: ignore[arg-type]
        else:
            found = httpx.post(self.url + path, json=body, headers=headers, timeout=DEADLINE_S)
        found.raise_for_status()
        return found.json()

    def set_up(self, broker_port: int) -> None:
        client_id = {"client_id": f"{self.url}/"}
        person = {"name": "a", "username": "a", "password": "a", "language": "en"}
        code = self.ask("/api/onboarding/users", client_id | person)["auth_code"]
        grant = {"grant_type": "authorization_code", "code": code}
        self.tokens = self.ask("/auth/token", client_id | grant, form=True)
        with contextlib.suppress(httpx.HTTPStatusError):  # it offers what is not installed here
            self.ask("/api/onboarding/core_config", {})
        self.ask("/api/onboarding/analytics", {})
        self.ask("/api/onboarding/integration", client_id | {"redirect_uri": f"{self.url}/"})
        flows = "/api/config/config_entries/flow"
        flow = self.ask(flows, {"handler": "mqtt"})["flow_id"]
        made = self.ask(f"{flows}/{flow}", {"broker": "127.0.0.1", "port": broker_port})
        assert made["type"] == "create_entry"
        while not any(
            entry["domain"] == "mqtt" and entry["state"] == "loaded"
            for entry in self.ask("/api/config/config_entries/entry")
        ):
            time.sleep(0.5)
        for service in ("turn_off", "turn_on"):  # it has failed to subscribe without a broker
            self.ask(
                f"/api/services/automation/{service}", {"entity_id": "automation.automation_0"}
            )

    def trackers(self) -> list[dict[str, Any]]:
        return [
            each
            for each in self.ask("/api/states")
            if each["entity_id"].startswith("device_tracker.")
        ]


@contextmanager
def home_assistant(folder: Path, broker_port: int) -> Iterator[HomeAssistant]:
    port = free_port()
    # Far away: it does not show who is at home, as a circle that reaches the home makes them.
    middle = f"  latitude: {NETWORK.lat.mean() + 0.2}\n  longitude: {NETWORK.lon.mean()}\n"
    (folder / "configuration.yaml").write_text(
        f"homeassistant:\n  name: Home\n{middle}  elevation: 0\n"
        f"http:\n  server_host: 127.0.0.1\n  server_port: {port}\n"
        f"frontend:\nmap:\ndevice_tracker:\n{automation()}\n"
    )
    hass = Path(os.environ["ANONYMIZER_HOME_ASSISTANT"]) / "bin" / "hass"
    with (folder / "log").open("wb") as log:
        program = subprocess.Popen(
            [hass, "-c", folder, "--skip-pip"], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            found, end_s = HomeAssistant(port), time.monotonic() + 300
            while time.monotonic() < end_s:
                try:
                    if found.ask("/api/onboarding"):
                        break
                except httpx.HTTPError:
                    time.sleep(0.5)
            found.set_up(broker_port)
            yield found
        finally:
            program.terminate()
            program.wait(60)


@pytest.mark.skipif(not os.environ.get("ANONYMIZER_HOME_ASSISTANT"), reason="needs it installed")
async def test_the_map_of_home_assistant_shows_ten_cloaked_phones(
    broker: LocalBroker, certificates: Certificates, tmp_path: Path
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server, certificates.server_key)
    port = urlsplit(broker.url).port or 0
    folder = tmp_path / "config"
    folder.mkdir()
    with home_assistant(folder, port) as home:
        async with echoes(broker, "home_assistant") as newest:

            async def n_trackers() -> int:
                return len(home.trackers())

            await eventually(n_trackers, lambda n: n == N_PHONES)
        trackers, n_shown = await asyncio.to_thread(on_its_map, home, tls, tmp_path)
    assert n_shown == N_PHONES
    told = {(e["attributes"]["latitude"], e["attributes"]["gps_accuracy"]) for e in trackers}
    assert told == {(body["latitude"], body["gps_accuracy"]) for body in newest.values()}
    assert len(told) > 1


def on_its_map(
    home: HomeAssistant, tls: ssl.SSLContext, folder: Path
) -> tuple[list[dict[str, Any]], int]:
    """Return the trackers, and how many of them its map shows."""
    with serving(str(folder), {}, tls=tls) as tiles:
        away = f"--host-resolver-rules=MAP basemaps.cartocdn.com:443 127.0.0.1:{tiles}"
        with browser(folder / "profile", away, "--ignore-certificate-errors") as viewer:
            viewer.driver.get(f"{home.url}/manifest.json")
            kept = home.tokens | {"hassUrl": home.url, "clientId": f"{home.url}/"}
            said = json.dumps(json.dumps(kept | {"expires": 1e14}))
            viewer.script(f"localStorage.setItem('hassTokens', {said})")
            viewer.driver.get(f"{home.url}/map")
            try:
                viewer.until(lambda: n_on_map(viewer, "ha-entity-marker") >= N_PHONES)
                viewer.until(lambda: loaded(viewer))
                time.sleep(2)
            finally:
                keep(viewer, "home-assistant.png")
            return home.trackers(), n_on_map(viewer, "ha-entity-marker")
