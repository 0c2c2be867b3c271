"""A sample of live traffic under attack: what is found there is what an audit of files finds."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from anonymizer.app.evidence.attack_process import AttackJob, AttackProcess
from anonymizer.app.evidence.live_sample import attacked, for_attacks, sampled
from anonymizer.pipeline.positions.tick.traffic_sample import SampledTraffic
from anonymizer.settings import Settings
from tests.pipeline.positions.support import NETWORK, NOW, Rig, delivery, flow_settings

N, TICKS = 12, 40
SESSION: dict[str, Any] = {
    "region": {"mode": "session", "min_nodes": 2},
    "session": {"beat_s": 0, "epoch_s": 20},
}
WATCH: dict[str, Any] = {"watch": {"evidence_s": 60, "reports": "evidence"}}


def traffic_of(**tables: dict[str, Any]) -> tuple[SampledTraffic, Settings, list[dict[str, Any]]]:
    """Return a sample of devices that walk over the grid, and the messages about them."""
    rig = Rig(**(WATCH | tables))
    walk = np.random.default_rng(0)
    node, messages = walk.integers(0, 25, N), []
    for t in range(TICKS):
        moves = walk.random(N) < 0.5
        node[moves] = walk.integers(0, 25, int(moves.sum()))
        said = [delivery(f"d{i}", int(node[i]), NOW + t) for i in range(N)]
        messages += rig.publish(*said, now=NOW + t)
    assert rig.flow.sample is not None
    traffic = rig.flow.sample.traffic()
    assert traffic is not None
    return traffic, flow_settings(**WATCH, **tables), messages


@pytest.mark.parametrize("tables", [{}, SESSION], ids=["bfs", "session"])
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


def test_a_sound_session_keeps_its_promises_and_bfs_would_break_them() -> None:
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
    report = process.report(AttackJob(traffic, NETWORK, for_attacks(settings)))
    assert report == attacked(traffic, NETWORK, settings)
    assert process.exit_code == 0


def test_a_process_that_is_killed_leaves_no_report() -> None:
    traffic, settings, _ = traffic_of()
    process = AttackProcess(niceness=0)
    process.kill()
    assert process.report(AttackJob(traffic, NETWORK, for_attacks(settings))) is None
    assert process.exit_code == -9


def test_a_process_yields_to_others_and_is_killed_first() -> None:
    code = (
        "import os; from anonymizer.app.evidence.attack_process import yield_to_others;"
        "before = os.nice(0); yield_to_others(2);"
        "print(os.nice(0) - before, open('/proc/self/oom_score_adj').read().strip())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1000"]
