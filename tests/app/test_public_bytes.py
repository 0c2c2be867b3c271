"""No public byte tells how a device left: whether into a zone, off the roads, or by its switch.

Two runs of the real flow differ in what one device does from one moment on. Everything is compared
that anybody may read, second by second, with the fleet at the edge of every step: the own devices
of whoever looks bring it there.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from prometheus_client import generate_latest

from anonymizer.app.gateway.home_assistant import state
from anonymizer.app.gateway.input_watch import InputWatch
from anonymizer.app.gateway.own_metrics import OwnMetrics
from anonymizer.app.gateway.own_reports import rejected
from anonymizer.app.gateway.sides import GatewaySide, Sides
from anonymizer.app.live_map.screen import AnalystView
from anonymizer.networks import load_network
from anonymizer.outputs.output_metrics import OutputCollector
from anonymizer.pipeline.ports import Delivery
from tests.lanes import each_of_both
from tests.pipeline.positions.support import NOW, Rig, flow_settings

ROADS = load_network("grid:12x12")
K = 4
N_OTHERS = 3 * K
TTL_S, LEAVES_S, END_S = 20, 30, 70
REPORT_S = 10
HOME = 66
OFF_DEG = 0.0085
"""North of `HOME`: beyond the last road, and not so far that nobody would believe it."""
TABLES: dict[str, Any] = {
    "adka": {"density_steps": [], "k_values": [K]},
    "region": {"mode": "session"},
    "presence": {"ttl_s": float(TTL_S), "max_behind_s": 5.0},
    "session": {"epoch_s": 15.0, "beat_s": 5.0},
    "device_zones": {"topic": "zones/{device}"},
    "readings": [{"name": "speed_mps", "lo": 0, "hi": 50}],
    "inputs": [{"topic": "positions/{device}", "within": {"speed_mps": (0, 100)}}],
}


class Heard(NamedTuple):
    """Where a device is."""

    lat: float
    lon: float


def sent(device: str, at: Heard | None, now: float) -> list[Delivery]:
    """Return what a device sends in a second; it moves every counter there is."""
    if at is None:
        return []
    fix = {"lat": at.lat, "lon": at.lon, "readings": {"speed_mps": 90}}
    times = [now - 0.5, now, now, now - 9]
    bodies = [{**fix, "ts": ts} for ts in times] + [{**fix, "readings": {}, "ts": now}]
    payloads = [json.dumps(body).encode() for body in bodies]
    return [Delivery(f"positions/{device}", each, 0) for each in [*payloads, b"{"]]


class World(Rig):
    """A flow, and all that is public about it."""

    def __init__(self, **tables: Any) -> None:  # noqa: ANN401  settings of any kind
        self.now = NOW
        merged = TABLES | tables
        super().__init__(roads=ROADS, monotonic=lambda: self.now, **merged)
        self.settings = flow_settings(**merged)
        self.screen = AnalystView(
            "session", ROADS.node_id, self.flow, monotonic=lambda: self.now, silent=str
        )
        figures = [OutputCollector(self.outputs.figures)]
        metrics = OwnMetrics(
            self.flow,
            self.inbox,
            n_queued_ticks=int,
            connected=lambda: True,
            n_dropped=lambda: None,
            sides=Sides([GatewaySide(exact=figures, public=figures)]),
        )
        self.metrics = metrics
        self.watch = InputWatch(
            self.settings, self.flow, connections=lambda: (), of_records=lambda: ()
        )

    def second(self, *deliveries: Delivery) -> dict[str, bytes]:
        """Let a second pass; return every public byte, and what the operator reads."""
        self.now += 1
        self.put(*deliveries)
        output = self.tick(now=self.now)
        self.settle(output, [True] * len(output.messages))
        self.screen.see(output.messages)
        self.watch.look(self.now)
        if self.now % REPORT_S == 0:
            self.watch.turn()
        shown = self.flow.public_figures.shown
        return {
            "readyz": json.dumps([self.watch.problems, self.watch.notes]).encode(),
            "status/why": self.watch.silent.encode(),
            "messages": b"\n".join(each.topic.encode() + each.payload for each in output.messages),
            "metrics": generate_latest(self.metrics.public),
            "exact": repr(self.flow.ledger.counts()).encode(),
            "state": state(self.settings, shown, ready=True).payload,
            "rejected": json.dumps(rejected(shown)).encode(),
            "map": msgspec.json.encode([self.screen.rows(), self.screen.pulse.take(self.now)]),
        }


def place(node: int) -> Heard:
    return Heard(ROADS.lat[node] + 1e-5, ROADS.lon[node])


Behaviour = Callable[[World, float], Heard | None]
"""What a device does, given the seconds since it begins to."""


def stays(_: World, after_s: float) -> Heard | None:  # noqa: ARG001  like the others
    return place(HOME)


def is_absent(_: World, after_s: float) -> Heard | None:  # noqa: ARG001
    return None


def is_off_the_roads(_: World, after_s: float) -> Heard | None:  # noqa: ARG001
    return place(HOME)._replace(lat=ROADS.lat[HOME] + OFF_DEG)


def is_in_a_zone(world: World, after_s: float) -> Heard | None:
    at = place(HOME)
    zones = [{"circle": {"lat": at.lat, "lon": at.lon, "radius_m": 40}}]
    return said_once(world, zones, after_s)


def opts_out(world: World, after_s: float) -> Heard | None:
    return said_once(world, [{"everywhere": True}], after_s)


def demands_more(world: World, after_s: float) -> Heard | None:
    return said_once(world, [{"k": K + 1}], after_s)


def is_in_no_group(world: World, after_s: float) -> Heard | None:
    """Stay on a road, and demand more of it than there is."""
    return said_once(world, [{"road_m": 500_000}], after_s)


def said_once(world: World, statement: object, after_s: float) -> Heard | None:
    if after_s == 0:
        say(world, statement)
    return place(HOME)


def say(world: World, statement: object) -> None:
    assert world.flow.device_zones is not None
    payload = json.dumps(statement).encode() if statement else b""
    world.flow.device_zones.put([Delivery("zones/victim", payload, 0, retained=True)])


@cache
def told(
    behaviour: Behaviour, n_own: int, *, from_s: int = LEAVES_S, until_s: int = END_S
) -> list[dict[str, bytes]]:
    """Return what is public, second by second, if the victim behaves so for some time."""
    world = World()
    rng = np.random.default_rng(4)
    devices = [f"d{i}" for i in range(N_OTHERS)] + [f"own{i}" for i in range(n_own)]
    at = [place(int(node)) for node in rng.integers(0, ROADS.n_nodes, len(devices))]
    seconds = []
    for second in range(END_S):
        now = world.now + 1
        if second == until_s:
            say(world, None)
        victim = behaviour if from_s <= second < until_s else stays
        messages = sent("victim", victim(world, second - from_s), now)
        for device, where in zip(devices, at, strict=True):
            messages += sent(device, where, now)
        seconds.append(world.second(*messages))
    return seconds


def first_differences(one: list[dict[str, bytes]], other: list[dict[str, bytes]]) -> dict[str, int]:
    """Return since when each output differs."""
    found: dict[str, int] = {}
    for second, (a, b) in enumerate(zip(one, other, strict=True)):
        for name in a:
            if a[name] != b[name]:
                found.setdefault(name, second)
    return found


AT_ANY_EDGE = pytest.mark.parametrize("n_own", range(K))


BACK_AGAIN = [END_S, LEAVES_S + 28, LEAVES_S + 7]
"""Never, after its groups have ended, and while they last."""


@pytest.mark.parametrize(("n_own", "until_s"), each_of_both(range(K), BACK_AGAIN))
@pytest.mark.parametrize("leaves", [is_in_a_zone, is_off_the_roads])
def test_no_public_byte_tells_why_a_device_is_not_heard(
    leaves: Behaviour, until_s: int, n_own: int
) -> None:
    silent, left = (told(each, n_own, until_s=until_s) for each in (is_absent, leaves))
    found = first_differences(silent, left)
    assert found.pop("exact") <= LEAVES_S + 1  # so the comparison is known to work
    assert found == {}


@pytest.mark.parametrize(
    ("n_own", "never_heard"), each_of_both(range(K), [is_in_a_zone, is_off_the_roads, opts_out])
)
def test_a_device_that_was_never_published_changes_no_public_byte(
    never_heard: Behaviour, n_own: int
) -> None:
    absent, there = (told(each, n_own, from_s=0) for each in (is_absent, never_heard))
    assert first_differences(absent, there).keys() == {"exact"}


@AT_ANY_EDGE
def test_a_device_on_a_road_that_is_in_no_group_is_one_of_k_that_move_a_counter(n_own: int) -> None:
    absent, there = (told(each, n_own, from_s=0) for each in (is_absent, is_in_no_group))
    found = first_differences(absent, there)
    found.pop("exact")
    n_devices = N_OTHERS + n_own + 1
    assert found.keys() == (set() if n_devices % K else {"rejected", "metrics", "state"})


BESIDE: dict[Behaviour, Behaviour] = {opts_out: is_absent, demands_more: stays}


@pytest.mark.parametrize(("n_own", "behaviour"), each_of_both(range(K), BESIDE))
def test_figures_tell_no_more_of_a_statement_than_the_release(
    behaviour: Behaviour, n_own: int
) -> None:
    """The groups of a device that opts out end, and those of one that demands more are larger."""
    # As above, so that who is absent is looked at once.
    found = first_differences(
        *(told(each, n_own, until_s=END_S) for each in (BESIDE[behaviour], behaviour))
    )
    found.pop("exact", None)
    assert "rejected" not in found
    assert min(found.values(), default=END_S) == found.get("messages", END_S)


def test_the_figures_move_with_the_fleet() -> None:
    last = told(stays, 0)[-1]
    assert json.loads(last["state"])["devices"] == N_OTHERS
    counts = json.loads(last["rejected"])
    assert counts.keys() == {
        "duplicate",
        *(f"invalid/{reason}" for reason in ("malformed", "ancient_time", "not_selected")),
    }
    assert all(n and n % K == 0 for n in counts.values())
    assert b'anonymizer_readings_clamped_total{attribute="speed_mps"} 0.0' not in last["metrics"]
