"""The seed's request through whole programs: simulator, Mosquitto, gateway, HTTP, MCP, backup."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.gateway.api import toll_queries
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.settings import Settings
from anonymizer.store import ReleaseReader
from anonymizer.transport.local_brokers import LocalBroker
from simulator.toll_exits import MADE, read_exits
from tests.app.gateway.recording import printed, publish, serving_records
from tests.app.gateway.records import compiled, stored_parts
from tests.end_to_end import ANONYMIZER, SIMULATOR, eventually, running
from tests.pipeline.records.tolls import TOLL, Exit

__all__ = ["compiled"]
PATH = "/api/analytics/truck/exit-hourly-flow-k-anonymized"
ATTRIBUTES = [{**TOLL["attributes"][0], "values": list(MADE.section)}, *TOLL["attributes"][1:]]
STREAM: dict[str, Any] = TOLL | {"attributes": ATTRIBUTES, "idle_s": 600}


def covered(row: dict[str, Any], told: dict[str, Any]) -> bool:
    region = row["section_region"].removesuffix(" area")
    first, end = map(int, re.findall(r"\d\d", row["time_period"])[-2:])
    hour = int(told["exit_time"][11:13])
    return (region == "all areas" or told["section_id"].startswith(region)) and (
        first <= hour < end if first < end else hour >= first or hour < end
    )


async def test_2100_exits_are_answered_as_the_seed_asks_and_the_copy_holds_no_raw_part(
    broker: LocalBroker, tmp_path: Path
) -> None:
    from mcp import Client, StdioServerParameters  # noqa: PLC0415  slow to load

    exits, copy = tmp_path / "exits.csv", tmp_path / "copy.sqlite"
    await printed(SIMULATOR, "tolls", "--out", exits, "--seed", "4")
    sent = read_exits(exits)
    assert len(sent) == 2100
    async with serving_records(tmp_path, broker.url, fleet=STREAM) as gateway:
        replay = ("tolls", "--csv", exits, "--broker", broker.url, "--rate", "5000", "--quiet")
        await printed(SIMULATOR, *replay)
        # The next day closes theirs, however slowly they came; its window stays open.
        later = Exit("the-last", sent[0]["section_id"], datetime(2023, 1, 3, 12), 100)  # noqa: DTZ001
        await publish(broker.url, [later.delivery()])
        await gateway.program.logged("window closed")

        async def rows() -> list[dict[str, Any]]:
            day = "start_date=2023-01-02&end_date=2023-01-02&k=5&lang=en"
            answer = (await gateway.get(f"{PATH}?{day}")).json()
            assert answer["success"]
            said.append(answer)
            return list(answer["data"])

        said: list[dict[str, Any]] = []
        await eventually(rows, lambda found: len(found) > 0)
        answer = said[-1]
        config = str(tmp_path / "gateway.toml")
        async with Client(
            StdioServerParameters(command=str(ANONYMIZER), args=["mcp", "-c", config])
        ) as model:
            told = await model.call_tool(
                "exit_hourly_flow_k_anonymized", {"start_date": "2023-01-02", "k": 5}
            )
            assert told.structured_content is not None
            assert told.structured_content["privacy_protection"] == answer["privacy_protection"]
        await printed(ANONYMIZER, "backup", "-c", config, "--out", copy)
    statistics = answer["privacy_protection"]["statistics"]
    n_trucks = len({told["truck_id"] for told in sent})  # one exit of each is published
    assert statistics == {
        "total_records": 2100,
        "anonymized_groups": len(answer["data"]),
        "suppressed_records": 2100 - n_trucks,
        "retention_rate": round(100 * n_trucks / 2100, 2),
    }
    for row in answer["data"]:
        trucks = {told["truck_id"] for told in sent if covered(row, told)}
        assert len(trucks) >= row["truck_count"] >= 5
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM classes").fetchone()[0] > 50
    assert stored_parts(tmp_path / "records.sqlite") == 1
    assert stored_parts(copy) == 0
    assert ReleaseReader(copy).count(["toll"]) == 1


def settings(**tables: Any) -> Settings:  # noqa: ANN401  settings of any kind
    return Settings.model_validate({"inputs": [], "streams": [TOLL], **tables})


def test_releases_are_not_for_everybody_on_the_network() -> None:
    with pytest.raises(ValueError, match="needs token or token_file unless host is this machine"):
        settings(http={"host": "0.0.0.0"})  # noqa: S104  refused
    assert settings(http={"host": "0.0.0.0", "token": "x"}).http.token is not None  # noqa: S104
    assert settings(http={"host": "::1"}).http.token is None
    assert settings(http={"host": ""}).http.token is None


def test_the_toll_stream_is_the_first_that_publishes_what_the_api_tells() -> None:
    first, *others = TOLL["attributes"]
    attributes = [{**first, "name": "area"}, *others]
    other = {**TOLL, "name": "other", "attributes": attributes}
    tells = [each["name"] for each in attributes]
    other["sources"] = [{**TOLL["sources"][0], "topic": "other/{vehicle}", "tells": tells}]
    both = settings(streams=[other, TOLL])
    queries = toll_queries(both, declared_streams(both))
    assert queries is not None
    assert queries.stream.settings.name == "toll"
    alone = settings(streams=[other])
    assert toll_queries(alone, declared_streams(alone)) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "streams: none is of model"),
        (f"inputs = []\nstreams = [{json.dumps(TOLL['name'])}]", "streams (no. 1): "),
    ],
)
async def test_tools_without_a_toll_stream_are_exit_2_and_one_line(
    text: str, said: str, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(text)
    async with running(ANONYMIZER, "mcp", "-c", config) as ran:
        assert await ran.ended() == 2
    assert said in "\n".join(ran.lines)
