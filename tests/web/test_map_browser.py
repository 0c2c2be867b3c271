"""The live map in a real Chromium, on a real demo: as its user sees it."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from anonymizer.algorithms.positions.street_hours import Passages
from anonymizer.files.feature_collection import feature_collection
from anonymizer.networks import load_network
from anonymizer.outputs.streets.street_hours import safe_hours, streets_of
from anonymizer.transport.local_brokers import free_port
from tests.end_to_end import ANONYMIZER, running, write_settings
from tests.lanes import some
from tests.web.browsing import Viewer, opened_browser, running_demo, take_picture

N_DEVICES = 150
SMALL = ("--devices", str(N_DEVICES), "--rate", "1", "--network", "city:400")
PHONE = (390, 844)
MODES = ("session", "snapshot", "adka")
NAMES = ("session: lasting groups", "snapshot: fresh groups", "adka: one by one")


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    with running_demo(*SMALL) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Viewer]:
    with opened_browser() as viewer:
        yield viewer


HAS_MODES = f"document.querySelectorAll('#mode-switch input').length === {len(MODES)}"
"""A demo compares when its kernels are compiled."""
COMPILED_S = 300.0
"""Kernels are compiled behind everything else that runs, and beside the tests much runs."""


@pytest.fixture
def viewer(browser: Viewer, demo: str) -> Iterator[Viewer]:
    """Show the map as it opens; at the end nothing may have been complained of or asked of others.

    Opening it takes a second of CPU, so who puts back what it changed leaves it to the next test.
    """
    browser.screen(1360, 880)
    browser.scheme("light")
    if not browser.is_as_opened():
        browser.leave()
        browser.open(demo)
    browser.until(lambda: browser.script(f"return {HAS_MODES}"), within_s=COMPILED_S)
    browser.until(browser.n_regions)
    browser.until(browser.is_painted)
    browser.note_as_opened()
    yield browser
    assert browser.complaints() == []
    asked = browser.asked()
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith(demo)] == []


@pytest.fixture
def away(browser: Viewer) -> None:
    """Leave the page, so that the map is opened anew."""
    browser.leave()


def chosen(viewer: Viewer) -> str:
    return str(viewer.script("return document.getElementById('map').city.chosen?.id ?? ''"))


def pressed(viewer: Viewer, key: str) -> str:
    """Press a key and return which region is chosen then."""
    viewer.press(key)
    return chosen(viewer)


def turn_to(viewer: Viewer, view: str) -> None:
    viewer.element(f"input[value={view}]").click()
    viewer.until(lambda: viewer.is_shown(f"[data-view={view}]"))


def switch_to(viewer: Viewer, mode: str) -> None:
    viewer.element(f"input[value={mode}]").click()
    viewer.until(viewer.n_regions)
    viewer.after()


@pytest.mark.usefixtures("demo")  # its devices form their first groups meanwhile
async def test_a_gateway_with_a_token_asks_for_it_and_a_lost_line_is_taken_up_again(
    browser: Viewer, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    config = write_settings(
        tmp_path / "gateway.toml",
        {
            "network": {"source": "grid:8x8"},
            "broker": {"url": "mqtt://127.0.0.1:1"},  # there is none, and none is needed
            "http": {"port": port, "token": "open sesame", "map": "raw"},
        },
    )
    look = asyncio.to_thread

    def try_token(token: str) -> None:
        browser.until(lambda: browser.is_shown("#door"))
        browser.element("#token").send_keys(token, Keys.ENTER)

    async with running(ANONYMIZER, "serve", "-c", config) as gateway:
        await gateway.logged("listening")
        browser.screen(1360, 880)
        await look(browser.open, url)
        await look(try_token, "open barley")
        await look(browser.until, lambda: "refuses this token" in browser.text("#door-said"))
        await look(try_token, "open sesame")
        await look(browser.until, lambda: browser.state() == "live")
        await look(browser.until, lambda: browser.is_shown("#truth-toggle"))
        assert not browser.is_shown("#comparison")
        assert not browser.is_shown("#mode-switch")
        assert not browser.element("#truth").is_selected()
    await look(browser.until, lambda: browser.state() == "lost")
    async with running(ANONYMIZER, "serve", "-c", config) as gateway:
        await gateway.logged("listening")
        await look(browser.until, lambda: browser.state() == "live")
    browser.script("sessionStorage.clear()")


VIEWS = ("density", "records", "tolls", "speed", "positions")
HOSTILE = (
    "<img src=x onerror=document.title='taken'> <b>Bold & Co</b> \u202e" + "long" * 40
    + " javascript:alert(1) https://x.example/a?b=<i>, me+you@x.example."
)  # fmt: skip


def test_in_each_view_of_a_demo_one_reads_that_nobody_real_takes_part(viewer: Viewer) -> None:
    for view in VIEWS:
        turn_to(viewer, view)
        assert viewer.is_shown("#who"), view
        assert "on the computer of whoever started it" in viewer.text("#who [data-who]")
        assert "nobody takes part" in viewer.text("#opt-out")


@pytest.mark.parametrize("stated", [True, False])
async def test_a_visitor_reads_who_runs_it_and_how_to_take_no_part(
    browser: Viewer, tmp_path: Path, *, stated: bool
) -> None:
    port = free_port()
    config = write_settings(
        tmp_path / "gateway.toml",
        {
            "network": {"source": "grid:8x8"},
            "broker": {"url": "mqtt://127.0.0.1:1"},
            "http": {"port": port} | ({"run_by": HOSTILE, "opt_out": HOSTILE} if stated else {}),
            "device_zones": {} if stated else {"topic": "zones/{device}"},
        },
    )
    look = asyncio.to_thread
    async with running(ANONYMIZER, "serve", "-c", config) as gateway:
        await gateway.logged("listening")
        browser.screen(*PHONE, mobile=True)
        await look(browser.open, f"http://127.0.0.1:{port}/")
        await look(browser.until, lambda: browser.state() == "live")
        who, how = browser.text("#who [data-who]"), browser.text("#opt-out")
        markup = browser.script("return document.querySelectorAll('#who p :not(a)').length")
        links = browser.script(
            "return [...document.querySelectorAll('#who p:first-of-type a')].map((a) => a.href)"
        )
        assert (markup, browser.script("return document.title")) == (0, "anonymizer · live map")
        assert browser.script("return document.documentElement.scrollWidth") == PHONE[0]
        browser.leave()
    if stated:
        assert who == f"Run by: {HOSTILE}"
        assert how == f"To take no part: {HOSTILE}"
        assert links == ["https://x.example/a?b=", "mailto:me+you@x.example"]
    else:
        assert "has not said who they are" in who
        assert "a device can tell this gateway to leave it out" in how
        assert links == []


def test_roads_and_regions_are_drawn_and_the_numbers_live(viewer: Viewer) -> None:
    def labels() -> list[str]:
        charts = viewer.driver.find_elements("css selector", "#charts canvas")
        return [chart.get_attribute("aria-label") or "" for chart in charts]

    def is_complete(said: list[str]) -> bool:
        return bool(flowing.search(said[0])) and " s" in said[1] and " ms" in said[2]

    # Groups publish on a beat, so nothing may go out for some seconds.
    flowing = re.compile(r"in [1-9][\d.]*/s, out [\d.]+/s")
    assert viewer.colours(0) > 1
    viewer.until(lambda: viewer.colours(1), lambda n: n > 5)
    assert viewer.state() == "live"
    viewer.until(lambda: viewer.text("#status-text"), lambda text: f"{N_DEVICES} devices" in text)
    # A moment in which nothing arrives, on a busy machine, is one of the next frames.
    replaced = "replaced by a newer position of the same device"
    turn_to(viewer, "speed")
    said = viewer.until(labels, lambda said: is_complete(said) and replaced in said[5])
    titles = [
        "Positions",
        "Age of information",
        "Arrival to publication",
        "Nodes per region",
        "Devices that share a region",
        "Not published",
    ]
    assert [label.partition(":")[0] for label in said] == titles
    # Reasons are in words, not in the names of metrics.
    assert "superseded" not in said[5]
    before = viewer.frame()
    viewer.after(2)
    assert viewer.frame() > before
    turn_to(viewer, "positions")


def test_the_density_map_says_at_each_junction_what_k_is_and_why(viewer: Viewer) -> None:
    turn_to(viewer, "density")
    columns = ("th", "td:nth-child(2)", "td:nth-child(3)")
    bands, k, junctions = (f"#rule tbody {column}" for column in columns)
    assert viewer.texts(bands) == ["below 4", "below 10", "10 and more"]
    assert viewer.texts(k) == ["10", "5", "5 (paper: 2)"]
    viewer.until(lambda: viewer.texts(junctions), lambda n: n[0].isdigit() and int(n[0]) > 10)
    viewer.until(lambda: viewer.colours(1), lambda n: n > 1)
    viewer.element("#map").send_keys(Keys.ENTER)
    said = viewer.until(lambda: viewer.text("#junction"), lambda said: "so k =" in said)
    found = re.fullmatch(
        r"The junction in the ring: density (\d+), (?:below|at least) (\d+), so k = (\d+)\.", said
    )
    assert found is not None, said
    density, told_k = int(found[1]), int(found[3])
    assert told_k == (10 if density < 4 else 5)
    assert not viewer.is_shown("#chosen")
    turn_to(viewer, "positions")
    viewer.until(viewer.n_regions)


def test_what_was_published_last_of_each_method_can_be_read(viewer: Viewer) -> None:
    turn_to(viewer, "records")
    titles = viewer.until(lambda: viewer.texts("#records h2"), lambda found: len(found) == 4)
    methods = ["(k,d)-anonymity", "(k,l,d)-diversity", "(k,l) cells of a decision tree", "KACA"]
    assert [title.partition(":")[0] for title in titles] == methods

    def vehicles() -> list[str]:
        return viewer.texts("#records article:first-child tbody td:first-child")

    assert all(int(n) >= 10 for n in viewer.until(vehicles, len_is_some))
    named = viewer.script(
        "return [...document.querySelectorAll('#records article')].map((e) =>"
        " [e.querySelector('[role=region]')?.ariaLabel ?? '', e.querySelector('h2').innerText])"
    )
    assert all(label.startswith(title) for label, title in named if label), "else two are alike"
    assert "at least 2 different values" in viewer.text("#records article:first-child p").lower()
    turn_to(viewer, "tolls")
    trucks = viewer.until(lambda: viewer.texts("#toll-rows td:nth-child(3)"), len_is_some)
    assert all(int(n) >= 5 for n in trucks)
    assert "k = 5" in viewer.text("#toll-rows caption")
    viewer.element("input[value=zh]").click()
    viewer.until(lambda: viewer.text("#toll-rows caption"), lambda said: "k-匿名" in said)
    viewer.element("input[value=en]").click()
    turn_to(viewer, "positions")


def len_is_some(found: list[str]) -> bool:
    return len(found) > 0


def test_the_switch_shows_the_same_traffic_cloaked_in_three_ways(viewer: Viewer) -> None:
    assert viewer.texts("#comparison tbody th") == list(NAMES)
    n_in_session, promises = 0, set()
    for mode, name in zip(MODES, NAMES, strict=True):
        switch_to(viewer, mode)
        if mode == "session":
            n_in_session = viewer.n_regions()
        elif mode == "adka":  # each device grows its own region, or groups share theirs
            viewer.until(viewer.n_regions, lambda n: n > 2 * n_in_session)  # noqa: B023  at once
        promises.add(viewer.text("#promise"))
        assert viewer.text("#comparison tr.now th") == name
        assert str(viewer.script("return document.getElementById('map').city.chosen")) == "None"
    assert len(promises) == 3
    viewer.element("input[value=session]").click()


def test_the_difference_is_measured_while_one_looks(viewer: Viewer) -> None:
    def below_k() -> dict[str, str]:
        return dict(zip(MODES, viewer.texts("#comparison td:last-child"), strict=True))

    def is_told(now: dict[str, str]) -> bool:
        # Some devices may still wait for a group.
        return now["adka"] not in {"", "0 of 32"} and now["session"] not in {"", "0 of 0"}

    seen = viewer.until(below_k, is_told)
    assert re.fullmatch(r"0 of [1-9]\d*", seen["session"])


@pytest.mark.parametrize("mode", some(MODES, ["session"]))
def test_a_click_on_a_region_tells_its_k_its_size_and_its_age(viewer: Viewer, mode: str) -> None:
    switch_to(viewer, mode)
    viewer.element("#pause").click()  # it must not move away under the pointer
    # A node of a region that is not below a button.
    x, y = viewer.script(
        "const element = document.getElementById('map'), box = element.getBoundingClientRect();"
        "const c = element.city, size = c.map.getSize();"
        "const at = (v) => c.map.latLngToContainerPoint(c.map.unproject("
        "[c.at.x[v], c.at.y[v]], 0)).round();"
        "const hit = (p) => document.elementFromPoint(box.x + p.x, box.y + p.y);"
        "const p = c.regions.flatMap((r) => [...r.nodes]).map(at).find("
        "(p) => hit(p)?.closest('#map') && !hit(p).closest('.leaflet-control'));"
        "return [Math.round(p.x - size.x / 2), Math.round(p.y - size.y / 2)]"
    )
    element = viewer.element("#map")
    ActionChains(viewer.driver).move_to_element_with_offset(element, x, y).click().perform()
    viewer.until(lambda: chosen(viewer))
    region = viewer.script(
        "const r = document.getElementById('map').city.chosen; return [r.k, r.n, r.nodes.length]"
    )
    k, n, n_nodes = map(int, region)
    assert viewer.text("#r-k") == str(k)
    assert viewer.text("#r-n") == str(n)
    assert viewer.text("#r-size").startswith(f"{n_nodes} nodes, ")
    assert viewer.text("#r-across").endswith("m")
    assert viewer.text("#r-age").endswith("s")
    assert k >= 2
    if mode != "adka":
        assert n >= k
    viewer.element("#let-go").click()
    assert not viewer.is_shown("#chosen")
    viewer.element("#pause").click()
    viewer.element("input[value=session]").click()


def test_true_positions_are_drawn_in_a_demo_and_gone_when_not_asked_for(viewer: Viewer) -> None:
    def truth() -> int:
        counts = viewer.script("return (document.getElementById('map').city.truth ?? [0, []])[1]")
        return int(sum(counts))

    assert viewer.until(truth, lambda n: n == N_DEVICES)
    assert viewer.is_shown("#truth-key")
    viewer.element("#truth").click()
    viewer.after()
    assert truth() == 0
    assert not viewer.is_shown("#truth-key")
    viewer.element("#truth").click()
    assert viewer.until(truth, lambda n: n == N_DEVICES)


def test_areas_can_be_left_out_and_the_whole_network_be_shown_again(viewer: Viewer) -> None:
    painted = "return document.getElementById('map').city.drawsAreas"
    assert viewer.script(painted)
    viewer.element("#areas").click()
    assert not viewer.script(painted)
    viewer.after()
    assert not viewer.element("#areas").is_selected()
    zoom = "return document.getElementById('map').city.map.getZoom()"
    whole = viewer.script(zoom)
    viewer.script("document.getElementById('map').city.map.setZoom(17, {animate: false})")
    viewer.element("#fit").click()
    viewer.until(lambda: viewer.script(zoom), lambda now: now == whole)


def test_the_picture_moves_with_the_map_and_is_painted_anew_where_it_ends(viewer: Viewer) -> None:
    def corner() -> list[int]:
        """Return a corner of the roads' picture; the map is moved relative to it."""
        return list(
            viewer.script(
                "const {x, y} = document.getElementById('map').city.ground._bounds.min;"
                "return [x, y]"
            )
        )

    def move(metric: str) -> None:
        viewer.script(f"document.getElementById('map').city.map.{metric}")

    before = corner()
    move("panBy([40, -20], {animate: false})")
    assert corner() == before
    move("fire('movestart')")
    viewer.after()
    waits = "return document.getElementById('map').city.sheet._stale"
    assert viewer.until(lambda: viewer.script(waits))  # what has arrived is painted afterwards
    move("panBy([700, 0], {animate: false})")
    assert viewer.until(corner, lambda now: now != before)
    viewer.until(lambda: not viewer.script(waits))
    assert viewer.colours(0) > 1
    assert viewer.colours(1) > 1


def test_what_is_seen_can_be_saved_as_a_picture_and_as_geojson(
    viewer: Viewer, tmp_path: Path
) -> None:
    viewer.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    viewer.element("#pause").click()
    viewer.element("#save-geojson").click()
    viewer.element("#save-png").click()
    picture, regions = tmp_path / "map.png", tmp_path / "regions.geojson"
    viewer.until(lambda: picture.is_file() and regions.is_file())
    with Image.open(picture) as image:
        stage = viewer.element("#map").size
        assert image.size == (stage["width"], stage["height"])
        colours = image.convert("RGB").getcolors(maxcolors=1 << 24)
    assert colours is not None
    assert len(colours) > 20
    saved = json.loads(regions.read_text())
    assert len(saved["features"]) == viewer.n_regions()
    about = viewer.script("return document.getElementById('map').city.about.bounds")
    south, west, north, east = about
    for feature in saved["features"]:
        # Published alone: no pseudonym, and no true position.
        assert set(feature["properties"]) == {
            "k",
            "pseudonyms",
            "nodes",
            "seen_for_s",
            "published_s_ago",
            "ended_s_ago",
        }
        lines = feature["geometry"]["coordinates"]
        places = [place for line in lines for place in line]
        assert all(west <= lon <= east and south <= lat <= north for lon, lat in places)
    viewer.element("#pause").click()


def test_pause_holds_everything_still(viewer: Viewer) -> None:
    viewer.element("#pause").click()
    assert viewer.text("#status-text") == "paused"
    held = viewer.frame()
    viewer.script("window.began = performance.now()")
    viewer.until(lambda: viewer.script("return performance.now() - window.began > 1500"))
    assert viewer.frame() == held
    viewer.element("#pause").click()
    viewer.until(viewer.frame, lambda now: now > held)


def test_who_goes_away_and_comes_back_sees_it_live(viewer: Viewer) -> None:
    viewer.script(f"window.left = {viewer.frame()}")
    viewer.driver.get("about:blank")
    viewer.driver.back()
    left = viewer.script("return window.left")
    assert left is not None, "the browser did not keep the page"
    viewer.until(viewer.frame, lambda now: now > left)
    assert viewer.state() == "live"


TARGETS = (
    "#next",
    "#previous",
    "#let-go",
    "#mode-switch label",
    ".leaflet-control-zoom-in",
)


def of_one_moment(viewer: Viewer, selectors: list[str]) -> dict[str, dict[str, float]] | None:
    """Return where these are while a region is chosen, which may end; None if it has."""
    if not chosen(viewer):
        viewer.element("#map").send_keys(Keys.ENTER)
    found: dict[str, dict[str, float]] | None = viewer.script(
        "return document.getElementById('chosen').hidden ? null : Object.fromEntries("
        f"{json.dumps(selectors)}.map((each) =>"
        " [each, document.querySelector(each).getBoundingClientRect().toJSON()]))"
    )
    return found


def test_it_fits_a_phone(viewer: Viewer) -> None:
    viewer.screen(*PHONE, mobile=True)
    viewer.open(viewer.driver.current_url)
    viewer.until(viewer.n_regions)
    assert viewer.script("return document.documentElement.scrollWidth") == PHONE[0]
    stage, panel = viewer.element("#stage").rect, viewer.element("#panel").rect
    assert stage["height"] > PHONE[1] / 3
    assert panel["y"] >= stage["y"] + stage["height"] - 1
    assert panel["y"] + panel["height"] <= PHONE[1] + 1
    assert viewer.element("#legend").size["height"] < stage["height"] / 8, "it is folded"
    rects = viewer.until(lambda: of_one_moment(viewer, ["#chosen", *TARGETS]) or {})
    card = rects["#chosen"]
    assert card["x"] >= 0
    assert card["x"] + card["width"] <= PHONE[0]
    assert card["y"] > stage["y"] + stage["height"] / 2
    for target in TARGETS:
        assert min(rects[target]["width"], rects[target]["height"]) >= 28, target
    assert rects["#next"]["height"] >= 40
    switch_to(viewer, "adka")


def test_it_is_dark_where_the_reader_likes_it_dark(viewer: Viewer) -> None:
    def brightness(selector: str) -> int:
        found = viewer.element(selector).value_of_css_property("background-color")
        return sum(int(part) for part in found.strip("rgba()").split(",")[:3])

    for selector in ("#panel", "#map"):
        viewer.scheme("light")
        bright = brightness(selector)
        viewer.scheme("dark")
        dark = brightness(selector)
        assert dark < 120
        assert bright > 600


def test_the_traffic_of_the_last_hour_is_drawn_where_the_gateway_tells_it(viewer: Viewer) -> None:
    assert not viewer.is_shown("#streets-toggle"), "the demo tells none"
    columns, geometry = safe_hours(
        Passages(np.full(24, 3), np.repeat([0, 9], 12), np.arange(24), np.full(24, 8.0)),
        range(3, 4),
        streets_of(load_network("city:400")),
        k=10,
        every_s=3600.0,
    )
    assert len(geometry) == 2
    told = json.dumps(feature_collection(columns, geometry).decode())
    # As a gateway answers: first that there is no hour yet.
    viewer.script(
        "const real = window.fetch; window.told = null;"
        "window.fetch = (path, options) => path !== '/api/streets' ? real(path, options) :"
        " Promise.resolve(new Response(window.told, {status: window.told ? 200 : 404}));"
        "document.getElementById('streets-toggle').hidden = false"
    )
    drawn = (
        "return Object.values(document.getElementById('map').city.map._layers)"
        ".filter((each) => each.feature).map((each) => each.getTooltip().getContent())"
    )
    viewer.element("#streets").click()
    viewer.until(lambda: viewer.text("#streets-said"), lambda said: "No whole hour" in said)
    viewer.element("#streets").click()
    viewer.script(f"window.told = {told}")
    viewer.element("#streets").click()
    viewer.until(lambda: viewer.text("#streets-said"), lambda said: "published once (k=10)" in said)
    said = viewer.script(drawn)
    assert len(said) == 2
    assert all(re.search(r"^10 to 19 devices on .*, 8\.0 m/s \(7\.", each) for each in said)
    viewer.element("#streets").click()
    assert viewer.script(drawn) == []
    assert viewer.text("#streets-said") == ""


@pytest.mark.usefixtures("away")  # the focus begins where the page does
def test_everything_can_be_done_from_the_keyboard(viewer: Viewer) -> None:
    viewer.press(Keys.TAB)
    assert viewer.focused() == "skip"
    viewer.press(Keys.TAB)
    assert viewer.focused() == "map"
    map_ = "const m = document.getElementById('map').city.map; "
    zoom = map_ + "return [m.getZoom(), m._animatingZoom]"
    centre = map_ + "return [m.getCenter().lat, m.getCenter().lng]"
    far = viewer.script(zoom)[0]
    viewer.press("+")
    # The end of the movement would undo what an arrow moves meanwhile.
    viewer.until(lambda: viewer.script(zoom), lambda now: now[0] > far and not now[1])
    before = viewer.script(centre)
    viewer.press(Keys.ARROW_RIGHT)
    viewer.until(lambda: viewer.script(centre), lambda now: now[1] > before[1])

    viewer.press(Keys.ENTER)
    first = viewer.until(lambda: chosen(viewer))
    assert viewer.is_shown("#chosen")
    # Where there is one region alone, it is its own next one.
    viewer.until(viewer.n_regions, lambda n: n > 1)
    assert viewer.until(lambda: pressed(viewer, "n"), lambda now: now not in {"", first})
    viewer.press("p")
    viewer.press(Keys.ESCAPE)
    assert chosen(viewer) == ""
    assert not viewer.is_shown("#chosen")

    order = []
    for _ in range(12):
        viewer.press(Keys.TAB)
        order.append(viewer.focused())
    assert (
        order.index("positions")
        < order.index("session")
        < order.index("truth")
        < order.index("pause")
    )
    viewer.element("input[value=session]").send_keys(Keys.ARROW_RIGHT)
    viewer.until(lambda: viewer.text("#comparison tr.now th"), lambda name: name == NAMES[1])


@pytest.mark.soak
def test_the_picture_for_the_readme_is_small_enough_to_be_kept(
    viewer: Viewer, tmp_path: Path
) -> None:
    picture = tmp_path / "live-map.png"
    take_picture(viewer, picture, n_frames=1)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < picture.stat().st_size < 300_000
