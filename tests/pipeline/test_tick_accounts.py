from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.tick.tick_accounts import Accounts
from tests import naive

HELD, PUBLISHED = Outcome.HELD, Outcome.PUBLISHED


class Out(NamedTuple):
    """Which positions went out: those of the tick, and those that had waited."""

    direct: dict[int, float]
    waited: dict[int, float]


class Books:
    """Accounts whose balance is checked after every tick."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.accounts = Accounts(self.ledger)
        self.n_out = 0

    def tick(
        self,
        positions: Mapping[int, Outcome] | list[tuple[int, Outcome]],
        *,
        at_s: float,
        grouped: tuple[int, ...] = (),
        freed: tuple[int, ...] = (),
    ) -> Out:
        """Book positions of devices; those published and those `grouped` are in the release."""
        rows = list(positions.items()) if isinstance(positions, Mapping) else positions
        members = [slot for slot, outcome in rows if outcome == PUBLISHED] + list(grouped)
        self.ledger.receive(len(rows))
        carried = self.accounts.book(
            np.array([outcome for _, outcome in rows], np.uint8),
            np.array([slot for slot, _ in rows], np.int32),
            np.full(len(rows), at_s),
            grouped=np.array(members, np.int32),
            lost=np.array(freed, np.int32),
        )
        self.n_out += len(carried.slot)
        assert self.imbalance() == 0
        who = list(zip(carried.slot.tolist(), carried.tag.tolist(), strict=True))
        return Out(dict(who[: carried.n_direct]), dict(who[carried.n_direct :]))

    def imbalance(self) -> int:
        held = self.accounts.n_waiting + self.n_out
        return naive.imbalance(self.ledger.counts(), received=self.ledger.n_received, held=held)

    def settled(self) -> dict[str, int]:
        return {outcome.name: n for outcome, n in self.ledger.counts().items() if n}


def test_what_is_published_goes_out_and_what_is_not_is_settled() -> None:
    books = Books()
    late = Outcome.LATE
    assert books.tick({3: PUBLISHED, 1: late, 2: PUBLISHED}, at_s=7) == Out({3: 7, 2: 7}, {})
    assert books.settled() == {"LATE": 1}
    assert books.accounts.n_waiting == 0


def test_a_newcomers_position_waits_and_goes_out_with_its_groups_first_release() -> None:
    books = Books()
    assert books.tick({5: HELD, 2000: HELD}, at_s=1) == Out({}, {})
    assert books.accounts.n_waiting == 2
    assert books.tick({7: PUBLISHED}, at_s=2, grouped=(5,)) == Out({7: 2}, {5: 1})
    assert books.tick({}, at_s=3, grouped=(5, 7)) == Out({}, {}), "it goes out once"
    assert books.accounts.n_waiting == 1
    assert books.settled() == {}


def test_of_a_waiting_device_the_newest_position_alone_waits() -> None:
    books = Books()
    for at_s in (1, 2, 3):
        books.tick({5: HELD}, at_s=at_s)
        assert books.accounts.n_waiting == 1
    assert books.settled() == {"SUPPRESSED__SUPERSEDED": 2}
    assert books.tick({}, at_s=4, grouped=(5,)) == Out({}, {5: 3})


def test_a_position_that_is_published_at_once_takes_the_place_of_one_that_waits() -> None:
    books = Books()
    books.tick({5: HELD}, at_s=1)
    assert books.tick({5: PUBLISHED}, at_s=2) == Out({5: 2}, {})
    assert books.settled() == {"SUPPRESSED__SUPERSEDED": 1}


@pytest.mark.parametrize(
    ("news", "supersedes"),
    [
        (Outcome.LATE, False),
        (Outcome.DUPLICATE, False),
        (Outcome.SUPPRESSED__SUPERSEDED, False),
        (Outcome.SUPPRESSED__OFF_GRAPH, True),
        (Outcome.SUPPRESSED__REGION_TOO_LARGE, True),
    ],
)
def test_a_waiting_position_gives_way_to_news_of_its_device_alone(
    news: Outcome, *, supersedes: bool
) -> None:
    books = Books()
    books.tick({5: HELD}, at_s=1)
    books.tick({5: news}, at_s=2)
    assert books.accounts.n_waiting == (0 if supersedes else 1)
    settled = books.settled()
    assert settled.pop("SUPPRESSED__SUPERSEDED", 0) == supersedes + (news.name.endswith("SEDED"))
    assert sum(settled.values()) == (not news.name.endswith("SEDED"))


def test_within_a_tick_the_position_that_counts_is_held_and_the_others_are_settled() -> None:
    books = Books()
    rows = [(5, Outcome.SUPPRESSED__SUPERSEDED), (5, HELD), (5, Outcome.LATE)]
    books.tick(rows, at_s=1)
    assert books.accounts.n_waiting == 1
    assert books.settled() == {"LATE": 1, "SUPPRESSED__SUPERSEDED": 1}


def test_a_position_whose_device_leaves_was_never_grouped() -> None:
    books = Books()
    books.tick({5: HELD, 6: HELD}, at_s=1)
    books.tick({}, at_s=2, freed=(5, 9, 99999))
    assert books.settled() == {"SUPPRESSED__NEVER_GROUPED": 1}
    assert books.tick({}, at_s=3, grouped=(5, 6)) == Out({}, {6: 1})


def test_closing_settles_all_that_waits() -> None:
    books = Books()
    books.tick({5: HELD, 6: HELD}, at_s=1)
    for _ in range(2):
        books.accounts.close()
        assert books.settled() == {"SUPPRESSED__NEVER_GROUPED": 2}
        assert books.accounts.n_waiting == 0
        assert books.imbalance() == 0


slots = st.integers(0, 5)
newest = st.sampled_from([HELD, PUBLISHED, Outcome.SUPPRESSED__OFF_GRAPH])
old = st.sampled_from([Outcome.LATE, Outcome.DUPLICATE, Outcome.SUPPRESSED__SUPERSEDED])
steps = st.tuples(
    st.dictionaries(slots, newest),
    st.lists(st.tuples(slots, old), max_size=3),
    st.sets(slots),
    st.sets(slots),
)


@given(st.lists(steps, max_size=12))
def test_the_books_are_those_of_a_dict(
    sequence: list[tuple[dict[int, Outcome], list[tuple[int, Outcome]], set[int], set[int]]],
) -> None:
    books = Books()
    waiting: dict[int, float] = {}
    for at_s, (news, olds, grouped, freed) in enumerate(sequence):
        grouped -= {slot for slot, outcome in news.items() if outcome == PUBLISHED}
        out = books.tick(
            [*olds, *news.items()], at_s=at_s, grouped=tuple(grouped), freed=tuple(freed)
        )
        for slot, outcome in news.items():
            waiting.pop(slot, None)
            if outcome == HELD:
                waiting[slot] = at_s
        assert out.direct == {s: at_s for s, outcome in news.items() if outcome == PUBLISHED}
        assert out.waited == {s: waiting.pop(s) for s in grouped if s in waiting}
        for slot in freed:
            waiting.pop(slot, None)
        assert books.accounts.n_waiting == len(waiting)
