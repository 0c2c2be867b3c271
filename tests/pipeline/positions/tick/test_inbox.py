from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.inbox import Arrivals, Inbox


def on(topics: Sequence[str], *, first: int = 1) -> list[Delivery]:
    """Return deliveries with their number as receipt; every third asks for no receipt."""
    return [
        Delivery(topic, str(n).encode(), receipt=n if n % 3 else 0)
        for n, topic in enumerate(topics, start=first)
    ]


def is_shared(topic: str) -> bool:
    return topic == "fleet"


def newest_of(waiting: list[Delivery], most: int) -> list[Delivery]:
    """Return what is left under overload, by looking at all later messages of each."""
    left = [
        delivery
        for i, delivery in enumerate(waiting)
        if is_shared(delivery.topic)
        or delivery.topic not in {later.topic for later in waiting[i + 1 :]}
    ]
    return left[-most:]


steps = st.lists(st.sampled_from(["a", "b", "c", "fleet"]), max_size=8) | st.sampled_from(
    ["take", "hurry"]
)


@given(st.integers(1, 10), st.lists(steps, max_size=15))
def test_the_newest_message_of_each_device_stays_and_the_others_yield_counted(
    limit: int, sequence: list[list[str] | str]
) -> None:
    ledger = Ledger()
    inbox = Inbox(limit, ledger, is_shared=is_shared)
    waiting: list[Delivery] = []
    acknowledged: list[int] = []
    to_acknowledge: list[int] = []
    n_yielded = n = 0
    overloaded = False
    for at_s, step in enumerate(sequence):
        new: list[Delivery] = []
        if step == "take":
            if overloaded:
                left = newest_of(waiting, limit)
                n_yielded += len(waiting) - len(left)
                waiting = left
            assert [d for batch in inbox.take() for d in batch.deliveries] == waiting
            to_acknowledge, acknowledged = [], []
            waiting, overloaded = [], False
        elif step == "hurry":
            acknowledged += inbox.hurry()
            overloaded = True
        else:
            new = on(step, first=n + 1)
            acknowledged += inbox.put(new, at_s=at_s)
            n += len(step)
            overloaded |= len(waiting) + len(new) > limit
        waiting += new
        to_acknowledge += [d.receipt for d in new if d.receipt]
        if len(waiting) > limit:
            left = newest_of(waiting, limit - limit // 4)
            n_yielded += len(waiting) - len(left)
            waiting = left
        if overloaded:
            assert sorted(acknowledged) == to_acknowledge
        else:
            assert acknowledged == []
        assert inbox.is_overloaded == overloaded
        assert inbox.n_waiting == len(waiting) <= limit
        assert ledger.n_received == n
        assert ledger.n(Outcome.SUPPRESSED__OVERLOAD) == ledger.n_settled == n_yielded


def test_messages_keep_the_time_of_their_arrival_under_overload() -> None:
    inbox = Inbox(4, Ledger())
    first, second = on("abc"), on("ad", first=4)
    inbox.put(first, at_s=1.5)
    inbox.put(second, at_s=2.5)
    arrivals = [(at_s, list(deliveries)) for at_s, deliveries in inbox.take()]
    assert arrivals == [(1.5, first[2:]), (2.5, second)]


@given(
    st.integers(300, 5_000),
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2_000))), max_size=8),
)
def test_the_bytes_that_wait_are_bounded_and_what_yields_is_counted(
    max_bytes: int, batches: list[list[tuple[str, int]]]
) -> None:
    ledger = Ledger()
    inbox = Inbox(1_000, ledger, max_bytes=max_bytes)
    for at_s, batch in enumerate(batches):
        inbox.put([Delivery(topic, bytes(n), 0) for topic, n in batch], at_s=at_s)
        assert inbox.n_bytes <= max_bytes
        assert ledger.n_received - ledger.n_settled == inbox.n_waiting
    left = [d for kept in inbox.take() for d in kept.deliveries]
    assert ledger.n_received - ledger.n_settled == len(left)
    assert inbox.n_bytes == 0


def test_a_retained_message_does_not_replace_a_live_one() -> None:
    inbox = Inbox(9, Ledger())
    live = Delivery("a", b"now", 0)
    kept = Delivery("a", b"some time", 0, retained=True)
    inbox.hurry()
    inbox.put([kept], at_s=0.0)
    inbox.put([live, kept], at_s=1.0)
    assert [(at_s, list(deliveries)) for at_s, deliveries in inbox.take()] == [(1.0, [live])]


def test_who_and_where_is_not_in_the_repr_of_what_waits() -> None:
    arrivals = Arrivals(1.0, [Delivery("positions/secret", b'{"lat": 60.17}', 0)])
    assert "secret" not in repr(arrivals)
    assert "60.17" not in repr(arrivals)


def test_what_is_refused_is_counted_acknowledged_and_never_waits() -> None:
    ledger = Ledger()
    inbox = Inbox(10, ledger)
    assert inbox.refuse(on("abcd")) == [1, 2, 4]
    assert (ledger.n_received, ledger.n(Outcome.SUPPRESSED__OVERLOAD)) == (4, 4)
    assert inbox.n_waiting == 0
    assert inbox.take() == []


def test_nothing_yields_to_a_late_tick_where_whoever_sends_waits_for_room() -> None:
    ledger = Ledger()
    inbox = Inbox(10, ledger, is_awaited=True)
    inbox.put(on("aaaa"), at_s=0.0)
    assert inbox.hurry() == []
    assert inbox.put(on("ab", first=5), at_s=1.0) == []
    assert sum(len(batch.deliveries) for batch in inbox.take()) == 6
    assert sum(ledger.counts().values()) == 0
    # Whoever does not wait all the same is not believed: memory is bounded.
    assert inbox.put(on("a" * 11), at_s=2.0) == [1, 2, 4, 5, 7, 8, 10, 11]
    assert inbox.n_waiting == 1
    assert ledger.counts()[Outcome.SUPPRESSED__OVERLOAD] == 10


def test_there_is_room_while_less_than_half_of_the_bytes_wait() -> None:
    inbox = Inbox(100, Ledger(), max_bytes=2000)
    rooms = []
    for _ in range(4):
        rooms.append(inbox.has_room)
        inbox.put(on("a"), at_s=0.0)
    assert 2 * inbox.n_bytes >= 2000
    assert rooms == [True] * 4
    assert [inbox.has_room] == [False]
    inbox.take()
    assert [inbox.has_room] == [True]
