"""Continuous evidence: a gateway that attacks its own traffic, and what of that can be seen."""

import asyncio
import json
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from prometheus_client import generate_latest

from anonymizer.app.gateway import own_evidence as own_evidence_module
from anonymizer.app.gateway.own_evidence import OwnEvidence
from anonymizer.audit import AuditReport
from anonymizer.audit.evidence.attack_process import AttackJob
from anonymizer.audit.evidence.audit_files import audits_in, name_of_audit, names_of_day
from anonymizer.audit.evidence.evidence import EvidenceReport
from anonymizer.audit.evidence.live_sample import attacked
from anonymizer.networks import load_network
from anonymizer.observe.metrics import new_registry
from anonymizer.transport.local_brokers import LocalBroker
from tests.audit.evidence.sampled import SESSION, traffic_of
from tests.end_to_end import START_S, client, eventually, quick, send, serving
from tests.pipeline.positions.support import NETWORK, NOW, Rig, delivery, flow_settings

NIGHT = datetime(2027, 1, 15, tzinfo=UTC)


class Watch:
    """A clock that is set by hand."""

    def __init__(self, at: datetime) -> None:
        self.at_s = at.timestamp()

    def __call__(self) -> float:
        return self.at_s


def own_evidence(rig: Rig, reports: Path, wall: Watch, *, period_s: float = 3600) -> OwnEvidence:
    settings = flow_settings(watch={"evidence_s": period_s, "reports": str(reports)})
    assert rig.flow.sample is not None
    return OwnEvidence(settings, NETWORK, rig.flow.sample, wall=wall, niceness=0)


def a_rig(n_ticks: int = 20) -> Rig:
    rig = Rig(watch={"evidence_s": 60, "reports": "unused"})
    for t in range(n_ticks):
        rig.publish(*(delivery(f"d{i}", (i + t) % 25, NOW + t) for i in range(9)), now=NOW + t)
    return rig


class Attacks:
    """Attacks in this process: their own one loads for a second what others have tried."""

    problem = ""

    def __init__(self, *, niceness: int) -> None:
        pass

    def report(self, job: AttackJob, *, within_s: float) -> AuditReport:
        assert within_s > 0
        return attacked(*job)

    def kill(self) -> None:
        """Do nothing: it has ended."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_evidence_module, "AttackProcess", Attacks)


class BrokenSample:
    """A sample that cannot be taken, and an error that tells of a device."""

    n_asked = 0

    def traffic(self) -> None:
        self.n_asked += 1
        raise KeyError("d7 was at 60.1, 24.9")


async def test_a_watch_that_fails_in_the_gateway_itself_goes_on_and_rings(tmp_path: Path) -> None:
    sample: Any = BrokenSample()
    settings = flow_settings(watch={"evidence_s": 60, "reports": str(tmp_path)})
    evidence = OwnEvidence(settings, NETWORK, sample, wall=Watch(NIGHT), niceness=0)
    with structlog.testing.capture_logs() as log:
        running = asyncio.create_task(evidence.run())
        for n in (1, 2):
            evidence.ask()
            await attacked_until(evidence, n)
        assert not running.done()
        running.cancel()
    assert sample.n_asked == evidence.figures.n_runs["failed"] == 2
    shown = generate_latest(new_registry(*evidence.side().exact)).decode()
    assert re.search(r"^anonymizer_evidence_overdue 1", shown, re.MULTILINE)
    assert [each["why"] for each in log] == ["KeyError in anonymizer.app.gateway.own_evidence"] * 2
    assert "60.1" not in str(log)


def modes_in(folder: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def attacked_until(evidence: OwnEvidence, n: int) -> None:
    async def look() -> int:
        return sum(evidence.figures.n_runs.values())

    # The first attacks in a fresh checkout compile their kernels.
    await eventually(look, lambda n_runs: n_runs >= n, within_s=START_S)


async def test_it_attacks_on_demand_and_at_the_end_of_each_period(tmp_path: Path) -> None:
    wall, reports = Watch(NIGHT + timedelta(hours=5.5)), tmp_path / "evidence"
    evidence = own_evidence(a_rig(), reports, wall)
    assert evidence.page() is None
    running = asyncio.create_task(evidence.run())
    evidence.ask()
    await attacked_until(evidence, 1)
    wall.at_s += 1800
    evidence.ask()  # it would look at the clock once a minute
    await attacked_until(evidence, 2)
    running.cancel()
    page = evidence.page()
    assert page is not None
    assert "No promise is broken." in page
    assert evidence.figures.n_runs == {"done": 2, "partial": 0, "failed": 0, "empty": 0}
    assert evidence.figures.at_s == wall.at_s
    assert evidence.figures.sample_s == 19
    assert [each.name for each in audits_in(reports)] == [
        "audit-2027-01-15T053000Z.json",
        "audit-2027-01-15T060000Z.json",
    ]


@pytest.mark.usefixtures("here")
async def test_yesterday_gets_one_page_and_old_files_are_erased(tmp_path: Path) -> None:
    wall = Watch(NIGHT - timedelta(hours=1))
    evidence = own_evidence(a_rig(), tmp_path, wall)
    old = tmp_path / name_of_audit(NIGHT - timedelta(days=40))
    old.write_text("{}")
    running = asyncio.create_task(evidence.run())
    for n, hours in enumerate([0, 1, 1], 1):
        wall.at_s += hours * 3600
        evidence.ask()
        await attacked_until(evidence, n)
    running.cancel()
    assert not old.exists()
    as_page, as_json = (tmp_path / name for name in names_of_day(NIGHT - timedelta(days=1)))
    told = EvidenceReport.model_validate_json(as_json.read_text())
    # What ended at midnight was of the day before; what ended later was not.
    assert [each.source for each in told.audited] == [
        "audit-2027-01-14T230000Z.json",
        "audit-2027-01-15T000000Z.json",
    ]
    assert told.pooled
    assert "It was attacked 2 times" in as_page.read_text()
    assert len({(each.attack, each.adversary) for each in told.results}) == len(told.results)
    assert modes_in(tmp_path) == {0o600}


async def test_without_traffic_nothing_is_attacked(tmp_path: Path) -> None:
    evidence = own_evidence(a_rig(0), tmp_path / "none", Watch(NIGHT))
    running = asyncio.create_task(evidence.run())
    evidence.ask()
    await attacked_until(evidence, 1)
    running.cancel()
    assert evidence.figures.n_runs["empty"] == 1
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("here")
async def test_a_directory_that_cannot_be_written_costs_the_file_and_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    evidence = own_evidence(a_rig(), tmp_path / "file" / "below", Watch(NIGHT))
    running = asyncio.create_task(evidence.run())
    for n in (1, 2):
        evidence.ask()
        await attacked_until(evidence, n)
    assert not running.done()
    running.cancel()
    assert evidence.figures.n_runs["done"] == 2


async def test_the_operator_alone_sees_it_and_it_tells_figures_alone(
    broker: LocalBroker, tmp_path: Path
) -> None:
    reports = tmp_path / "evidence"
    settings: dict[str, Any] = quick(
        broker.url, **SESSION, watch={"evidence_s": 86_400, "reports": str(reports)}
    )
    settings["adka"] = {"density_steps": [], "k_values": [2]}
    roads = load_network("grid:20x20")
    attacked(traffic_of(**SESSION)[0], NETWORK, flow_settings(**SESSION))  # compiles the kernels
    async with serving(tmp_path, settings) as gateway:
        await gateway.until_ready()
        assert (await gateway.get("/evidence")).status_code == 404
        async with client(broker.url, "devices") as connection:
            for round_ in range(12):
                said = [
                    (
                        f"positions/secret-{i}",
                        json.dumps(
                            {"lat": roads.lat[i + round_], "lon": roads.lon[i + round_]}
                        ).encode(),
                    )
                    for i in range(6)
                ]
                await send(connection, said)
                await asyncio.sleep(0.1)
        await gateway.until(lambda now: now.outcomes.get("published", 0) > 0)
        assert (await gateway.post("/evidence")).status_code == 202
        line = await gateway.program.logged("traffic attacked")
        assert line["broken"] == 0
        metrics = (await gateway.get("/metrics")).text
        page = (await gateway.get("/evidence")).text
        async with httpx.AsyncClient() as stranger:
            url = gateway.url
            assert (await stranger.get(f"{url}/evidence")).status_code == 401
            assert (await stranger.post(f"{url}/evidence")).status_code == 401
            assert "anonymizer_evidence" not in (await stranger.get(f"{url}/metrics")).text
        log = "\n".join(gateway.program.lines)
    assert 'anonymizer_evidence{criterion="singling out",figure="control"}' in metrics
    assert "anonymizer_evidence_broken 0.0" in metrics
    written = "".join(each.read_text() for each in reports.iterdir())
    assert "secret" not in written + page + log + metrics
    coordinates = {f"{x:.4f}" for x in (*roads.lat[:20], *roads.lon[:20])}
    assert not coordinates & set(re.findall(r"-?\d+\.\d{4}", written + page + log))


@pytest.mark.parametrize(
    ("watch", "more", "wrong"),
    [
        ({"evidence_s": 3600}, {}, "needs watch.reports, or http.token_file"),
        ({"reports": "here"}, {}, "reports needs evidence_s"),
        ({"evidence_s": 5, "reports": "here"}, {}, "at least 60"),
        (
            {"evidence_s": 60, "reports": "here"},
            {"inputs": [{"kind": "fixed"}]},
            "inputs of mobile devices",
        ),
    ],
)
def test_settings_that_would_show_nothing_are_refused(
    watch: dict[str, object], more: dict[str, object], wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        flow_settings(watch=watch, **more)


class Killed(Attacks):
    """Attacks whose process was killed after some of them."""

    problem = "SIGKILL"

    def report(self, job: AttackJob, *, within_s: float) -> AuditReport:
        reports: list[AuditReport] = []
        attacked(*job, so_far=reports.append)
        assert within_s < 3600
        return reports[3]


async def test_a_run_that_failed_or_never_ended_is_overdue_and_what_it_found_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig, clock_s = a_rig(), [0.0]
    assert rig.flow.sample is not None
    evidence = OwnEvidence(
        flow_settings(watch={"evidence_s": 3600, "reports": str(tmp_path)}),
        NETWORK,
        rig.flow.sample,
        monotonic=lambda: clock_s[0],
    )

    def overdue() -> float:
        return generate_latest(new_registry(*evidence.side().exact)).decode().count("overdue 1.0")

    assert not overdue()
    clock_s[0] = 7201.0  # two periods, and none has ended
    assert overdue()
    for attacks, is_overdue in ((Attacks, False), (Killed, True), (Attacks, False)):
        monkeypatch.setattr(own_evidence_module, "AttackProcess", attacks)
        await evidence._attack()
        assert bool(overdue()) == is_overdue
        assert bool(evidence.figures.n_failed) == is_overdue
        page = evidence.page()
        assert page is not None
        assert ("not reached" in page) == is_overdue
    assert evidence.figures.n_runs == {"done": 2, "partial": 0, "failed": 1, "empty": 0}
