"""The live map in a real Chromium, on a real demo: as its user sees it."""

import asyncio
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.end_to_end import ANONYMIZER, running, write_settings
from tests.web.browsing import Onlooker, onlooker, running_demo, take_picture

SMALL = ("--devices", "250", "--rate", "2", "--network", "city:400")
PHONE = (390, 844)
MODES = ("session", "snapshot", "bfs")


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    with running_demo(*SMALL) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Onlooker]:
    with onlooker() as looker:
        yield looker


@pytest.fixture
def looker(browser: Onlooker, demo: str) -> Iterator[Onlooker]:
    """Open the map anew; at the end nothing may have been complained of or asked of others."""
    browser.screen(1360, 880)
    browser.scheme("light")
    browser.requests.clear()
    browser.open(demo)
    browser.until(browser.n_regions)
    yield browser
    assert browser.complaints() == []
    asked = browser.asked()
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith(demo)] == []


def chosen(looker: Onlooker) -> str:
    return str(looker.script("return document.getElementById('map').city.chosen?.id ?? ''"))


def switch_to(looker: Onlooker, mode: str) -> None:
    looker.element(f"input[value={mode}]").click()
    looker.until(looker.n_regions)
    looker.after()


def test_roads_and_regions_are_drawn_and_the_numbers_live(looker: Onlooker) -> None:
    looker.after(6)
    assert looker.colours(0) > 1
    assert looker.colours(1) > 5
    assert looker.state() == "live"
    assert "250 devices" in looker.text("#status-text")
    charts = looker.driver.find_elements("css selector", "#charts canvas")
    said = [chart.get_attribute("aria-label") or "" for chart in charts]
    titles = ["Positions", "Latency", "Junctions a region", "Hidden among", "Not published"]
    assert [label.partition(":")[0] for label in said] == titles
    assert re.search(r"in [1-9]\d*/s, out [1-9]\d*/s", said[0])
    assert " ms" in said[1]
    before = looker.frame()
    looker.after(2)
    assert looker.frame() > before


def test_the_switch_shows_the_same_traffic_cloaked_in_three_ways(looker: Onlooker) -> None:
    assert looker.texts("#comparison tbody th") == list(MODES)
    n_regions, promises = {}, set()
    for mode in MODES:
        switch_to(looker, mode)
        n_regions[mode] = looker.n_regions()
        promises.add(looker.text("#promise"))
        assert looker.text("#comparison tr.now th") == mode
        assert str(looker.script("return document.getElementById('map').city.chosen")) == "None"
    # Each device grows its own region, or groups share theirs.
    assert n_regions["bfs"] > 2 * n_regions["session"]
    assert len(promises) == 3


def test_the_difference_is_measured_while_one_looks(looker: Onlooker) -> None:
    def below_k() -> dict[str, str]:
        return dict(zip(MODES, looker.texts("#comparison td:last-child"), strict=True))

    seen = looker.until(below_k, lambda now: now["bfs"] not in {"", "0 of 32"})
    assert seen["session"] == "0 of 32"


@pytest.mark.parametrize("mode", MODES)
def test_a_click_on_a_region_tells_its_k_its_size_and_its_age(looker: Onlooker, mode: str) -> None:
    switch_to(looker, mode)
    looker.element("#pause").click()  # it must not move away under the pointer
    x, y = looker.script(
        "const c = document.getElementById('map').city, r = c.regions[0];"
        "const p = c.map.latLngToContainerPoint(c.map.unproject("
        "[c.at.x[r.nodes[0]], c.at.y[r.nodes[0]]], 0)), size = c.map.getSize();"
        "return [Math.round(p.x - size.x / 2), Math.round(p.y - size.y / 2)]"
    )
    element = looker.element("#map")
    ActionChains(looker.driver).move_to_element_with_offset(element, x, y).click().perform()
    looker.until(lambda: chosen(looker))
    region = looker.script(
        "const r = document.getElementById('map').city.chosen; return [r.k, r.n, r.nodes.length]"
    )
    k, n, n_nodes = map(int, region)
    assert looker.text("#r-k") == str(k)
    assert looker.text("#r-n") == str(n)
    assert looker.text("#r-size").startswith(f"{n_nodes} junctions, ")
    assert looker.text("#r-across").endswith("m")
    assert looker.text("#r-age").endswith("s")
    assert k >= 2
    if mode != "bfs":
        assert n >= k
    looker.element("#let-go").click()
    assert not looker.is_shown("#chosen")


def test_true_positions_are_drawn_when_asked_for_and_gone_when_not(looker: Onlooker) -> None:
    def truth() -> int:
        counts = looker.script("return (document.getElementById('map').city.truth ?? [0, []])[1]")
        return int(sum(counts))

    assert truth() == 0
    assert not looker.is_shown("#truth-key")
    looker.element("#truth").click()
    assert looker.until(truth, lambda n: n == 250)
    assert looker.is_shown("#truth-key")
    looker.element("#truth").click()
    looker.after()
    assert truth() == 0


def test_pause_holds_everything_still(looker: Onlooker) -> None:
    looker.element("#pause").click()
    assert looker.text("#status-text") == "paused"
    held = looker.frame()
    looker.script("window.began = performance.now()")
    looker.until(lambda: looker.script("return performance.now() - window.began > 1500"))
    assert looker.frame() == held
    looker.element("#pause").click()
    looker.until(looker.frame, lambda now: now > held)


def test_everything_can_be_done_from_the_keyboard(looker: Onlooker) -> None:
    looker.press(Keys.TAB)
    assert looker.focused() == "skip"
    looker.press(Keys.TAB)
    assert looker.focused() == "map"
    centre = "const c = document.getElementById('map').city.map.getCenter(); return [c.lat, c.lng]"
    before, zoom = looker.script(centre), "return document.getElementById('map').city.map.getZoom()"
    looker.press("+")
    closer = looker.script(zoom)
    looker.press(Keys.ARROW_RIGHT)
    looker.until(lambda: looker.script(centre), lambda now: now[1] > before[1])
    assert looker.until(lambda: looker.script(zoom), lambda now: now >= closer)

    looker.press(Keys.ENTER)
    first = looker.until(lambda: chosen(looker))
    assert looker.is_shown("#chosen")
    looker.press("n")
    assert looker.until(lambda: chosen(looker), lambda now: now != first)
    looker.press("p")
    looker.press(Keys.ESCAPE)
    assert chosen(looker) == ""
    assert not looker.is_shown("#chosen")

    order = []
    for _ in range(8):
        looker.press(Keys.TAB)
        order.append(looker.focused())
    assert order.index("session") < order.index("truth") < order.index("pause")
    looker.element("input[value=session]").send_keys(Keys.ARROW_RIGHT)
    looker.until(lambda: looker.text("#comparison tr.now th"), lambda mode: mode == "snapshot")


def test_it_fits_a_phone(looker: Onlooker) -> None:
    looker.screen(*PHONE, mobile=True)
    looker.open(looker.driver.current_url)
    looker.until(looker.n_regions)
    assert looker.script("return document.documentElement.scrollWidth") == PHONE[0]
    stage, panel = looker.element("#stage").rect, looker.element("#panel").rect
    assert stage["height"] > PHONE[1] / 3
    assert panel["y"] >= stage["y"] + stage["height"] - 1
    assert panel["y"] + panel["height"] <= PHONE[1] + 1
    looker.element("#map").send_keys(Keys.ENTER)
    looker.until(lambda: chosen(looker))
    card = looker.element("#chosen").rect
    assert card["x"] >= 0
    assert card["x"] + card["width"] <= PHONE[0]
    assert card["y"] > stage["y"] + stage["height"] / 2
    for target in (
        "#next",
        "#previous",
        "#let-go",
        "#mode-switch label",
        ".leaflet-control-zoom-in",
    ):
        size = looker.element(target).size
        assert min(size["width"], size["height"]) >= 28, target
    assert looker.element("#next").size["height"] >= 40
    switch_to(looker, "bfs")


def test_it_is_dark_where_the_reader_likes_it_dark(looker: Onlooker) -> None:
    def brightness(selector: str) -> int:
        found = looker.element(selector).value_of_css_property("background-color")
        return sum(int(part) for part in found.strip("rgba()").split(",")[:3])

    for selector in ("#panel", "#map"):
        looker.scheme("light")
        bright = brightness(selector)
        looker.scheme("dark")
        dark = brightness(selector)
        assert dark < 120
        assert bright > 600


def test_the_picture_for_the_readme_is_small_enough_to_be_kept(
    looker: Onlooker, tmp_path: Path
) -> None:
    picture = tmp_path / "live-map.png"
    take_picture(looker, picture, n_frames=1)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < picture.stat().st_size < 300_000


async def test_a_gateway_with_a_token_asks_for_it_and_a_lost_line_is_taken_up_again(
    browser: Onlooker, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    config = write_settings(
        tmp_path / "gateway.toml",
        {
            "network": {"source": "grid:8x8"},
            "broker": {"url": "mqtt://127.0.0.1:1"},  # there is none, and none is needed
            "http": {"port": port, "token": "open sesame", "raw_view": True},
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
        await look(browser.until, lambda: "not it" in browser.text("#door-said"))
        await look(try_token, "open sesame")
        await look(browser.until, lambda: browser.state() == "live")
        assert browser.is_shown("#truth-toggle")
        assert not browser.is_shown("#comparison")
    await look(browser.until, lambda: browser.state() == "lost")
    async with running(ANONYMIZER, "serve", "-c", config) as gateway:
        await gateway.logged("listening")
        await look(browser.until, lambda: browser.state() == "live")
    browser.script("sessionStorage.clear()")
    browser.complaints()
