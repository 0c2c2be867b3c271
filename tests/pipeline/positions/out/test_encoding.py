import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.network_version import network_version
from anonymizer.pipeline.positions.out.encoding import Contract, ReleaseEncoder, group_id
from anonymizer.pipeline.positions.out.region_shapes import shapes_of
from anonymizer.pipeline.positions.tick.group_readings import GroupValues
from tests.algorithms.positions.releases import release_of
from tests.naive import Group
from tests.pipeline.positions.support import NETWORK

GROUPS = [Group(k=5, region=[7, 2], members=[4, 0]), Group(k=2, region=[0], members=[3])]


def named(slots: Sequence[int], _versions: Sequence[int]) -> list[str]:
    return [f"name-{9 - slot}" for slot in slots]


def encode(
    groups: Sequence[Group], form: Literal["group", "device"]
) -> tuple[list[dict[str, Any]], list[int]]:
    encoder = ReleaseEncoder(NETWORK, topic="out", form=form)
    messages, message_of = encoder.encode(
        release_of(groups), time=1_800_000_000.123456, pseudonyms=named
    )
    assert {(message.topic, message.retain) for message in messages} <= {("out", False)}
    told = [json.loads(message.payload) for message in messages]
    assert {each.pop("network") for each in told} <= {network_version(NETWORK)}
    return told, message_of.tolist()


def test_a_message_a_group_carries_the_region_of_all_its_members() -> None:
    messages, message_of = encode(GROUPS, "group")
    time = 1_800_000_000.123
    assert messages == [
        {"time": time, "k": 2, "region": [0], "pseudonyms": ["name-6"]},
        {"time": time, "k": 5, "region": [7, 2], "pseudonyms": ["name-5", "name-9"]},
    ]
    assert message_of == [1, 1, 0]


def test_a_message_a_device_carries_the_region_of_its_group() -> None:
    messages, message_of = encode(GROUPS, "device")
    time = 1_800_000_000.123
    assert messages == [
        {"pseudonym": "name-5", "time": time, "region": [7, 2], "k": 5},
        {"pseudonym": "name-6", "time": time, "region": [0], "k": 2},
        {"pseudonym": "name-9", "time": time, "region": [7, 2], "k": 5},
    ]
    assert message_of == [0, 2, 1]


@pytest.mark.parametrize("form", ["group", "device"])
def test_no_release_is_no_message(form: Literal["group", "device"]) -> None:
    assert encode([], form) == ([], [])


groups = st.builds(
    Group, st.integers(2, 9), st.lists(st.integers(0, 24), min_size=1, max_size=3), st.just([])
)


@given(
    st.lists(groups, max_size=5),
    st.permutations(range(10)),
    st.data(),
    st.sampled_from(["group", "device"]),
)
def test_the_order_of_slots_and_groups_leaves_no_trace_in_what_is_sent(
    groups: list[Group], slots: list[int], data: st.DataObject, form: Literal["group", "device"]
) -> None:
    cuts = np.linspace(0, len(slots), len(groups) + 1).astype(int).tolist()
    groups = [
        group._replace(members=slots[start:end])
        for group, start, end in zip(groups, cuts, cuts[1:], strict=False)
    ]
    shuffled = [
        group._replace(members=data.draw(st.permutations(list(group.members))))
        for group in data.draw(st.permutations(groups))
    ]
    assert encode(groups, form)[0] == encode(shuffled, form)[0]


@given(st.permutations(range(6)), st.integers(1, 5), st.sampled_from(["group", "device"]))
def test_every_member_is_told_the_message_that_names_it(
    slots: list[int], cut: int, form: Literal["group", "device"]
) -> None:
    groups = [Group(2, [1], slots[:cut]), Group(2, [0], slots[cut:])]
    messages, message_of = encode(groups, form)
    for name, i in zip(named(slots, slots), message_of, strict=True):
        assert name in messages[i].get("pseudonyms", [messages[i].get("pseudonym")])


@pytest.mark.parametrize("form", ["group", "device"])
def test_each_pseudonym_has_the_value_of_its_own_device(form: Literal["group", "device"]) -> None:
    groups = [Group(3, [1], [2, 7, 4]), Group(2, [0], [5, 3])]
    own = [2.0, 7.0, 4.0, None, None]  # as many as the slot; the second group had too few
    values = GroupValues([{"speed": {"mean": 4.3}}, {}], {"speed": own})
    encoder = ReleaseEncoder(NETWORK, topic="out", form=form)
    messages, _ = encoder.encode(release_of(groups), time=0.0, pseudonyms=named, values=values)
    told: dict[str, float | None] = {}
    for message in (json.loads(each.payload) for each in messages):
        assert ("readings" in message) is (message["k"] == 3)
        if form == "device":
            told[message["pseudonym"]] = message["values"]["speed"]
        elif "values" in message:
            told |= zip(message["pseudonyms"], message["values"]["speed"], strict=True)
    nothing = {"name-4": None, "name-6": None} if form == "device" else {}
    assert told == {"name-7": 2.0, "name-2": 7.0, "name-5": 4.0} | nothing


CONTRACT = Contract("0123456789abcdef", shapes_of(NETWORK, "bbox"))


def live(groups: Sequence[Group], form: Literal["group", "device"]) -> list[dict[str, Any]]:
    encoder = ReleaseEncoder(NETWORK, topic="out", form=form, contract=CONTRACT)
    until = np.array([60.0, 61.0][: len(groups)])
    messages, _ = encoder.encode(release_of(groups), time=30.0, pseudonyms=named, until=until)
    return [json.loads(message.payload) for message in messages]


def test_a_live_message_says_how_to_count_and_place_its_group() -> None:
    [small, large] = live(GROUPS, "group")
    assert small["v"] == 1
    assert small["network"] == "0123456789abcdef"
    assert (small["until"], large["until"]) == (61.0, 60.0)
    assert len(large["bbox"]) == 4
    assert "geometry" not in large


def test_a_time_is_rounded_down_and_that_until_which_a_region_holds_is_rounded_up() -> None:
    encoder = ReleaseEncoder(NETWORK, topic="out", form="group", time_step_s=5.0)
    until = np.array([60.0, 61.0])
    messages, _ = encoder.encode(release_of(GROUPS), time=34.0, pseudonyms=named, until=until)
    told = [json.loads(message.payload) for message in messages]
    assert [(each["time"], each["until"]) for each in told] == [(30.0, 65.0), (30.0, 60.0)]


@pytest.mark.parametrize("form", ["group", "device"])
def test_the_name_of_a_group_follows_from_its_pseudonyms_alone(
    form: Literal["group", "device"],
) -> None:
    elsewhere = [GROUPS[0]._replace(region=[1, 2, 3], k=2, members=[0, 4])]
    names = group_id(sorted(named([4, 0], [0, 0])))
    assert {message["group"] for message in live(elsewhere, form)} == {names}
    assert {m["group"] for m in live(GROUPS, form) if len(m["region"]) == 2} == {names}
    assert len({message["group"] for message in live(GROUPS, form)}) == 2


@pytest.mark.parametrize("form", ["group", "device"])
def test_a_message_has_the_name_of_what_it_is_about_as_its_key(
    form: Literal["group", "device"],
) -> None:
    encoder = ReleaseEncoder(NETWORK, topic="out", form=form, contract=CONTRACT)
    messages, _ = encoder.encode(release_of(GROUPS), time=0.0, pseudonyms=named)
    field = "group" if form == "group" else "pseudonym"
    assert [message.key for message in messages] == [
        json.loads(message.payload)[field] for message in messages
    ]
    assert len({message.key for message in messages}) == (2 if form == "group" else 3)
