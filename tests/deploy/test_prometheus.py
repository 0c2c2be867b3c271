"""A Prometheus with the files of deploy/ beside a gateway that works: rules and dashboards."""

import asyncio
import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker, running_mosquitto
from tests.app.gateway.records import toml
from tests.deploy.files import DEPLOY, dashboard_queries, dashboards
from tests.end_to_end import (
    ANONYMIZER,
    DEADLINE_S,
    TOKEN,
    client,
    eventually,
    http_client,
    running,
    send,
)
from tests.pipeline.records.made import FLEET, traffic

OF_ONE = ("overview", "privacy", "records")
"""Dashboards of a gateway in one process."""
_SPAN = "20s"
"""Stands for $__rate_interval."""
FLOWING = (
    "rate(anonymizer_received_total[20s])",
    'rate(anonymizer_positions_total{outcome="published"}[20s])',
    'rate(anonymizer_record_parts_total{outcome="published"}[20s])',
    "rate(anonymizer_latency_seconds_count[20s])",
)
"""Above 0 once everything flows."""
ABOVE_0 = (
    "overview: Up: A",
    "overview: Broker: A",
    "overview: Received per second: A",
    "overview: Devices on the graph: A",
    "privacy: Nodes of a region: A",
    "records: Store: A",
    "records: Vehicles of a class: B",
)


@dataclass(frozen=True)
class Watched:
    """What a Prometheus said of a gateway."""

    names: frozenset[str]
    rules: dict[str, dict[str, Any]]
    answers: dict[str, Any]
    """Answer to each query of the dashboards, by where it stands."""
    without_token: str
    """What whoever does not show the token is told."""


class Prometheus:
    """One that runs."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def ask(self, path: str, **parameters: str) -> Any:  # noqa: ANN401  of JSON
        answer = await self._http.get(f"/api/v1/{path}", params=parameters)
        return answer.json()

    async def flows(self) -> list[float]:
        """Return the value of each of FLOWING; 0 where there is none."""
        answers = [await self.ask("query", query=query) for query in FLOWING]
        return [
            max((float(one["value"][1]) for one in answer["data"]["result"]), default=0.0)
            for answer in answers
        ]


def prometheus(folder: Path, gateway_url: str) -> LocalBroker:
    """Return a Prometheus by the files in deploy/, in more of a hurry."""
    text = (DEPLOY / "prometheus.yml").read_text()
    for said, instead in (
        ("gateway:8080", urlsplit(gateway_url).netloc),
        ("_interval: 15s", "_interval: 300ms"),
    ):
        assert said in text
        text = text.replace(said, instead)
    (folder / "prometheus.yml").write_text(text)
    (folder / "http.token").write_text(f"{TOKEN}\n")
    (folder / "alerts.yml").write_text((DEPLOY / "alerts.yml").read_text())
    return LocalBroker(
        lambda port: [
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        ready="ready to receive web requests",
        scheme="http",
    )


def write_settings(folder: Path, url: str) -> Path:
    settings = {
        "network": {"source": "grid:5x5"},
        "broker": {"url": url, "drops_topic": "$SYS/broker/publish/messages/dropped"},
        "adka": {"density_steps": [], "k_values": [2]},
        "session": {"epoch_s": 2.0},
        "presence": {"ttl_s": 60.0},
        "readings": [{"name": "speed_mps", "lo": 0, "hi": 50}],
        "counts": {"privacy": "k"},
        "trips_out": {"every_s": 600.0},
        "streams": [FLEET],
        "store": {"path": str(folder / "records.sqlite")},
        "watch": {"evidence_s": 3600.0},
        "http": {"port": 0},
    }
    config = folder / "gateway.toml"
    config.write_text("\n".join(f"{key} = {toml(value)}" for key, value in settings.items()))
    return config


async def keep_sending(url: str, enough: asyncio.Event) -> None:
    """Let twenty devices report again and again, and a fleet tell of one window after another."""
    grid = load_network("grid:5x5")
    told = {"lat": float(grid.lat[12]), "lon": float(grid.lon[12]), "speed_mps": 3.0}
    position = json.dumps(told).encode()
    messages: Sequence[tuple[str, bytes]] = [(f"positions/d{i}", position) for i in range(20)]
    async with client(url, "devices") as connection:
        parts = traffic(n_vehicles=30, n_windows=100_000, seed=1)
        while not enough.is_set():  # a publication of aiomqtt's may swallow that it is cancelled
            await send(connection, messages)
            batch = [part for part, _ in zip(parts, range(90), strict=False)]
            await send(connection, [(part.topic, part.payload) for part in batch])
            await asyncio.sleep(0.3)


async def watch(folder: Path) -> Watched:
    async with running_mosquitto() as url:
        config = write_settings(folder, url)
        token = {"ANONYMIZER__HTTP__TOKEN": TOKEN}
        async with running(ANONYMIZER, "serve", "-c", config, environment=token) as gateway:
            url_of_gateway = (await gateway.logged("listening"))["url"]
            web = prometheus(folder, url_of_gateway)
            await gateway.logged("broker connected for records")
            await web.start()
            enough = asyncio.Event()
            sending = asyncio.create_task(keep_sending(url, enough), name="devices")
            try:
                async with http_client(web.url) as http:
                    told = (await http.get(urljoin(url_of_gateway, "/metrics"))).text
                    return await look(Prometheus(http), told)
            finally:
                enough.set()
                await sending
                await web.stop()


def named_by_alerts() -> set[str]:
    text = (DEPLOY / "alerts.yml").read_text()
    text = re.sub(r"description: [|]-\n(?: {12}.*\n|\n)+", "", text)  # what to do
    return set(re.findall(r"\b(?:anonymizer|process)_\w+", text))


def _is_all_there(answers: dict[str, Any], names: frozenset[str]) -> bool:
    full = all(answer["data"]["result"] for answer in answers.values())
    return (
        full and all(_value(answers, where) > 0 for where in ABOVE_0) and named_by_alerts() <= names
    )


def _value(answers: dict[str, Any], where: str) -> float:
    return float(answers[where]["data"]["result"][0]["value"][1])


async def look(watching: Prometheus, without_token: str) -> Watched:
    await eventually(watching.flows, lambda flows: min(flows) > 0)

    async def found() -> tuple[dict[str, Any], frozenset[str]]:
        answers = {
            where: await watching.ask(
                "query", query=query.replace("$__rate_interval", _SPAN).replace("$instance", ".*")
            )
            for where, query in dashboard_queries(*OF_ONE)
        }
        return answers, frozenset((await watching.ask("label/__name__/values"))["data"])

    # Some figures come seconds after the first; if one never comes, a test says which.
    until_s = time.monotonic() + DEADLINE_S
    answers, names = await eventually(
        found,
        lambda now: _is_all_there(*now) or time.monotonic() > until_s,
        within_s=2 * DEADLINE_S,
    )
    groups = (await watching.ask("rules"))["data"]["groups"]
    return Watched(
        names,
        {rule["name"]: rule for group in groups for rule in group["rules"]},
        answers,
        without_token,
    )


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return asyncio.run(watch(tmp_path_factory.mktemp("prometheus")))


def test_every_query_of_every_dashboard_finds_something(watched: Watched) -> None:
    assert dashboards().keys() == {*OF_ONE, "cluster"}
    for where, answer in watched.answers.items():
        assert answer["status"] == "success", where
        assert answer["data"]["result"], where


def test_what_flows_shows_on_the_dashboards(watched: Watched) -> None:
    for where in ABOVE_0:
        assert _value(watched.answers, where) > 0, where
        assert math.isfinite(_value(watched.answers, where)), where
    for where in (
        "overview: Imbalance: A",
        "overview: Promises broken: A",
        "privacy: Followed pseudonyms below k: A",
        "records: Imbalance: A",
        "records: Classes refused: A",
    ):
        assert _value(watched.answers, where) == 0, where


def test_every_rule_is_evaluated_and_none_rings_for_a_gateway_that_works(watched: Watched) -> None:
    for name, rule in watched.rules.items():
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), name
    assert "firing" not in {rule["state"] for rule in watched.rules.values()}
    for name, rule in watched.rules.items():
        # One that waits before it rings may be waiting, on a machine that is busy.
        assert rule["state"] == "inactive" or rule["duration"] > 0, name


def test_an_alert_says_when_prometheus_does_not_show_the_token(watched: Watched) -> None:
    missed = "process_start_time_seconds"
    assert missed in watched.rules["ScrapedWithoutToken"]["query"]
    assert missed in watched.names
    assert "anonymizer_broker_connected 1" in watched.without_token
    assert missed not in watched.without_token


def test_every_alert_is_about_something_that_is_exported(watched: Watched) -> None:
    assert named_by_alerts()
    assert named_by_alerts() <= watched.names
