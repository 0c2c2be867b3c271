"""Current groups: whoever comes late counts what those count who were there before."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.outputs.current.current_groups import (
    CurrentGroups,
    LiveMessages,
    together,
)
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.encoding import group_id


def current() -> CurrentGroups:
    return CurrentGroups(topic="now", network="abc", grace_s=1.0)


def of_group(names: Sequence[str], *, time: float, until: float) -> Outgoing:
    body = {
        "group": group_id(sorted(names)),
        "time": time,
        "until": until,
        "pseudonyms": list(names),
    }
    return Outgoing("cloaked/positions", json.dumps(body | {"region": [1], "k": 2}).encode())


def of_device(name: str, group: str, *, until: float) -> Outgoing:
    body = {"group": group, "time": 0.0, "until": until, "pseudonym": name}
    return Outgoing("cloaked/positions", json.dumps(body).encode())


def stated(groups: CurrentGroups, now: float) -> list[dict[str, Any]]:
    messages = groups.messages(now=now)
    assert all(message.retain for message in messages)
    bodies = [json.loads(message.payload) for message in messages if message.payload]
    assert [body["part"] for body in bodies] == list(range(len(bodies)))
    assert {body["of"] for body in bodies} == {len(bodies)}
    return [group for body in bodies for group in body["groups"]]


def test_a_newer_message_replaces_the_older_one_of_its_group() -> None:
    groups = current()
    groups.see([of_group("ab", time=0, until=30), of_group("cd", time=0, until=30)])
    groups.see([of_group("ab", time=30, until=60)])
    assert [(g["time"], sorted(g["pseudonyms"])) for g in stated(groups, 29)] == [
        (0, ["c", "d"]),
        (30, ["a", "b"]),
    ]


def test_a_group_that_has_ended_is_not_stated() -> None:
    groups = current()
    groups.see([of_group("ab", time=0, until=30)])
    assert len(stated(groups, 31)) == 1
    assert stated(groups, 31.1) == []


def test_a_group_is_forgotten_when_newer_ones_name_all_its_members() -> None:
    groups = current()
    groups.see([of_group("abc", time=0, until=90)])
    groups.see([of_group("ad", time=1, until=90)])
    assert len(stated(groups, 2)) == 2
    groups.see([of_group("bc", time=2, until=90)])
    assert [sorted(g["pseudonyms"]) for g in stated(groups, 2)] == [["a", "d"], ["b", "c"]]


def test_messages_of_single_devices_are_kept_one_by_one() -> None:
    groups = current()
    groups.see([of_device(name, "g", until=10) for name in "abc"])
    groups.see([of_device("b", "g", until=20)])
    assert sorted(g["pseudonym"] for g in stated(groups, 5)) == ["a", "b", "c"]
    assert [g["pseudonym"] for g in stated(groups, 15)] == ["b"]


def test_parts_are_of_limited_size_and_those_no_longer_needed_are_emptied() -> None:
    groups = current()
    groups.see([of_group([f"{i}a", f"{i}b"], time=0, until=9) for i in range(100)])
    messages = groups.messages(now=1, part_bytes=4096)
    assert len(messages) > 1
    assert max(len(message.payload) for message in messages) <= 4096
    emptied = groups.close(now=2)
    assert [message.topic for message in emptied] == [message.topic for message in messages]
    assert [bool(message.payload) for message in emptied] == [True] + [False] * (len(messages) - 1)
    assert json.loads(emptied[0].payload)["groups"] == []


names = st.sets(st.sampled_from("abcdef"), min_size=1)


@given(st.lists(st.tuples(names, st.integers(0, 9)), max_size=12), st.integers(0, 12))
def test_a_late_subscriber_counts_the_same_pseudonyms(
    said: list[tuple[set[str], int]], now: int
) -> None:
    """The rule: a pseudonym is where its newest message says, until then.

    A newer message never holds less long than an older one.
    """
    groups = current()
    until_of: dict[str, int] = {}
    for members, until in sorted(said, key=lambda each: each[1]):
        groups.see([of_group(sorted(members), time=0, until=until)])
        until_of |= dict.fromkeys(members, until)
    late: dict[str, float] = {}
    for group in stated(groups, now):
        late |= dict.fromkeys(group["pseudonyms"], group["until"])
    alive = {name for name, until in until_of.items() if until >= now}
    assert alive == {name for name, until in late.items() if until >= now}


@given(st.lists(st.tuples(names, st.integers(0, 2)), max_size=12), st.integers(0, 12))
def test_several_publishers_state_together_what_one_states(
    said: list[tuple[set[str], int]], now: int
) -> None:
    """Each message is published by one of three; the newest about a pseudonym counts."""
    alone, several = LiveMessages(grace_s=1.0), [LiveMessages(grace_s=1.0) for _ in range(3)]
    for time, (members, publisher) in enumerate(said):
        message = of_group(sorted(members), time=time, until=time + 3)
        alone.see([message])
        several[publisher].see([message])
    held = [each.payloads(now=now) for each in several]
    assert together(held) == alone.payloads(now=now)


@given(st.lists(names, max_size=12), st.integers(0, 12))
def test_what_is_restored_goes_on_alike(said: list[set[str]], at: int) -> None:
    whole, parted = LiveMessages(grace_s=1.0), LiveMessages(grace_s=1.0)
    for time, members in enumerate(said):
        if time == at:
            state = parted.state()
            parted = LiveMessages(grace_s=1.0)
            parted.restore(state)
        message = of_group(sorted(members), time=time, until=time + 3)
        for each in (whole, parted):
            each.see([message])
            each.payloads(now=time - 2)
    assert parted.payloads(now=at) == whole.payloads(now=at)
