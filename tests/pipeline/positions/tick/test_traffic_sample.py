"""The sample of traffic holds the newest, within its bounds, and no text of it tells of anybody."""

from typing import Any

import numpy as np
import pytest

from anonymizer.pipeline.positions.tick.traffic_sample import TrafficSample
from tests.pipeline.positions.support import NETWORK, NOW, Rig, delivery

KEPT_S, N = 60.0, 8
SETTINGS: dict[str, Any] = {"watch": {"evidence_s": KEPT_S, "reports": "evidence"}}


def ticks(rig: Rig, n: int, *, first: int = 0, report: bool = True) -> None:
    for t in range(first, first + n):
        said = [delivery(f"d{i}", (i + t) % 25, NOW + t) for i in range(N)] if report else []
        rig.publish(*said, now=NOW + t)


def sample_of(rig: Rig) -> TrafficSample:
    assert rig.flow.sample is not None
    return rig.flow.sample


def test_without_the_setting_nothing_is_kept() -> None:
    assert Rig().flow.sample is None


def test_releases_are_kept_for_as_long_as_asked_and_reports_for_longer() -> None:
    rig = Rig(**SETTINGS)
    assert sample_of(rig).traffic() is None
    ticks(rig, 500)
    traffic = sample_of(rig).traffic()
    assert traffic is not None
    newest = NOW + 499
    assert [each.event_s for each in traffic.released] == list(
        np.arange(newest - KEPT_S, newest + 1)
    )
    pace = rig.flow.mobile.engine.operator.pace
    before_s = pace.longest_ttl_s + pace.longest_epoch_s
    assert traffic.reports[0].event_s == max(NOW, newest - KEPT_S - before_s)


def test_beyond_its_bounds_the_oldest_is_forgotten_and_a_release_needs_the_reports_before_it() -> (
    None
):
    rig = Rig(**SETTINGS)
    whole = sample_of(rig)
    small = TrafficSample(
        keep_s=KEPT_S, before_s=10, keys=rig.flow.mobile.devices.keys, most_places=20 * N
    )
    rig.flow.sample = small
    ticks(rig, 40)
    traffic = small.traffic()
    assert traffic is not None
    assert len(traffic.reports) == 20
    assert traffic.released[0].event_s == traffic.reports[0].event_s + 10
    tiny = TrafficSample(keep_s=KEPT_S, before_s=0, keys=rig.flow.mobile.devices.keys, most_bytes=1)
    rig.flow.sample = tiny
    ticks(rig, 3, first=40)
    assert tiny.traffic() is None
    assert whole.traffic() is None


def test_a_sample_that_was_cleared_needs_the_reports_before_a_release_anew() -> None:
    rig = Rig(**SETTINGS)
    rig.flow.sample = TrafficSample(keep_s=KEPT_S, before_s=10, keys=rig.flow.mobile.devices.keys)
    ticks(rig, 5)
    rig.flow.sample.clear()
    ticks(rig, 20, first=5)
    traffic = rig.flow.sample.traffic()
    assert traffic is not None
    assert traffic.reports[0].event_s == NOW + 5
    assert traffic.released[0].event_s == NOW + 15


def test_who_passes_through_a_privacy_zone_is_where_it_counts() -> None:
    circle = {"lat": NETWORK.lat[12], "lon": NETWORK.lon[12], "radius_m": 30}
    rig = Rig(zones=[{"circle": circle}], presence={"ttl_s": 100}, **SETTINGS)
    rig.publish(delivery("a", 7, NOW), delivery("b", 7, NOW))
    rig.publish(delivery("a", 12, NOW + 1), now=NOW + 1)
    rig.publish(delivery("b", 7, NOW + 2), now=NOW + 2)
    traffic = sample_of(rig).traffic()
    assert traffic is not None
    assert traffic.reports[1].node.tolist() == [12]


def test_a_device_keeps_its_key_and_reports_that_did_not_count_are_left_out() -> None:
    rig = Rig(**SETTINGS)
    ticks(rig, 2)
    late = [delivery(f"d{i}", 3, NOW - 5) for i in range(N)]
    rig.publish(*late, now=NOW + 2)
    traffic = sample_of(rig).traffic()
    assert traffic is not None
    assert [each.event_s for each in traffic.reports] == [NOW, NOW + 1]
    one, two = (sorted(each.device.tolist()) for each in traffic.reports)
    assert one == two
    assert len(set(one)) == N


@pytest.mark.parametrize("text", [repr, str])
def test_no_text_of_it_reveals_a_device_or_a_place(text: type) -> None:
    rig = Rig(**SETTINGS)
    ticks(rig, 1)
    traffic = sample_of(rig).traffic()
    assert traffic is not None
    said = text(traffic) + text(traffic.reports[0])
    assert not any(character.isdigit() for character in said.partition(" at 0x")[0])
    assert "SampledTick(...)" in said
