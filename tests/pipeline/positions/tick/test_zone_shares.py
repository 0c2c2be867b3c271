"""Places are shared fairly: who asks for an equal share gets it, whatever others ask for."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.positions.tick.zone_shares import ZoneHolder, ZoneShares
from tests.examples import many

HELD = st.builds(ZoneHolder, st.integers(0, 4), st.integers(0, 9))
STEPS = st.lists(st.tuples(st.booleans(), HELD), max_size=60)


def after(
    steps: list[tuple[bool, ZoneHolder]], n_places: int
) -> tuple[ZoneShares, set[ZoneHolder]]:
    """Return the shares after taking (true) and leaving, and who has a place by what was said."""
    shares, have = ZoneShares(n_places), set[ZoneHolder]()
    for takes, held in steps:
        # A device has one publisher.
        held = ZoneHolder(held.publisher, 10 * held.publisher + held.device)  # noqa: PLW2901
        if not takes:
            shares.leave(held)
            have.discard(held)
            continue
        without = shares.take(held)
        have.add(held)
        if without is not None:
            have.discard(without)
    return shares, have


@many(3)
@given(STEPS, st.integers(1, 8))
def test_who_has_a_place_is_what_was_said_and_never_more_than_there_are(
    steps: list[tuple[bool, ZoneHolder]], n_places: int
) -> None:
    shares, have = after(steps, n_places)
    assert set(shares.all()) == have
    assert len(shares) == len(have) <= n_places
    assert all(shares.has(held) for held in have)
    assert all(set(shares.of(p)) == {h for h in have if h.publisher == p} for p in range(5))


@many(3)
@given(STEPS, st.integers(1, 8), HELD)
def test_a_place_is_refused_only_to_who_has_an_equal_share(
    steps: list[tuple[bool, ZoneHolder]], n_places: int, last: ZoneHolder
) -> None:
    shares, before = after(steps, n_places)
    held = ZoneHolder(last.publisher, 1000)
    n_of = Counter(each.publisher for each in before)
    largest = max(n_of.values(), default=0)
    without = shares.take(held)
    if len(before) < n_places:
        assert without is None
    elif n_of[held.publisher] + 1 < largest:
        assert without is not None
        assert n_of[without.publisher] == largest, "who has most yields"
    else:
        assert without == held


@many(3)
@given(STEPS, STEPS, st.integers(1, 8))
def test_shares_that_are_made_again_go_on_alike(
    steps: list[tuple[bool, ZoneHolder]], more: list[tuple[bool, ZoneHolder]], n_places: int
) -> None:
    shares, _ = after(steps, n_places)
    again = ZoneShares(n_places)
    assert [again.take(held) for held in shares.all()] == [None] * len(shares)
    for takes, held in more:
        if takes:
            assert again.take(held) == shares.take(held)
        else:
            shares.leave(held)
            again.leave(held)
        assert again.all() == shares.all()


def test_who_has_most_yields_after_another_with_as_many_has_left_a_place() -> None:
    shares = ZoneShares(6)
    for publisher in (0, 1):
        for device in range(3):
            assert shares.take(ZoneHolder(publisher, 10 * publisher + device)) is None
    shares.leave(ZoneHolder(0, 2))
    assert shares.take(ZoneHolder(2, 20)) is None
    assert shares.take(ZoneHolder(3, 30)) == ZoneHolder(1, 12)
