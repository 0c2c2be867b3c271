"""The in-memory broker: behaviour beyond the contract that all links share."""

from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.transport import MemoryBroker, MemoryLink
from anonymizer.transport.memory import topic_matches
from tests.transport.support import Inbox, running

LEVEL = st.sampled_from(["a", "b", "", "$s"])
TOPIC = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
FILTER = st.builds(
    lambda levels, rest: "/".join([*levels, *rest]),
    st.lists(LEVEL | st.just("+"), max_size=4),
    st.sampled_from([["#"], ["+"], ["a"]]),
)


@given(FILTER, TOPIC)
def test_filters_match_the_same_topics_as_in_paho(topic_filter: str, topic: str) -> None:
    assert topic_matches(topic_filter, topic) == topic_matches_sub(topic_filter, topic)


def link(broker: MemoryBroker, inbox: Inbox, *, keeps_session: bool) -> MemoryLink:
    return MemoryLink(
        broker,
        client_id="c",
        deliver=inbox.deliver,
        subscriptions=[("t", 1)],
        keeps_session=keeps_session,
        on_state=inbox.on_state,
    )


async def test_unsettled_deliveries_come_again_first_with_new_receipts() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    one = link(broker, inbox, keeps_session=True)
    async with running(one):
        await one.publish([Outgoing("t", b"1"), Outgoing("t", b"2")], qos=1, timeout_s=1)
        await inbox.receives(2)
        first = inbox.deliveries
        one.acknowledge([first[0].receipt, 999])
        one.go_down()
        broker.take([Outgoing("t", b"lost")], qos=0)
        broker.take([Outgoing("t", b"3")], qos=1)
        one.acknowledge([first[1].receipt])
        one.come_up()
        await inbox.receives(4)
        one.acknowledge([first[1].receipt])
        one.acknowledge([d.receipt for d in inbox.deliveries[3:]])
    assert inbox.payloads == [b"1", b"2", b"2", b"3"]
    assert [d.payload for d in one.settled] == [b"1", b"3"]
    assert inbox.states[:3] == [
        (True, "connected"),
        (False, "connection closed"),
        (True, "connected"),
    ]


async def test_undelivered_messages_at_qos_0_are_lost_with_the_connection() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    one = link(broker, inbox, keeps_session=True)
    async with running(one):
        broker.take([Outgoing("t", b"0")], qos=0)
        broker.take([Outgoing("t", b"1")], qos=1)
        one.go_down()
        one.come_up()
        await inbox.receives(1)
    assert inbox.payloads == [b"1"]


async def test_a_session_that_is_not_kept_starts_empty() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    one = link(broker, inbox, keeps_session=False)
    async with running(one):
        broker.take([Outgoing("t", b"1")], qos=1)
        await inbox.receives(1)
        one.go_down()
        assert await one.publish([Outgoing("t", b"2")], qos=1, timeout_s=1) == [False]
        one.go_down()
        one.come_up()
        one.come_up()
        broker.take([Outgoing("t", b"3", retain=True)], qos=1)
        await inbox.receives(2)
    assert inbox.payloads == [b"1", b"3"]
    assert broker.retained == {"t": b"3"}


async def test_a_full_queue_drops_the_newest_messages() -> None:
    broker, inbox = MemoryBroker(max_queued=2), Inbox()
    async with running(link(broker, inbox, keeps_session=False)):
        broker.take([Outgoing("t", b"%d" % i) for i in range(4)], qos=1)
        await inbox.receives(2)
        broker.take([Outgoing("t", b"4")], qos=1)
        await inbox.receives(3)
    assert inbox.payloads == [b"0", b"1", b"4"]


async def test_a_kept_session_queues_messages_while_receiving_is_stopped() -> None:
    broker, inbox = MemoryBroker(), Inbox()
    one = link(broker, inbox, keeps_session=True)
    async with running(one):
        await one.stop_receiving()
        broker.take([Outgoing("t", b"1")], qos=1)
    again = link(broker, inbox, keeps_session=True)
    async with running(again):
        await inbox.receives(1)
    assert inbox.payloads == [b"1"]


async def test_stop_receiving_on_a_link_that_is_down_is_harmless() -> None:
    one = link(MemoryBroker(), Inbox(), keeps_session=False)
    await one.stop_receiving()
    assert not one.connected


def test_a_delivery_shows_neither_topic_nor_payload() -> None:
    assert repr(Delivery("device/7", b"60.1,24.9", 0)) == "Delivery(...)"
