import re
import threading
from collections.abc import AsyncIterator, Iterable

import httpx
import pytest
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from anonymizer import __version__
from anonymizer.observe.metrics import FlowCollector, new_registry
from anonymizer.web import create_application
from tests.observe.collected import busy_rig, registry_of


class Site:
    """The application, and what stands against its health."""

    def __init__(self) -> None:
        self.dying: list[str] = []
        self.unready: list[str] = []
        application = create_application(
            registry_of(busy_rig()),
            alive=lambda: self.dying,
            ready=lambda: self.dying + self.unready,
        )
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(application), base_url="http://gateway"
        )


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    async with site.client:
        yield site


async def test_a_gateway_without_problems_is_healthy_and_ready(site: Site) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await site.client.get(path)
        assert answer.status_code == 200
        assert answer.json() == {"status": "ok", "problems": [], "notes": []}


async def test_a_gateway_without_its_broker_is_healthy_but_not_ready(site: Site) -> None:
    site.unready.append("broker: not connected")
    assert (await site.client.get("/healthz")).status_code == 200
    answer = await site.client.get("/readyz")
    assert answer.status_code == 503
    problems = ["broker: not connected"]
    assert answer.json() == {"status": "failing", "problems": problems, "notes": []}
    site.unready.clear()
    assert (await site.client.get("/readyz")).status_code == 200


async def test_a_gateway_that_stands_still_is_neither(site: Site) -> None:
    site.dying.append("no tick for 11 s")
    for path in ("/healthz", "/readyz"):
        assert (await site.client.get(path)).status_code == 503


async def test_metrics_are_text_unless_the_scraper_asks_for_openmetrics(site: Site) -> None:
    answer = await site.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(CONTENT_TYPE_LATEST.partition(";")[0])
    assert "anonymizer_accounting_imbalance 0.0" in answer.text
    assert "secret" not in answer.text

    answer = await site.client.get(
        "/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"}
    )
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = text_string_to_metric_families(answer.text)  # type: ignore[no-untyped-call]
    assert "anonymizer_positions" in {family.name for family in families}


async def test_metrics_are_computed_once_a_second_whatever_format_is_asked_for() -> None:
    now, scrapes = [100.0], []

    class Counting(Collector):
        def collect(self) -> Iterable[Metric]:
            scrapes.append(now[0])
            return [CounterMetricFamily("scrapes", "How many.", len(scrapes))]

    registry = CollectorRegistry()
    registry.register(Counting())
    scrapes.clear()
    application = create_application(registry, alive=list, ready=list, monotonic=lambda: now[0])
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:

        async def scrape(version: str) -> str:
            accept = f"{version};q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
            answer = await client.get("/metrics", headers={"accept": accept})
            assert answer.status_code == 200
            return answer.text

        for i in range(20):
            assert "scrapes_total 1.0" in await scrape(f"text/plain;version=1.{i}.0")
        for i in range(20):
            text = await scrape(f"application/openmetrics-text;version=1.{i}.0")
            assert "scrapes_total 2.0" in text
            assert text.endswith("# EOF\n")
        now[0] += 0.9
        assert "scrapes_total 1.0" in await scrape("text/plain")
        now[0] += 0.1
        assert "scrapes_total 3.0" in await scrape("text/plain")
    assert scrapes == [100.0, 100.0, 101.0]


async def test_a_scrape_runs_on_the_loop_where_no_tick_can_be_half_done() -> None:
    rig, threads = busy_rig(), set()

    def note() -> list[str]:
        threads.add(threading.current_thread())
        return []

    collector = FlowCollector(
        rig.flow, rig.inbox, n_queued_ticks=lambda: len(note()), connected=lambda: True
    )
    application = create_application(new_registry(collector), alive=note, ready=note)
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        for path in ("/metrics", "/healthz", "/readyz"):
            assert (await client.get(path)).status_code == 200
    assert threads == {threading.current_thread()}


async def test_exact_counts_are_for_the_bearer_of_the_token_alone() -> None:
    rig = busy_rig()
    collector = FlowCollector(
        rig.flow,
        rig.inbox,
        n_queued_ticks=lambda: 1,
        connected=lambda: True,
        figures=lambda: rig.flow.public_figures.shown,
    )

    async def received(token: str | None, shown: str | None) -> float | int:
        """Return how many positions were received, or the status of a refusal."""
        application = create_application(
            new_registry(collector),
            exact=registry_of(rig),
            token=token,
            alive=list,
            ready=list,
        )
        headers = {} if shown is None else {"authorization": f"Bearer {shown}"}
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            answer = await client.get("/metrics", headers=headers)
            if not answer.is_success:
                return answer.status_code
            again = await client.get("/metrics")  # what is cached for one is not for the other
            assert "anonymizer_received_total" not in again.text
        value = re.search(r"^anonymizer_received_total (\S+)$", answer.text, re.MULTILINE)
        return float(value[1]) if value else 0

    assert await received("sesame", "sesame") == 9
    assert await received("sesame", None) == 0
    assert await received("sesame", "barley") == 401
    assert await received(None, "sesame") == 0


async def test_the_interface_describes_itself(site: Site) -> None:
    api = (await site.client.get("/openapi.json")).json()
    assert api["info"]["version"] == __version__
    assert {"/healthz", "/readyz", "/metrics"} <= api["paths"].keys()


async def test_nothing_else_is_served(site: Site) -> None:
    assert (await site.client.get("/devices")).status_code == 404
    assert (await site.client.post("/metrics")).status_code == 405
