"""The rules for counting, as the client applies them."""

import json

import numpy as np
import pytest

from anonymizer.client.messages import Collector
from anonymizer.client.published_records import GRACE_S
from anonymizer.client.releases import Releases
from anonymizer.errors import InputError
from tests.client.paper import message, releases, snapshot


def test_the_newest_message_about_a_pseudonym_holds_until_its_end() -> None:
    found = releases(
        message("ab", [10, 11]), message("ab", [11, 12], 30, 60), message("cd", [13], 40, 70)
    )
    assert [found.devices(at) for at in (-1, 0, 29, 30, 45, 59, 60, 65, 70)] == [
        *(0, 2, 2, 2, 4, 4, 2, 2, 0)
    ]
    assert found.n_pseudonyms == 4
    assert (found.first, found.now) == (0, 40)


def test_the_age_of_what_is_known_of_a_device_begins_anew_with_each_message_about_it() -> None:
    found = releases(message("ab", [10]), message("ab", [11], 30, 60), message("cde", [12], 20, 50))
    ages = found.ages([10, 25, 35, 55, 90])
    assert ages["devices"].tolist() == [2, 5, 5, 2, 0]
    assert ages["mean_s"][:4].tolist() == [10, (2 * 25 + 3 * 5) / 5, (2 * 5 + 3 * 15) / 5, 25]
    assert ages["oldest_s"][:4].tolist() == [10, 25, 15, 25]
    assert ages["p95_s"][1] == np.quantile([25, 25, 5, 5, 5], 0.95)
    assert np.isnan(ages["mean_s"][4])
    assert found.ages()["mean_s"].tolist() == [(2 * 0 + 3 * 10) / 5]
    at = found.at(35)
    assert sorted(zip(at["age_s"], at["devices"], strict=True)) == [(5, 2), (15, 3)]


def test_a_message_that_is_a_little_late_leaves_no_gap_and_a_later_one_does() -> None:
    late = releases(message("ab", [10]), message("ab", [10], 30 + GRACE_S, 60))
    assert late.devices(31) == 2
    too_late = releases(message("ab", [10]), message("ab", [10], 31 + GRACE_S, 60))
    assert too_late.devices(31) == 0


def test_new_pseudonyms_of_the_same_devices_are_not_counted_beside_the_old_ones() -> None:
    found = releases(message("ab", [10]), message("xy", [10], 30.2, 60))
    assert all(found.devices(at) <= 2 for at in (0, 29.9, 30, 30.1, 30.2, 31, 45))
    assert found.n_pseudonyms == 4


def test_a_device_that_changes_its_group_is_in_the_new_one() -> None:
    found = releases(message("ab", [10]), message("cd", [11]), message("bcd", [12], 10, 40))
    assert found.devices(15) == 4
    at = found.at(15)
    assert sorted(zip(at["group"], at["devices"], strict=True)) == [("ab", 1), ("bcd", 3)]


def test_one_message_about_each_device_counts_as_one_about_their_group() -> None:
    lines = [
        json.dumps({"pseudonym": p, "time": 0, "until": 30, "region": [10], "k": 2}).encode()
        for p in "ab"
    ]
    assert releases(*lines).devices(10) == 2


def test_a_line_without_a_region_is_a_suppressed_position_and_no_device() -> None:
    line = b'{"pseudonym": "", "time": 0, "region": [], "k": 0}'
    found = releases(message("ab", [10]), line)
    assert found.devices(0) == 2
    assert found.left_out == {"suppressed": 1}


def test_a_late_subscriber_counts_each_group_of_the_snapshot_once() -> None:
    early, again = message("ab", [10]), message("cd", [11], 5, 35)
    found = releases(snapshot(10, early, again), early, again, message("ab", [12], 30, 60))
    assert found.devices(20) == 4
    assert len(found) == 6


def test_what_a_whole_snapshot_does_not_name_has_ended() -> None:
    groups = message("ab", [10], 0, 100), message("cd", [11], 0, 100)
    found = releases(*groups, snapshot(50, groups[0]))
    assert (found.devices(49), found.devices(50)) == (4, 2)
    stopped = releases(*groups, snapshot(50))
    assert (stopped.devices(49), stopped.devices(50)) == (4, 0)


def test_a_part_of_a_snapshot_ends_nothing() -> None:
    groups = message("ab", [10], 0, 100), message("cd", [11], 0, 100)
    part = snapshot(50, groups[0], of=2)
    assert releases(*groups, part).devices(60) == 4
    whole = releases(*groups, part, snapshot(50, part=1, of=2))
    assert whole.devices(60) == 2
    mixed = releases(*groups, part, snapshot(60, part=1, of=2))
    assert mixed.devices(70) == 4


def test_a_message_after_a_snapshot_is_not_ended_by_it() -> None:
    found = releases(snapshot(50), message("ab", [10], 49.9, 80))
    assert found.devices(60) == 2


def test_a_snapshot_that_comes_again_does_not_end_what_is_newer() -> None:
    groups = message("ab", [10], 0, 100), message("cd", [11], 60, 100)
    again = snapshot(50, groups[0])
    assert releases(again, *groups, again).devices(70) == 4


def test_a_group_of_a_snapshot_without_a_region_or_time_is_left_out_and_counted() -> None:
    collector = Collector()
    assert collector.take(snapshot(50, message("ab", [10], 0, 100), b'{"group": "G"}'))
    assert not collector.take(b'{"region": [10], "pseudonyms": ["x"]}')
    assert not collector.take(snapshot(60, b"[5]"))
    assert collector.left_out == {"not understood": 3}
    assert collector.columns.pseudonym == ["a", "b"]


def test_moments_lie_between_the_messages() -> None:
    found = releases(message("ab", [10], 7), message("ab", [10], 130, 160))
    assert found.moments(60) == [60, 120]
    with pytest.raises(InputError, match="every_s"):
        found.moments(0)


def test_what_was_long_over_is_forgotten_and_the_rest_counts_as_before() -> None:
    collector = Collector()
    for t in range(0, 300, 10):
        collector.take(message("ab", [10, t], t, t + 10))
    collector.take(message("cd", [11], 5, 400))
    collector.forget(200)
    assert min(collector.columns.until) == 200
    collector.take(message("ab", [11], 300, 310))
    assert len(collector.columns.regions) == 13
    found = Releases(collector.columns, None, collector.left_out)
    assert [found.devices(at) for at in (185, 205, 305)] == [2, 4, 4]


def test_another_version_of_the_contract_is_refused() -> None:
    with pytest.raises(InputError, match="version 2 of the contract, and this client reads"):
        Collector().take(message("ab", [10], v=2))


@pytest.mark.parametrize(
    "payload",
    [
        b"online",
        b"\xff",
        b"[1]",
        b'{"region": 1, "time": "x"}',
        message("ab", [10], values={"no2": [1.0]}),
    ],
)
def test_what_is_no_message_of_the_contract_is_left_out_and_counted(payload: bytes) -> None:
    collector = Collector()
    assert not collector.take(payload)
    assert collector.left_out == {"not understood": 1}


def test_other_topics_are_left_out_and_counted() -> None:
    found = releases(b'{"time": 1, "rejected": {}}', b'{"v": 1, "counts": []}', message("a", [1]))
    assert found.left_out == {"other topic": 2}


def test_nothing_published_is_an_error_that_says_so() -> None:
    with pytest.raises(InputError, match="no releases"):
        _ = releases().now
