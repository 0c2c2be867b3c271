"""What the live map shows is what was published: nothing else, nothing older than it should be."""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.live_map import screen as screens
from anonymizer.app.live_map.screen import AnalystLink, AnalystView, Row
from anonymizer.domain.network import NodeNames
from anonymizer.pipeline.ports import Outgoing
from anonymizer.transport.memory import MemoryBroker, MemoryLink
from tests.pipeline.positions.support import NETWORK, Rig, delivery

GROUP = {"k": 2, "region": [3, 1, 2], "pseudonyms": ["a", "b"]}


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def a_screen(node_id: NodeNames | None = None) -> tuple[AnalystView, Clock]:
    clock = Clock()
    names = NETWORK.node_id if node_id is None else node_id
    screen = AnalystView("adka", names, Rig().flow, monotonic=clock)
    return screen, clock


def message(**told: object) -> Outgoing:
    return Outgoing("cloaked/positions", msgspec.json.encode({"time": 1.0, **told}))


def group(names: str, region: Sequence[int | str], k: int = 2) -> Outgoing:
    return message(k=k, region=list(region), pseudonyms=list(names))


def held(names: str, region: Sequence[int], *, until: float) -> Outgoing:
    """Return a message at 1.0 s that says until when it holds, to which a second of grace comes."""
    return message(k=2, region=list(region), pseudonyms=list(names), until=until)


def lives(screen: AnalystView) -> list[list[int]]:
    return [row[5] for row in rows_of(screen) if row[6] is None]


def rows_of(screen: AnalystView) -> list[Row]:
    rows, n_living = screen.rows()
    assert n_living >= sum(row[6] is None for row in rows)
    return rows


def test_a_region_is_shown_with_its_k_its_pseudonyms_and_its_nodes() -> None:
    screen, clock = a_screen()
    screen.see([message(**GROUP)])
    clock.now_s += 0.5
    assert rows_of(screen) == [("a", 2, 2, 0.5, 0.5, [3, 1, 2], None)]


def test_it_is_shown_while_it_is_the_newest_word_on_any_of_its_pseudonyms() -> None:
    screen, clock = a_screen()
    screen.see([group("ab", [1, 2]), group("c", [5])])
    clock.now_s += 1
    screen.see([group("a", [3])])
    assert sorted((row[2], row[5]) for row in rows_of(screen)) == [(1, [3]), (1, [5]), (2, [1, 2])]
    screen.see([group("b", [4])])
    assert sorted(row[5] for row in rows_of(screen)) == [[3], [4], [5]]


def test_the_age_of_a_region_is_that_of_its_pseudonyms_not_of_its_last_message() -> None:
    screen, clock = a_screen()
    for _ in range(4):
        screen.see([group("ab", [1, 2])])
        rows_of(screen)
        clock.now_s += 1.5
    [(_, _, _, age_s, told_s, *_)] = rows_of(screen)
    assert (age_s, told_s) == (6.0, 1.5)


def test_who_falls_silent_for_longer_than_usual_leaves_the_screen() -> None:
    screen, clock = a_screen()
    for _ in range(20):
        screen.see([group("ab", [1])])
        rows_of(screen)
        clock.now_s += 1.0
    assert len(rows_of(screen)) == 1
    clock.now_s += 3.0
    assert rows_of(screen) == []


def test_who_speaks_seldom_stays_for_longer() -> None:
    screen, clock = a_screen()
    for _ in range(20):
        screen.see([group("ab", [1])])
        rows_of(screen)
        clock.now_s += 10.0
    assert len(rows_of(screen)) == 1


def test_a_region_is_shown_as_long_as_its_message_says_that_it_holds() -> None:
    screen, clock = a_screen()
    screen.see([message(k=2, region=[1], pseudonyms=["a", "b"], until=31.0)])
    clock.now_s += 29.0
    assert lives(screen) == [[1]]
    clock.now_s += 3.0
    assert lives(screen) == []


def test_where_a_group_ended_its_last_region_is_kept_as_ended_until_newer_ones_cover_it() -> None:
    screen, clock = a_screen()
    screen.see([held("ab", [1, 2], until=21.0), held("cd", [7, 8, 9], until=41.0)])
    clock.now_s += 23.0
    assert [(row[0], row[5], row[6]) for row in rows_of(screen)] == [
        ("c", [7, 8, 9], None),
        ("a", [1, 2], 2.0),
    ]
    assert screen.rows()[1] == 1, "what has ended is no region of today"
    screen.see([held("ef", [2, 3], until=21.0)])
    assert len(rows_of(screen)) == 3, "half of it has no newer region"
    screen.see([held("gh", [1, 4], until=21.0)])
    assert lives(screen) == [row[5] for row in rows_of(screen)]


def test_a_region_that_was_there_before_does_not_cover_what_ended_later() -> None:
    screen, clock = a_screen()
    screen.see([held("cd", [1, 2, 3], until=101.0)])
    clock.now_s += 10.0
    screen.see([held("ab", [1, 2], until=11.0)])
    clock.now_s += 20.0
    assert [row[5] for row in rows_of(screen)] == [[1, 2, 3], [1, 2]]


def test_what_ended_is_forgotten_after_as_long_as_the_page_says() -> None:
    screen, clock = a_screen()
    screen.see([held("ab", [1], until=21.0)])
    clock.now_s += 21.0
    rows_of(screen)
    clock.now_s += screens.ENDED_KEPT_S - 1.0
    assert len(rows_of(screen)) == 1
    clock.now_s += 2.0
    assert rows_of(screen) == []
    static = Path(screens.__file__).parents[2] / "web" / "static"
    kept = f"{screens.ENDED_KEPT_S:g}"
    assert f"const ENDED_KEPT_S = {kept};" in (static / "painter.js").read_text()
    assert f"{kept} s" in (static / "index.html").read_text()


def test_messages_about_single_devices_are_one_region_where_they_say_the_same() -> None:
    screen, _ = a_screen()
    screen.see([message(k=2, region=[1, 2], pseudonym=name) for name in "abc"])
    screen.see([message(k=2, region=[4], pseudonym="d")])
    assert sorted((row[2], row[5]) for row in rows_of(screen)) == [(1, [4]), (3, [1, 2])]


@given(st.permutations(range(12)), st.lists(st.sets(st.integers(0, 11), min_size=1), max_size=5))
def test_nodes_are_found_by_their_published_names_whatever_these_are(
    order: list[int], regions: list[set[int]]
) -> None:
    numbers, texts = np.array(order) * 7 - 20, np.array([f"node/{i}" for i in order])
    for names in (numbers.astype(np.int64), texts):
        screen, _ = a_screen(names)
        published = [names[sorted(region)].tolist() for region in regions]
        screen.see([group(f"{i}", region) for i, region in enumerate(published)])
        shown = {row[0]: row[5] for row in rows_of(screen)}
        assert shown == {f"{i}": sorted(region) for i, region in enumerate(regions)}


def test_who_opens_the_map_sees_at_once_every_group_that_lives() -> None:
    screen, clock = a_screen()
    # Two groups on a beat of twenty seconds, long before anybody looks.
    screen.see([message(k=2, region=[1], pseudonyms=["a", "b"], until=21.0)])
    clock.now_s += 15
    screen.see([message(k=2, region=[2], pseudonyms=["c", "d"], until=21.0)])
    assert sorted(row[5] for row in rows_of(screen)) == [[1], [2]]
    clock.now_s += 10
    assert lives(screen) == [[2]], "the first one has not published again"


def test_what_is_kept_and_what_is_shown_are_bounded_and_the_newest_stay() -> None:
    screen, clock = a_screen()
    for i in range(screens.MOST_MESSAGES + 10):
        screen.see([message(k=2, region=[1], pseudonyms=[f"p{i}"])])
        clock.now_s += 1e-6
    rows, n_regions = screen.rows()
    assert n_regions == screens.MOST_MESSAGES
    assert len(rows) == screens.MOST_REGIONS
    newest = screens.MOST_MESSAGES + 9
    assert [row[0] for row in rows[:3]] == [f"p{newest - i}" for i in range(3)]


def test_a_frame_is_bounded_in_nodes_too_and_says_how_many_regions_there_are() -> None:
    screen, clock = a_screen()
    size = screens.MOST_NODES // 4
    for name in "abcdefg":
        screen.see([group(name, [1] * size)])
        clock.now_s += 1e-3
    rows, n_regions = screen.rows()
    assert ([row[0] for row in rows], n_regions) == (["g", "f", "e", "d"], 7)


async def test_only_what_the_broker_took_is_shown() -> None:
    screen, _ = a_screen()
    link = MemoryLink(MemoryBroker(), client_id="gateway", deliver=lambda _: None)
    shown = AnalystLink(link, screen.see, topic="cloaked/positions")
    running = asyncio.create_task(link.run())
    await link.until_connected()
    assert shown.connected
    others = Outgoing("public/fixed", b'{"device": "a sensor"}')
    assert all(await shown.publish([group("a", [1]), others], qos=0, timeout_s=1))
    link.go_down()
    assert not any(await shown.publish([group("b", [2])], qos=0, timeout_s=1))
    assert [row[0] for row in rows_of(screen)] == ["a"]
    await shown.close()
    await running


def test_what_is_shown_of_a_flow_names_no_device_and_no_place_of_one() -> None:
    rig, ticks = Rig(), count()
    screen = AnalystView("adka", NETWORK.node_id, rig.flow, monotonic=lambda: float(next(ticks)))
    for turn in range(5):
        rig.put(*(delivery(f"secret-{i}", 6 + (i + turn) % 5, 1.8e9 + turn) for i in range(6)))
        output = rig.tick(now=1.8e9 + turn)
        rig.settle(output, [True] * len(output.messages))
        screen.see(output.messages)
    shown: Any = msgspec.json.decode(msgspec.json.encode([screen.rows(), screen.pulse.take(9.0)]))
    text = repr(shown)
    assert "secret" not in text
    assert shown[0][0]
    published = {
        name for m in output.messages for name in msgspec.json.decode(m.payload)["pseudonyms"]
    }
    assert {row[0] for row in shown[0][0]} <= published
