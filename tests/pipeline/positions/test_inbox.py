from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.inbox import Arrivals, Inbox


def numbered(numbers: range) -> list[Delivery]:
    """Return deliveries whose payload is their number; every third asks for no receipt."""
    return [Delivery("t", str(i).encode(), receipt=i if i % 3 else 0) for i in numbers]


@given(st.integers(1, 10), st.lists(st.integers(0, 8) | st.none(), max_size=12))
def test_the_newest_messages_stay_and_the_oldest_yield_counted_with_their_receipts(
    limit: int, steps: list[int | None]
) -> None:
    ledger = Ledger()
    inbox = Inbox(limit, ledger)
    waiting: list[Delivery] = []
    dropped: list[int] = []
    n_overload = n = 0
    for at_s, size in enumerate(steps):
        if size is None:
            batches, receipts = inbox.take()
            assert [d for batch in batches for d in batch.deliveries] == waiting
            assert receipts == dropped
            waiting, dropped = [], []
        else:
            batch = numbered(range(n, n + size))
            inbox.put(batch, at_s=at_s)
            n += size
            waiting += batch
            too_many = max(0, len(waiting) - limit)
            n_overload += too_many
            dropped += [d.receipt for d in waiting[:too_many] if d.receipt]
            waiting = waiting[too_many:]
        assert inbox.n_waiting == len(waiting) <= limit
        assert ledger.n_received == n
        assert ledger.n(Outcome.SUPPRESSED__OVERLOAD) == ledger.n_settled == n_overload


def test_messages_keep_the_time_of_their_arrival_when_older_ones_of_their_batch_yield() -> None:
    inbox = Inbox(3, Ledger())
    first, second = numbered(range(3)), numbered(range(3, 5))
    inbox.put(first, at_s=1.5)
    inbox.put(second, at_s=2.5)
    assert inbox.take()[0] == [Arrivals(1.5, first[2:]), Arrivals(2.5, second)]


def test_who_and_where_is_not_in_the_repr_of_what_waits() -> None:
    arrivals = Arrivals(1.0, [Delivery("positions/secret", b'{"lat": 60.17}', 0)])
    assert "secret" not in repr(arrivals)
    assert "60.17" not in repr(arrivals)
