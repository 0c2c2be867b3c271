"""The live map's routes: what they answer, to whom, and what they tell a browser."""

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from pydantic import ValidationError

from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.settings import HttpSettings
from anonymizer.web.map import KOfDensity, LastWindow, Notice, Shown, map_router, read_assets
from anonymizer.web.network_outline import Outline
from anonymizer.web.server import create_application
from anonymizer.web.token import read_token
from tests.observe.collected import busy_rig, registry_of

ROOT = Path(__file__).parents[2]
BOX = "south=0&west=0&north=1&east=1"
DATA = (
    *("/map/about", "/map/nodes", f"/map/roads?{BOX}", "/map/events?mode=session"),
    "/map/records",
)
OUTLINE = Outline(load_network("grid:4x5"))
TOKEN = "open sesame"  # noqa: S105  of no importance


RULE = [KOfDensity(below=4, k=10, published=10), KOfDensity(below=None, k=5, published=2)]
NOTICE = Notice(run_by="City of X", opt_out="write to us", devices_may=True)
WINDOW = LastWindow(stream="fleet", title="(k,d)-anonymity", promise="At least 10 vehicles.")


class Show:
    """Two frames, and no more."""

    modes: Sequence[str] = ("session", "adka")
    is_full = False

    def __init__(self, *, raw: bool = False) -> None:
        self.raw = raw
        self.crowded: set[str] = set()
        self.looked_at: list[tuple[str, str]] = []

    def has_enough(self, address: str) -> bool:
        return address in self.crowded

    async def frames(self, mode: str, *, shown: Shown, address: str) -> AsyncIterator[bytes]:
        assert address
        self.looked_at.append((mode, shown))
        yield b"event: frame\ndata: 1\n\n"
        yield b"event: frame\ndata: 2\n\n"


def site(show: Show, *, token: str | None = None) -> httpx.AsyncClient:
    application: FastAPI = create_application(
        registry_of(busy_rig()),
        alive=list,
        ready=list,
        more=[
            map_router(
                show,
                OUTLINE,
                token=token,
                rule=lambda: RULE,
                first_s=10.4,
                notice=NOTICE,
                windows=lambda: [WINDOW],
            )
        ],
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://gateway")


async def test_the_page_and_all_it_names_are_there() -> None:
    async with site(Show()) as http:
        page = await http.get("/")
        assert page.headers["content-type"].startswith("text/html")
        named = re.findall(r'(?:src|href)="(/map/[^"]+)"', page.text)
        assert len(named) >= 5
        for path in named:
            answer = await http.get(path)
            assert answer.status_code == 200, path
            for module in re.findall(r'from "\./([^"]+)"', answer.text):
                assert (await http.get(f"/map/static/{module}")).status_code == 200, module


def test_no_file_of_the_page_names_an_address_outside() -> None:
    static = ROOT / "anonymizer" / "web" / "static"
    for path in static.rglob("*"):
        if path.suffix in {".html", ".css", ".js"} and "vendor" not in path.parts:
            found = re.findall(r"(?:https?:)?//(?!www\.w3\.org)[\w-]+\.\w+", path.read_text())
            assert found == [], path


def test_the_vendored_library_has_its_licence_beside_it() -> None:
    assets = read_assets()
    assert {"vendor/leaflet/leaflet.js", "vendor/leaflet/leaflet.css"} <= assets.keys()
    licence = (ROOT / "anonymizer/web/static/vendor/leaflet/LICENSE").read_text()
    assert "BSD 2-Clause" in licence


async def test_what_there_is_to_see_is_told_and_streamed() -> None:
    show = Show()
    async with site(show) as http:
        about = (await http.get("/map/about")).json()
        assert (about["modes"], about["raw"], about["n_nodes"]) == (["session", "adka"], False, 20)
        assert len((await http.get("/map/nodes")).content) == 20 * 8
        assert (await http.get(f"/map/roads?{BOX}")).content == OUTLINE.roads()
        stream = await http.get("/map/events?mode=adka")
        assert stream.text == "event: frame\ndata: 1\n\nevent: frame\ndata: 2\n\n"
        assert stream.headers["cache-control"] == "no-store"
    assert show.looked_at == [("adka", "public")]


async def test_everybody_may_know_who_runs_it_and_how_to_take_no_part() -> None:
    for token in (None, TOKEN):
        async with site(Show(), token=token) as http:
            assert (await http.get("/map/notice")).json() == NOTICE.model_dump()


async def test_records_and_the_rule_of_density_are_told_where_there_are_any() -> None:
    async with site(Show()) as http:
        about = (await http.get("/map/about")).json()
        assert about["records"]
        assert about["first_s"] == 11
        assert [each["k"] for each in about["rule"]] == [10, 5]
        (window,) = (await http.get("/map/records")).json()
        assert (window["stream"], window["start"], window["classes"]) == ("fleet", None, [])
    bare = create_application(
        registry_of(busy_rig()), alive=list, ready=list, more=[map_router(Show(), OUTLINE)]
    )
    client = httpx.AsyncClient(transport=httpx.ASGITransport(bare), base_url="http://gateway")
    async with client as http:
        assert not (await http.get("/map/about")).json()["records"]
        assert (await http.get("/map/records")).status_code == 404


async def test_true_positions_are_not_even_there_where_they_are_not_shown() -> None:
    show = Show()
    async with site(show) as http:
        for query in ("mode=adka&shown=truth", "mode=nonsense", "mode=adka&shown=density"):
            assert (await http.get(f"/map/events?{query}")).status_code == 404
    assert show.looked_at == []
    auditor = Show(raw=True)
    async with site(auditor) as http:
        assert (await http.get("/map/events?mode=adka&shown=truth")).status_code == 200
    assert auditor.looked_at == [("adka", "truth")]


async def test_who_comes_when_it_is_full_is_told_to_come_back() -> None:
    show = Show()
    show.is_full = True
    async with site(show) as http:
        answer = await http.get("/map/events?mode=adka")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "10"


async def test_who_watches_often_enough_already_is_told_to_wait() -> None:
    show = Show()
    async with site(show) as http:  # from 127.0.0.1
        show.crowded = {"127.0.0.2"}
        assert (await http.get("/map/events?mode=adka")).status_code == 200
        show.crowded = {"127.0.0.1"}
        answer = await http.get("/map/events?mode=adka")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")


@pytest.mark.parametrize(
    "shown",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", "Bearer open", f"Bearer {TOKEN}!", "Bearer é"],
)
async def test_without_the_token_nothing_is_told_but_the_empty_page(shown: str) -> None:
    show = Show(raw=True)
    async with site(show, token=TOKEN) as http:
        headers = {b"Authorization": shown.encode()} if shown else {}
        for path in DATA:
            answer = await http.get(path, headers=headers)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in answer.text
        assert (await http.get("/")).status_code == 200
        assert (await http.get("/map/static/app.js")).status_code == 200
    assert show.looked_at == []


async def test_with_the_token_everything_is() -> None:
    async with site(Show(), token=TOKEN) as http:
        for path in DATA:
            for shown in (f"Bearer {TOKEN}", f"bearer  {TOKEN} "):
                answer = await http.get(path, headers={"Authorization": shown})
                assert answer.status_code == 200, path


async def test_what_has_not_changed_is_not_sent_again_and_what_is_sent_is_packed() -> None:
    async with site(Show()) as http:
        first = await http.get("/map/static/app.js")
        assert first.headers["content-encoding"] == "gzip"
        again = await http.get(
            "/map/static/app.js", headers={"If-None-Match": first.headers["etag"]}
        )
        assert (again.status_code, again.content) == (304, b"")
        plain = await http.get("/map/static/app.js", headers={"Accept-Encoding": "identity"})
        assert plain.text == first.text


@pytest.mark.parametrize(
    "path",
    ["../application.py", "..%2fapplication.py", "vendor", "vendor/", "", "app.js/", "APP.JS"],
)
async def test_no_other_file_is_served(path: str) -> None:
    async with site(Show()) as http:
        assert (await http.get(f"/map/static/{path}")).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["", "south=0&west=0&north=1", BOX.replace("1", "nan"), "south=-91&west=0&north=1&east=1"],
)
async def test_a_box_that_is_none_is_refused(query: str) -> None:
    async with site(Show()) as http:
        assert (await http.get(f"/map/roads?{query}")).status_code == 422


async def test_the_maps_own_routes_are_not_part_of_the_described_interface() -> None:
    async with site(Show()) as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
        assert not [path for path in paths if path == "/" or path.startswith("/map")]


def test_the_token_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(f" {TOKEN} \nnot this\n")
    assert read_token(HttpSettings(token_file=file)) == TOKEN
    assert read_token(HttpSettings()) is None
    assert read_token(HttpSettings.model_validate({"token": TOKEN})) == TOKEN
    for text in ("", "\n", "  \n"):
        file.write_text(text)
        with pytest.raises(SettingsError, match=r"^http\.token_file: is empty$"):
            read_token(HttpSettings(token_file=file))
    file.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"^http\.token_file: cannot be read$"):
        read_token(HttpSettings(token_file=file))


def test_a_token_that_all_may_read_or_guess_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    for mode in (0o644, 0o604, 0o602):
        file.chmod(mode)
        with pytest.raises(SettingsError, match=r"^http\.token_file: everybody .* chmod 600$"):
            read_token(HttpSettings(token_file=file))
    file.chmod(0o440)
    assert read_token(HttpSettings(token_file=file)) == TOKEN
    file.chmod(0o600)
    for short in ("x", "change me"):
        file.write_text(short)
        with pytest.raises(SettingsError, match=r"^http\.token_file: a token of fewer than 10"):
            read_token(HttpSettings(token_file=file))
        with pytest.raises(SettingsError, match=r"^http\.token: a token of fewer than 10"):
            read_token(HttpSettings.model_validate({"token": short}))


@pytest.mark.parametrize(
    ("table", "about"),
    [
        ({"map": "raw"}, "needs token_file"),
        ({"map": False}, "'published', 'raw' or 'none'"),
        ({"token": "x", "token_file": "y"}, "not both"),
        ({"token": " "}, "must not be empty"),
    ],
)
def test_settings_that_would_show_too_much_are_refused(
    table: dict[str, object], about: str
) -> None:
    with pytest.raises(ValidationError, match=about):
        HttpSettings.model_validate(table)


def test_the_token_is_in_no_text_of_the_settings() -> None:
    assert TOKEN not in repr(HttpSettings.model_validate({"token": TOKEN, "map": "raw"}))
