"""What is retained in parts is whole, also for a broker that takes less than the stages cut for."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.client.messages import Collector
from anonymizer.cluster.bridge_metrics import Passed
from anonymizer.cluster.outflow import Outflow
from anonymizer.cluster.positions.raw_batches import encode_out
from anonymizer.cluster.retained_parts import RetainedParts
from anonymizer.networks import load_network
from anonymizer.outputs.cells import cells_messages
from anonymizer.outputs.current.current_groups import CurrentParts
from anonymizer.pipeline.ports import PART_BYTES, Outgoing
from anonymizer.settings import Settings

SETTINGS = Settings()
CURRENT, COUNTS = SETTINGS.topics.current, SETTINGS.topics.counts


def group(number: int, n_bytes: int) -> bytes:
    said = {"v": 1, "time": 9.0, "until": 99.0, "group": f"g{number}", "k": 2}
    whole = said | {"pseudonyms": [f"p{number}"], "region": [1]}
    room = max(0, n_bytes - len(msgspec.json.encode(whole)))
    return msgspec.json.encode(whole | {"pad": "x" * room})


class Broker:
    """Keeps what is retained, unless it is too large."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.kept = most_bytes, dict[str, bytes]()

    def take(self, messages: Sequence[Outgoing]) -> None:
        for each in messages:
            if not each.payload:
                self.kept.pop(each.topic, None)
            elif len(each.payload) <= self.most_bytes:
                self.kept[each.topic] = each.payload

    def members(self, key: str) -> list[Any]:
        """Return what all parts together contain; they state each of them and no other."""
        bodies = [msgspec.json.decode(each) for each in self.kept.values()]
        bodies.sort(key=lambda body: int(body.get("part", 0)))
        assert [body.get("part", 0) for body in bodies] == list(range(bodies[0].get("of", 1)))
        return [member for body in bodies for member in body[key]]


sizes = st.lists(st.integers(0, 1_500), max_size=120)


@given(turns=st.lists(sizes, min_size=1, max_size=3), most=st.integers(2_200, 70_000))
def test_all_groups_that_live_are_retained_whatever_the_broker_takes(
    turns: list[list[int]], most: int
) -> None:
    lanes = CurrentParts(topic=CURRENT, network="n" * 12)
    bridge, broker = RetainedParts(SETTINGS, lambda _: min(PART_BYTES, most)), Broker(most)
    for turn, of in enumerate(turns):
        payloads = [group(number, size) for number, size in enumerate(of)]
        for message in lanes.messages(payloads, now=float(turn)):
            broker.take(bridge.fitted([message]))  # another bridge may have the next one
        expected = [msgspec.json.decode(each) for each in payloads]
        assert broker.members("groups") == expected
        assert all(topic.startswith(f"{CURRENT}/") for topic in broker.kept)
    for topic in list(broker.kept):
        broker.take(bridge.fitted([Outgoing(topic, b"", retain=True)]))
    assert not broker.kept, "what is withdrawn"


def test_no_part_is_larger_than_the_broker_takes_however_full_it_is() -> None:
    payloads = [group(number, 0) for number in range(60)]
    messages = CurrentParts(topic=CURRENT, network="n" * 12).messages(payloads, now=1.0)
    for most in range(2_200, 2_400, 7):
        parts = RetainedParts(SETTINGS, lambda _, most=most: most).fitted(messages)  # type: ignore[misc]
        assert max(len(each.payload) for each in parts) <= most


def test_groups_of_which_no_two_fit_into_a_part_have_one_each() -> None:
    most, n = 4_000, PART_BYTES // 2_100
    bridge, broker = RetainedParts(SETTINGS, lambda _: most), Broker(most)
    payloads = [group(number, 2_100) for number in range(2 * n)]
    broker.take(bridge.fitted(CurrentParts(topic=CURRENT, network="n").messages(payloads, now=1.0)))
    assert len(broker.members("groups")) == 2 * n


@pytest.mark.parametrize("most", [1_200, 5_000, 61_000])
@pytest.mark.parametrize("n_cells", [8, 256])
def test_all_cells_are_retained_whatever_the_broker_takes(n_cells: int, most: int) -> None:
    network, broker = load_network("grid:20x20"), Broker(most)
    messages = cells_messages(COUNTS, n_cells, network, version="v" * 12)
    broker.take(RetainedParts(SETTINGS, lambda _: min(PART_BYTES, most)).fitted(messages))
    expected = [msgspec.json.decode(each.payload)["features"] for each in messages]
    assert broker.members("features") == [each for some in expected for each in some]
    assert f"{COUNTS}/cells" in broker.kept, "where readers begin"


def test_what_is_in_no_parts_and_what_fits_is_passed_on_as_it_is() -> None:
    parts = CurrentParts(topic=CURRENT, network="n").messages([group(0, 0)], now=1.0)
    others = [
        Outgoing(f"{CURRENT}/0", b"no part of a set"),
        Outgoing(f"{CURRENT}/0", parts[0].payload),
        Outgoing(f"{CURRENT}/x", b"-", retain=True),
        Outgoing(f"{COUNTS}/cells/1/x", b"-", retain=True),
        Outgoing(COUNTS, b"-"),
    ]
    assert RetainedParts(SETTINGS, lambda _: 3_000).fitted(others) == others
    assert RetainedParts(SETTINGS, lambda _: PART_BYTES).fitted(parts) == parts
    assert RetainedParts(SETTINGS, lambda _: 300).fitted(parts) == parts, "it is said"


class Link:
    """A link to a broker that says what it takes when it is connected."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.connected = broker, False
        self.counts = type("Counts", (), {"n_connections": 1})()

    async def until_connected(self) -> None:
        self.connected = True

    def part_bytes(self, topic: str) -> int:
        return self.broker.most_bytes - len(topic) if self.connected else PART_BYTES

    def takes(self, message: Outgoing) -> bool:
        return len(message.payload) <= self.broker.most_bytes

    async def publish(self, messages: Sequence[Outgoing], **_: object) -> list[bool]:
        self.broker.take(messages)
        return [True] * len(messages)


async def test_an_analyst_of_a_cluster_learns_what_has_ended_from_a_broker_of_small_packets() -> (
    None
):
    link = Link(Broker(3_000))
    outflow = Outflow(SETTINGS, link, Passed())  # type: ignore[arg-type]
    lanes = CurrentParts(topic=CURRENT, network="n")
    payloads = [group(number, 400) for number in range(300)]
    collector = Collector()
    for each in payloads:
        collector.take(each)
    await outflow.publish([encode_out(lanes.messages(payloads[7:], now=20.0))])
    for each in link.broker.kept.values():
        collector.take(each)
    assert [*collector.columns.end[:8]] == [20.0] * 7 + [99.0]
    assert len(link.broker.members("groups")) == 293
