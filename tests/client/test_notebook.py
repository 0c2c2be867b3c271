"""The notebooks and the live map of the manual, from a real broker or files to a figure."""

import asyncio
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import geopandas
import matplotlib as mpl
import pandas as pd
import pytest
from PIL import Image

from anonymizer.transport.local_brokers import LocalBroker
from tests.client.live import N_DEVICES, retain
from tests.console import Runner, blocks
from tests.end_to_end import SIMULATOR, running, serving

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK, QUESTIONS = (
    json.loads((DOCS / f"{name}.ipynb").read_text()) for name in ("analyst", "questions")
)


def code_of(notebook: dict[str, Any]) -> list[str]:
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


def program(**parameters: object) -> str:
    """Return the code of the notebook, with other values in its first cell."""
    first, *cells = code_of(NOTEBOOK)
    names = [line.partition(" = ")[0] for line in first.splitlines()]
    assert set(parameters) <= set(names)
    changed = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
    return "\n".join([first, changed, *cells])


def run(code: str) -> dict[str, Any]:
    """Run a program as a kernel would, without a screen."""
    found: dict[str, Any] = {}
    with mpl.rc_context({"backend": "Agg", "savefig.dpi": 40}):
        import matplotlib.pyplot as plt  # noqa: PLC0415  after the choice of the backend

        exec(compile(code, "analyst.ipynb", "exec"), found)  # noqa: S102  our own notebook
        plt.close("all")
    return found


def colours(path: Path) -> int:
    """Return how many colours a picture has: one that is empty has few."""
    with Image.open(path) as picture:
        return len(picture.convert("RGB").getcolors(1 << 24) or [])


@pytest.mark.parametrize("notebook", [NOTEBOOK, QUESTIONS], ids=["analyst", "questions"])
def test_a_notebook_is_kept_without_outputs(notebook: dict[str, Any]) -> None:
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


async def test_the_notebook_leads_from_a_broker_to_figures(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await retain(broker.url)
    monkeypatch.chdir(tmp_path)
    found = await asyncio.to_thread(run, program(URL=broker.url, SECONDS=0.01, CELL_M=500))
    assert found["releases"].devices() == N_DEVICES
    assert found["moves"]["devices"].sum() == pytest.approx(N_DEVICES)
    for picture in ("heat_map.png", "busiest.png", "speeds.png"):
        assert colours(tmp_path / picture) > 50, picture
    heat = geopandas.read_file(tmp_path / "heat.geojson")
    assert heat["devices"].sum() == pytest.approx(N_DEVICES)
    assert pd.read_csv(tmp_path / "heat.csv")["cell"].tolist() == heat["cell"].tolist()
    groups = geopandas.read_file(tmp_path / "groups.geojson")
    assert groups["devices"].sum() == N_DEVICES


def test_five_questions_are_answered_from_what_the_commands_of_the_page_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(tmp_path, broker_url="", http_port=0)
    runner.run(next(blocks(DOCS / "analyst.md")))
    monkeypatch.chdir(tmp_path)
    found = run("\n".join(code_of(QUESTIONS)))
    assert (found["matrix"]["low"] <= found["matrix"]["trips"]).all()
    assert found["by_hour"]["passages"].gt(0).all()
    for picture in ("matrix", "speeds", "starts", "heat", "pattern"):
        assert colours(tmp_path / f"{picture}.png") > 50, picture


async def test_a_live_map_is_drawn_from_the_broker_alone(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await retain(broker.url)
    picture = tmp_path / "map.png"
    monkeypatch.setattr(sys, "argv", ["live_map.py", broker.url, str(picture), "--pictures", "1"])
    # In this process, which has loaded the libraries.
    await asyncio.to_thread(runpy.run_path, str(DOCS / "live_map.py"), run_name="__main__")
    assert colours(picture) > 50


@pytest.mark.soak
async def test_the_notebook_answers_for_a_real_gateway(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {
        "network": {"source": "city:1000"},
        "broker": {"url": broker.url},
        "current": {"every_s": 5.0},
        "readings": [{"name": "speed_mps", "lo": 0.0, "hi": 40.0, "step": 0.5}],
        "http": {"port": 0},
    }
    traffic = ("--network", "city:1000", "--devices", "500", "--rate", "1", "--readings", "--quiet")
    async with (
        serving(tmp_path, tables) as gateway,
        running(SIMULATOR, "run", *traffic, "--broker", broker.url),
    ):
        await gateway.until(lambda now: now.outcomes.get("published", 0) > 500)
        monkeypatch.chdir(tmp_path)
        found = await asyncio.to_thread(run, program(URL=broker.url, SECONDS=60, CELL_M=500))
        accounts = await gateway.accounts()
    assert accounts.imbalance == 0
    releases = found["releases"]
    # At the start the epoch gets shorter, and groups end before their `until`; not later.
    counts = [releases.devices(at) for at in releases.moments(5) if at > releases.now - 30]
    assert 400 < max(counts) <= 500 < releases.n_pseudonyms
    assert len(found["moves"]) > 10
    for picture in ("heat_map.png", "busiest.png", "speeds.png"):
        assert colours(tmp_path / picture) > 50, picture
