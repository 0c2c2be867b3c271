"""What a cache of routes keeps is bounded by bytes and by age."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.pipeline.route_cache import ENTRY_BYTES, RouteCache
from tests.pipeline.records.made import fleet


def counting(found: list[str], *, max_bytes: int = 1_000_000) -> RouteCache[str]:
    """Return a cache that writes down what it had to find."""

    def find(topic: str) -> str:
        found.append(topic)
        return topic.upper()

    return RouteCache(find, max_bytes=max_bytes)


def test_a_topic_is_found_once_while_it_is_in_use() -> None:
    found: list[str] = []
    cache = counting(found)
    for at_s in range(0, 600, 20):
        cache.forget(at_s=float(at_s), kept_s=60.0)
        assert cache["a"] == "A"
    assert found == ["a"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 10)).filter(lambda step: step[1] >= 0),
        max_size=40,
    )
)
def test_no_topic_is_kept_for_longer_than_the_limit_after_its_last_use(
    steps: list[tuple[str, float]],
) -> None:
    found: list[str] = []
    cache, at_s, used_at_s = counting(found), 0.0, dict[str, float]()
    late_s = 0.0
    for topic, wait_s in steps:
        # `forget` is called often, as on every tick. Two generations may each end a tick late.
        late_s = max(late_s, wait_s / 10)
        for i in range(1, 11):
            cache.forget(at_s=at_s + wait_s * i / 10, kept_s=12.0)
        at_s += wait_s
        kept = {*cache, *cache._older}
        assert all(at_s - used_at_s[each] <= 12.0 + 2 * late_s for each in kept)
        assert cache[topic] == topic.upper()
        used_at_s[topic] = at_s


def test_after_a_pause_of_the_gateway_nothing_old_is_left() -> None:
    cache = counting([])
    cache.forget(at_s=0.0, kept_s=60.0)
    assert cache["a"] == "A"
    cache.forget(at_s=3600.0, kept_s=60.0)
    assert cache.n_topics == 0


@given(st.lists(st.integers(1, 20_000), max_size=60))
def test_however_long_topics_are_their_bytes_are_bounded(lengths: list[int]) -> None:
    cache = counting([], max_bytes=50_000)
    for i, length in enumerate(lengths):
        topic = f"{i}".ljust(length, "ä")
        assert cache[topic] == topic.upper()
        held = [*cache, *cache._older]
        assert sum(ENTRY_BYTES + 2 * (len(each) + 50) for each in held) <= 50_000


def test_the_bytes_that_are_counted_for_a_topic_are_those_that_it_takes() -> None:
    router = RecordRouter([fleet()], secret=b"of this test", max_id_chars=65_535)
    for length in (10, 60_000):
        n = 2_000 if length == 10 else 200
        tracemalloc.start()
        for i in range(n):
            router.routes_of(f"records/profile/{i:0{length}}")
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        counted = n * (ENTRY_BYTES + 2 * (65 + length))
        assert counted / 3 < taken <= counted


def test_the_repr_of_a_cache_shows_no_topic() -> None:
    cache = counting([])
    assert cache["truck-7"] == "TRUCK-7"
    assert "truck" not in repr(cache)
