"""A sample of live traffic under attack: what is found there is what an audit of files finds."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anonymizer.audit import stream_audit
from anonymizer.audit.attack import Subject
from anonymizer.audit.case import Case
from anonymizer.audit.evidence.attack_process import AttackJob, AttackProcess
from anonymizer.audit.evidence.live_sample import attacked, for_attacks, sampled
from anonymizer.audit.findings import Finding
from anonymizer.audit.registry import attacks_on
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.traffic_sample import SampledTraffic
from anonymizer.settings import Settings
from tests.audit.evidence.sampled import SESSION, WATCH, N, traffic_of
from tests.end_to_end import START_S
from tests.pipeline.positions.support import NETWORK, NOW, Rig, flow_settings


@pytest.mark.parametrize("tables", [{}, SESSION], ids=["adka", "session"])
def test_the_sample_is_what_was_published(tables: dict[str, Any]) -> None:
    traffic, _, messages = traffic_of(**tables)
    _, released, device_of = sampled(traffic)
    observed = released.observed
    names = NETWORK.node_id
    lives: dict[str, list[tuple[float, tuple[int, ...]]]] = {}
    for each in messages:
        for pseudonym in each["pseudonyms"]:
            of = lives.setdefault(pseudonym, [])
            of.append((each["time"], tuple(each["region"])))
    found = []
    for first, last in zip(observed.first_record_of, observed.first_record_of[1:], strict=False):
        of = []
        for record in range(first, last):
            region = observed.region_of[record]
            starts = observed.first_node_of[region : region + 2]
            nodes = names[observed.node[slice(*starts)]].tolist()
            of.append((observed.time[observed.tick_of[record]], tuple(nodes)))
        found.append(of)
    assert sorted(found) == sorted(lives.values())
    assert len(device_of) == len(lives)
    assert len(set(device_of.tolist())) == N


@pytest.mark.parametrize(
    ("seed", "tick_s", "n_a_tick"), [(2, 2.0, 6), (4, 5.0, 6), (5, 2.0, 6), (10, 2.0, 6)]
)
def test_a_fleet_of_six_that_is_seen_for_a_moment_rings_no_alarm(
    seed: int, tick_s: float, n_a_tick: int
) -> None:
    # Where a region has six places, a blind guess is right in one of six.
    roads, arrivals = load_network("grid:20x20"), np.random.default_rng(seed)
    tables: dict[str, Any] = SESSION | WATCH | {"network": {"snap_limit_m": 60}}
    rig, now = Rig(roads=roads, **tables), float(NOW)
    to_come = [(f"s{i}", roads.lat[i + t], roads.lon[i + t]) for t in range(12) for i in range(6)]
    while to_come:
        n, now = int(arrivals.poisson(n_a_tick)), now + tick_s
        said = [
            Delivery(f"positions/{name}", json.dumps({"lat": lat, "lon": lon}).encode(), 0, False)
            for name, lat, lon in to_come[:n]
        ]
        del to_come[:n]
        rig.publish(*said, now=now)
    assert rig.flow.sample is not None
    traffic = rig.flow.sample.traffic()
    assert traffic is not None
    report = attacked(traffic, roads, flow_settings(**tables))
    assert [(each.attack, each.figures) for each in report.findings if each.fails] == []


def test_a_sound_session_keeps_its_promises_and_adka_would_break_them() -> None:
    traffic, settings, _ = traffic_of(**SESSION)
    assert attacked(traffic, NETWORK, settings).holds
    weak, stated, _ = traffic_of()
    assert attacked(weak, NETWORK, stated).holds
    claims = flow_settings(**WATCH, **SESSION)
    assert not attacked(weak, NETWORK, claims).holds


def test_what_is_left_out_is_named() -> None:
    traffic, settings, _ = traffic_of()
    zone = {"circle": {"lat": 1.0, "lon": 2.0, "radius_m": 50.0}}
    zoned = Settings.model_validate(settings.model_dump() | {"zones": [zone]})
    assert "zone attacks" in attacked(traffic, NETWORK, zoned).left_out


def test_attacks_get_no_secret_and_no_zone() -> None:
    zone = {"circle": {"lat": 1.0, "lon": 2.0, "radius_m": 50.0}}
    broker = {"url": "mqtts://broker", "username": "me", "password": "s3cret"}
    settings = flow_settings(**WATCH, broker=broker, http={"token": "t0ken"}, zones=[zone])
    stripped = for_attacks(settings)
    assert stripped.broker.password is None
    assert stripped.http.token is None
    assert stripped.zones == ()


def test_a_process_finds_what_the_attacks_find_here() -> None:
    traffic, settings, _ = traffic_of(**SESSION)
    process = AttackProcess(niceness=0)
    report = process.report(AttackJob(traffic, NETWORK, for_attacks(settings)), within_s=START_S)
    assert report == attacked(traffic, NETWORK, settings)
    assert report.failed == ()
    assert process.problem == ""


def test_a_process_that_is_killed_leaves_no_report() -> None:
    traffic, settings, _ = traffic_of()
    process = AttackProcess(niceness=0)
    process.kill()
    job = AttackJob(traffic, NETWORK, for_attacks(settings))
    assert process.report(job, within_s=START_S) is None
    assert process.problem.startswith("SIGKILL")


def test_a_process_that_hangs_is_ended_at_its_deadline() -> None:
    traffic, settings, _ = traffic_of()
    process = AttackProcess(niceness=0)
    os.kill(process._process.pid, signal.SIGSTOP)
    job = AttackJob(traffic, NETWORK, for_attacks(settings))
    assert process.report(job, within_s=0.2) is None
    assert process.problem == "took longer than 0 s"


def test_a_process_that_fails_says_where_and_quotes_nothing() -> None:
    traffic, settings, _ = traffic_of()
    broken = traffic.released[0]._replace(member_device=np.array(["secret"]))
    job = AttackJob(SampledTraffic(traffic.reports, [broken]), NETWORK, for_attacks(settings))
    process = AttackProcess(niceness=0)
    assert process.report(job, within_s=START_S) is None
    assert re.fullmatch(r"\w+ in anonymizer\.audit\.evidence\.\w+, line \d+", process.problem)


def test_a_crash_in_compiled_code_is_named_with_the_function_it_was_in() -> None:
    code = (
        "import faulthandler, os; from anonymizer.audit.evidence import attack_process as a;"
        "faulthandler.enable(); a._attack = lambda _: os.kill(os.getpid(), 11); a.main(0)"
    )
    process = AttackProcess(niceness=0, code=code)
    traffic, settings, _ = traffic_of()
    assert process.report(AttackJob(traffic, NETWORK, settings), within_s=START_S) is None
    assert process.problem.startswith(
        "Segmentation fault in audit/evidence/attack_process.py, line"
    )


def test_an_attack_that_fails_costs_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever it is, the rest is found, and the report says class and place of the error."""
    traffic, settings, _ = traffic_of(**SESSION)
    whole = attacked(traffic, NETWORK, settings)

    def broken(case: Case) -> list[Finding]:
        raise IndexError(f"secret {case.device_of}")

    every = attacks_on(Subject.POSITIONS)
    for attack in every:
        steps = [replace(each, mount=broken) if each is attack else each for each in every]
        monkeypatch.setattr(stream_audit, "attacks_on", lambda _, steps=steps: steps)
        report = attacked(traffic, NETWORK, settings)
        monkeypatch.undo()
        [failed] = report.failed
        assert failed.startswith(f"{attack.name}: IndexError")
        assert "secret" not in failed
        own = {each.attack for each in whole.findings} - {each.attack for each in report.findings}
        assert len(own) <= 2


def test_a_process_yields_to_others_and_is_killed_first() -> None:
    code = (
        "import os; from anonymizer.audit.evidence.attack_process import yield_to_others;"
        "before = os.nice(0); yield_to_others(2);"
        "print(os.nice(0) - before, open('/proc/self/oom_score_adj').read().strip())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1000"]
