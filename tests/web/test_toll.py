"""The toll API, answered from what a stream really published."""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from prometheus_client import CollectorRegistry

from anonymizer.pipeline.records.queries import Answer, Queries, Refusal
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.store import ReleaseReader
from anonymizer.web import create_application
from anonymizer.web.auth import RateLimit
from anonymizer.web.toll import toll_router
from tests.pipeline.records.made import stream
from tests.pipeline.records.support import Rig
from tests.pipeline.records.tolls import TOLL, Exit, exits

if TYPE_CHECKING:
    from mcp import Client

PATH = "/api/analytics/truck/exit-hourly-flow-k-anonymized"
TOKEN = "open sesame"  # noqa: S105  of nothing
N, N_TRUCKS, N_DAYS, K = 2100, 1700, 3, 5


class Office:
    """Three days of toll records, published, and the API over them."""

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder, **TOLL)
        self.sent = [
            list(exits(n=N, n_trucks=N_TRUCKS, seed=day, first_day=f"2023-01-0{3 + day}"))
            for day in range(N_DAYS)
        ]
        for day in self.sent:
            self.rig.take_raw([each.delivery(i) for i, each in enumerate(day, start=1)])
        self.rig.close(silent=True)
        self.published = [json.loads(payload) for payload in self.rig.publish()]
        self.rig.store.close()
        self.reader = ReleaseReader(self.rig.path)
        self.queries = Queries(self.rig.stream, self.reader)
        self.now_s = 0.0

    def application(self, *, token: str | None = None, per_minute: int = 10**6) -> FastAPI:
        limit = RateLimit(per_minute, monotonic=lambda: self.now_s)
        routes = toll_router(self.queries, self.reader, [self.rig.stream], token=token, limit=limit)
        return create_application(CollectorRegistry(), alive=list, ready=list, more=[routes])

    def client(self, **how: Any) -> httpx.AsyncClient:  # noqa: ANN401  as of `application`
        transport = httpx.ASGITransport(self.application(**how))
        return httpx.AsyncClient(transport=transport, base_url="http://gateway")


@pytest.fixture(scope="module")
def office() -> Iterator[Office]:
    with tempfile.TemporaryDirectory() as folder:
        yield Office(Path(folder))


@pytest.fixture
async def client(office: Office) -> AsyncIterator[httpx.AsyncClient]:
    async with office.client() as client:
        yield client


async def ask(client: httpx.AsyncClient, **parameters: object) -> dict[str, Any]:
    answer = await client.get(PATH, params={k: str(v) for k, v in parameters.items()})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def per_cent(n: int) -> float:
    """Return what part of the records of a day it is, rounded down: 100 % stands for all alone."""
    return 10_000 * n // N / 100


async def test_the_request_of_the_seed_is_answered_in_its_shape(
    office: Office, client: httpx.AsyncClient
) -> None:
    answer = await ask(client, start_date="2023-01-03", end_date="2023-01-03", k=5)
    rows = answer.pop("data")
    n_trucks = len({each.truck for each in office.sent[0]})
    assert answer == {
        "success": True,
        "count": len(rows),
        "category": "📊 流量统计类（k-匿名保护）",  # noqa: RUF001
        "privacy_protection": {
            "method": "KACA (K-Anonymity Clustering Algorithm)",
            "algorithm": "KACA",
            "k_value": 5,
            "input_source": "原始出口交易记录",
            "quasi_identifiers": ["section_id", "exit_time"],
            "clustering": {
                "algorithm": "recursive halving with local recutting",
                "clusters": len(rows),
                "description": "基于聚类的自适应泛化",
            },
            "generalization": {
                "geographic": '聚类内section_id公共前缀 + "区域"',
                "temporal": "聚类内时间范围泛化",
            },
            "statistics": {
                "total_records": N,
                "anonymized_groups": len(rows),
                "suppressed_records": N - n_trucks,  # one exit of each stands for it
                "retention_rate": per_cent(n_trucks),
            },
        },
    }
    assert len(rows) > 20
    for row in rows:
        assert list(row) == [
            "section_region", "time_period", "truck_count", "vehicle_count", "avg_toll",
            "k_anonymized", "algorithm",
        ]  # fmt: skip
        assert row["vehicle_count"] == row["truck_count"] >= 5
        assert re.fullmatch(r".+区域", row["section_region"])
        assert re.fullmatch(r".*时段\(\d\d-\d\d\)", row["time_period"])
        members = [each for each in office.sent[0] if covers(row, each)]
        assert len({each.truck for each in members}) >= row["truck_count"]


def covers(row: dict[str, Any], each: Exit) -> bool:
    region = row["section_region"].removesuffix("区域")
    first, end = map(int, re.findall(r"\d\d", row["time_period"])[-2:])
    hour = each.at.hour
    return (region == "全部" or each.section.startswith(region)) and (
        first <= hour < end if first < end else hour >= first or hour < end
    )


async def test_a_row_is_the_sum_of_the_published_classes_that_read_like_it(
    office: Office, client: httpx.AsyncClient
) -> None:
    answer = await ask(client, start_date="2023-01-03", end_date="2023-01-04")
    wanted: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for message in office.published:
        if message["window"][0] < 1672675200 + 2 * 86_400:
            wanted[message["section_region"], message["time_period"]].append(message)
    assert len(answer["data"]) == len(wanted)
    for row in answer["data"]:
        like = wanted[row["section_region"], row["time_period"]]
        assert row["truck_count"] == sum(m["truck_count"] for m in like)
        told = [m["measures"]["avg_toll"] for m in like if m["measures"]["avg_toll"]]
        if told:
            mean = sum(t["sum"] for t in told) / sum(t["n"] for t in told)
            assert row["avg_toll"] == pytest.approx(mean, abs=0.00501)
        else:  # fewer than k trucks of each class paid
            assert row["avg_toll"] is None
    assert answer["privacy_protection"]["statistics"]["total_records"] == 2 * N


async def test_a_larger_k_joins_classes_and_keeps_every_record(client: httpx.AsyncClient) -> None:
    counts = []
    for k in (5, 8, 20, 300, 800):
        answer = await ask(client, k=k)
        assert all(row["truck_count"] >= k for row in answer["data"])
        statistics = answer["privacy_protection"]["statistics"]
        counts.append(sum(row["truck_count"] for row in answer["data"]))
        assert statistics["suppressed_records"] == N_DAYS * N - counts[-1]
        assert answer["privacy_protection"]["k_value"] == k
    assert len(set(counts)) == 1  # a class only ever grows


async def test_a_k_that_no_day_has_trucks_for_suppresses_and_says_so(
    client: httpx.AsyncClient,
) -> None:
    answer = await ask(client, k=1000, start_date="2023-01-03", end_date="2023-01-03")
    statistics = answer["privacy_protection"]["statistics"]
    kept = sum(row["truck_count"] for row in answer["data"])
    assert statistics["total_records"] == N
    assert (statistics["suppressed_records"] == N) is (kept == 0)
    assert statistics["retention_rate"] == per_cent(kept)


def test_no_class_is_asked_to_be_smaller_than_it_was_released(office: Office) -> None:
    lower = stream(**TOLL | {"promise": {"k": 3}})
    queries = Queries(lower, office.reader)
    refused = queries.answer(None, None, 4)
    assert isinstance(refused, Refusal)
    assert refused.too_fine
    answer = queries.answer(None, None, None)
    assert isinstance(answer, Answer)
    assert answer.k == K


def test_a_release_of_which_a_class_is_gone_answers_nothing(office: Office) -> None:
    class HalfErased(ReleaseReader):
        def classes(self, release: PublishedWindow, *, limit: int = -1) -> list[bytes]:
            return list(super().classes(release, limit=limit))[1:]

    store = HalfErased(office.rig.path)
    answer = Queries(office.rig.stream, store).answer(None, None, None)
    assert isinstance(answer, Answer)
    assert (answer.cells, answer.releases, answer.n_records) == ([], [], 0)


async def test_english_texts_tell_the_same(client: httpx.AsyncClient) -> None:
    zh, en = [await ask(client, k=9, lang=lang) for lang in ("zh", "en")]
    assert [row["truck_count"] for row in zh["data"]] == [row["truck_count"] for row in en["data"]]
    assert all(row["section_region"].endswith(("area", "areas")) for row in en["data"])
    assert en["category"] == "📊 traffic statistics (k-anonymous)"


async def test_days_without_releases_are_an_empty_answer(client: httpx.AsyncClient) -> None:
    answer = await ask(client, start_date="0001-01-01", end_date="2022-12-31")
    assert (answer["data"], answer["count"]) == ([], 0)
    statistics = answer["privacy_protection"]["statistics"]
    assert (statistics["total_records"], statistics["retention_rate"]) == (0, None)


MISTAKES = {
    "start_date=2023-13-01": (422, "start_date must be a day, written YYYY-MM-DD."),
    "start_date=1672704000": (422, "start_date must be a day, written YYYY-MM-DD."),
    "end_date=yesterday": (422, "end_date must be a day, written YYYY-MM-DD."),
    "start_date=2023-01-04&end_date=2023-01-03": (
        422,
        "end_date must not be before start_date.",
    ),
    "k=0": (422, "k must be a whole number from 2 to 1000."),
    "k=-5": (422, "k must be a whole number from 2 to 1000."),
    "k=5.5": (422, "k must be a whole number from 2 to 1000."),
    "k=100000000000000000000": (422, "k must be a whole number from 2 to 1000."),
    "k=4": (
        409,
        (
            "k = 4 is below 5, the k that these data were released with: classes can be joined to"
            " larger ones, not split."
        ),
    ),
    "lang=fr": (422, "lang must be zh or en."),
    "limit=0": (422, "limit must be a whole number from 1 to 10000."),
    "from=2023-01-03": (
        422,
        "The parameters are start_date, end_date, k, lang, limit, offset, each once.",
    ),
    "k=5&k=6": (
        422,
        "The parameters are start_date, end_date, k, lang, limit, offset, each once.",
    ),
    "offset=-1": (422, "offset must be a whole number from 0 to 1000000000."),
}


@pytest.mark.parametrize(("query", "said"), MISTAKES.items())
async def test_a_request_that_is_none_is_refused_in_one_sentence(
    client: httpx.AsyncClient, query: str, said: tuple[int, str]
) -> None:
    answer = await client.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()) == (said[0], {"detail": said[1]})


async def test_pages_follow_each_other_and_hold_every_row_once(client: httpx.AsyncClient) -> None:
    whole = await client.get(PATH)
    rows: list[object] = []
    url = f"{PATH}?limit=50"
    while url:
        page = await client.get(url)
        rows += page.json()["data"]
        assert page.headers["x-total-count"] == str(whole.json()["count"])
        url = re.sub(r'^<(.*)>; rel="next"$', r"\1", page.headers.get("link", ""))
    assert rows == whole.json()["data"]
    assert "link" not in whole.headers


async def test_what_has_not_changed_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await client.get(PATH)
    for tags in (first.headers["etag"], f'"x", W/{first.headers["etag"]}', "*"):
        again = await client.get(PATH, headers={"If-None-Match": tags})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
    other = await client.get(f"{PATH}?k=6", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


async def test_releases_are_listed_newest_first(office: Office, client: httpx.AsyncClient) -> None:
    answer = (await client.get("/api/releases?limit=2")).json()
    assert (answer["count"], answer["total"]) == (2, 3)
    assert [entry["start"] for entry in answer["data"]] == [
        "2023-01-05T00:00:00+08:00",
        "2023-01-04T00:00:00+08:00",
    ]
    [oldest] = (await client.get("/api/releases?offset=2")).json()["data"]
    assert oldest["end"] == "2023-01-04T00:00:00+08:00"
    assert (oldest["stream"], oldest["k"], oldest["total_records"]) == ("toll", K, N)
    n_repeated = N - len({each.truck for each in office.sent[0]})
    assert oldest["suppressed_records"] == n_repeated
    assert oldest["closed_at"] == "2033-05-18T11:33:20+08:00"


async def test_without_the_token_nothing_is_told(office: Office) -> None:
    async with office.client(token=TOKEN) as client:
        for path in (PATH, "/api/releases"):
            for shown in (
                {},
                {"Authorization": "Bearer guess"},
                {"Authorization": f"Basic {TOKEN}"},
            ):
                answer = await client.get(path, headers=shown)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json() == {"detail": "a bearer token is needed"}
            shown = {"Authorization": f"Bearer {TOKEN}"}
            assert (await client.get(path, headers=shown)).status_code == 200


async def test_who_asks_too_often_waits(office: Office) -> None:
    async with office.client(per_minute=2, token=TOKEN) as client:
        shown = {"Authorization": f"Bearer {TOKEN}"}
        codes = [(await client.get("/api/releases", headers=h)).status_code for h in (shown, {})]
        assert codes == [200, 401]  # a guess counts, too
        refused = await client.get("/api/releases", headers=shown)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
        assert "2 requests a minute" in refused.json()["detail"]
        office.now_s += 30
        assert (await client.get("/api/releases", headers=shown)).status_code == 200


def test_one_client_does_not_use_up_the_requests_of_another_and_few_are_remembered() -> None:
    limit = RateLimit(1, monotonic=lambda: 0.0)
    assert limit.wait_s("a") == 0
    limit.count("a")
    assert [limit.wait_s("a"), limit.wait_s("a"), limit.wait_s("b")] == [60, 60, 0]
    for i in range(10_000):
        limit.count(f"c{i}")
    assert limit.wait_s("a") == 0  # forgotten


def test_requests_that_came_at_once_and_beyond_the_limit_are_waited_for() -> None:
    limit = RateLimit(60, monotonic=lambda: 0.0)
    for _ in range(100):
        limit.count("a")
    assert limit.wait_s("a") == pytest.approx(41)


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("token", [None, TOKEN])
def test_no_request_is_answered_otherwise_than_openapi_says(
    office: Office, token: str | None, mode: str
) -> None:
    # Here, because it takes half a second to load, which every process of a run would spend.
    import schemathesis  # noqa: PLC0415
    from schemathesis import GenerationMode  # noqa: PLC0415
    from schemathesis.core.result import Ok  # noqa: PLC0415
    from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: PLC0415

    schema = schemathesis.openapi.from_asgi("/openapi.json", office.application(token=token))
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    n_operations = 0
    for found in schema.include(path_regex="^/api/").get_all_operations():
        assert isinstance(found, Ok)
        n_operations += 1

        @settings(
            max_examples=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=found.ok().as_strategy(generation_mode=GenerationMode(mode)))
        def answers_as_documented(case: schemathesis.Case[Any]) -> None:
            # OpenAPI cannot say that one date must not be before another.
            case.call_and_validate(headers=headers, excluded_checks=[positive_data_acceptance])

        answers_as_documented()
    assert n_operations == 2


async def test_openapi_alone_is_enough_to_ask(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    asked = document["paths"][PATH]["get"]
    assert asked["operationId"] == "exit_hourly_flow_k_anonymized"
    for parameter in asked["parameters"]:
        assert len(parameter["description"]) > 15
        assert parameter.get("examples") or parameter["schema"].get("examples")
    assert {"200", "304", "409", "422", "429"} <= set(asked["responses"])
    shape = document["components"]["schemas"]["TollClass"]["properties"]
    assert all("description" in shape[name] for name in ("truck_count", "avg_toll"))
    assert "yuan" in shape["avg_toll"]["description"]


def language_model(office: Office) -> "Client":
    """Return a client of the tools; what it needs is slow to load."""
    from mcp import Client  # noqa: PLC0415

    from anonymizer.web.mcp_tools import tool_server  # noqa: PLC0415

    return Client(tool_server(office.queries))


async def test_a_language_model_asks_the_same_and_can_change_nothing(
    office: Office, client: httpx.AsyncClient
) -> None:
    async with language_model(office) as model:
        tools = {tool.name: tool for tool in (await model.list_tools()).tools}
        assert set(tools) == {"exit_hourly_flow_k_anonymized", "list_releases"}
        for tool in tools.values():
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
        asked = {"start_date": "2023-01-03", "end_date": "2023-01-04", "k": 7, "limit": 10_000}
        told = await model.call_tool("exit_hourly_flow_k_anonymized", asked)
        assert told.structured_content == await ask(client, **asked, lang="en")
        releases = await model.call_tool("list_releases", {})
        assert releases.structured_content is not None
        assert releases.structured_content["total"] == 3
        refused = await model.call_tool("exit_hourly_flow_k_anonymized", {"k": 3})
        assert refused.is_error
        assert "k = 3 is below 5" in str(refused.content)


@pytest.mark.parametrize("asked", [{"start": "2023-01-03"}, {"k": 1}, {"lang": "fi"}, {"limit": 0}])
async def test_a_language_model_is_refused_what_http_refuses_with_the_same_sentence(
    office: Office, client: httpx.AsyncClient, asked: dict[str, Any]
) -> None:
    over_http = await client.get(PATH, params=asked)
    assert over_http.status_code == 422
    async with language_model(office) as model:
        [tool] = [t for t in (await model.list_tools()).tools if t.name.startswith("exit")]
        assert tool.input_schema["additionalProperties"] is False
        told = await model.call_tool(tool.name, asked)
    assert told.is_error
    assert over_http.json()["detail"] in str(told.content)
