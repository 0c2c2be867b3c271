"""Topics of the records flow: routes, keys of vehicles, and subscriptions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.device_ids import plain_id
from anonymizer.pipeline.records.topics import RecordRouter, subscriptions, topic_filter
from anonymizer.settings import StreamSettings
from tests.pipeline.records.made import FLEET, fleet

SECRET = b"of this test"


def router(*topics: str, secret: bytes = SECRET, name: str = "fleet") -> RecordRouter:
    sources = [
        {**source, "topic": topic} for source, topic in zip(FLEET["sources"], topics, strict=False)
    ] + FLEET["sources"][len(topics) :]
    return RecordRouter([fleet(sources=sources, name=name)], secret=secret, max_id_chars=9)


def test_a_topic_identifies_stream_source_and_vehicle() -> None:
    routes = router()
    [first], [second] = (routes.routes_of(f"records/{s}/v1") for s in ("registration", "telemetry"))
    assert (first.stream, first.source, second.source) == (0, 0, 2)
    assert first.vehicle == second.vehicle
    [other] = routes.routes_of("records/telemetry/v2")
    assert other.vehicle != first.vehicle


def test_the_key_of_a_vehicle_is_a_digest_that_depends_on_secret_and_stream() -> None:
    keys = {
        route.vehicle
        for one in (router(), router(secret=b"another"), router(name="other"))
        for route in one.routes_of("records/profile/v1")
    }
    assert len(keys) == 3
    assert all(len(key) == 16 and b"v1" not in key for key in keys)


@pytest.mark.parametrize(
    ("pattern", "topic", "known"),
    [
        ("a/{vehicle}", "a/v", True),
        ("a/{vehicle}", "a/v/w", False),
        ("a/{vehicle}", "a/", False),
        ("a/{vehicle}", "a/0123456789", False),
        ("a/{vehicle}/+", "a/v/", True),
        ("a/{vehicle}/#", "a/v", True),
        ("a/{vehicle}/#", "a/v/x/y", True),
        ("+/{vehicle}/{vehicle}", "a/b/c", True),
        ("+/{vehicle}/{vehicle}", "a//c", False),
        ("a.b/{vehicle}", "axb/v", False),
    ],
)
def test_topics_match_like_filters_and_must_have_a_usable_vehicle_id(
    pattern: str, topic: str, *, known: bool
) -> None:
    assert [bool(route.vehicle) for route in router(pattern).routes_of(topic)] in (
        [[True]] if known else [[], [False]]
    )


def test_several_levels_together_are_one_vehicle_id() -> None:
    routes = router("a/{vehicle}/{vehicle}")
    found = {routes.routes_of(topic) for topic in ("a/b/c", "a/c/b", "a/bc/c")}
    assert len(found) == 3


def test_where_the_payload_names_the_vehicle_the_topic_does_not() -> None:
    sources = [{**FLEET["sources"][0], "topic": "feed/+", "vehicle": "id"}, *FLEET["sources"][1:]]
    routes = RecordRouter([fleet(sources=sources)], secret=SECRET, max_id_chars=9)
    [named], [claimed] = routes.routes_of("records/profile/v1"), routes.routes_of("feed/1")
    assert (claimed.vehicle, claimed.topic) == (b"", b"feed/1")
    # An id stands for one vehicle, whichever way it is stated.
    assert routes.key(claimed.stream, "v1") == named.vehicle
    assert [routes.key(0, unusable) for unusable in ("", "0123456789")] == [b"", b""]


@pytest.mark.parametrize(
    "writings",
    [
        ("AB-1", "ab 1", "AB 1", "ab1", "AB_1", "A B-1", "AB.1", "Ab-1", "ab-1"),
        ("17", "017", "17.0", "+17"),
        ("M\u00fcller", "Muller", "MULLER"),
    ],
)
def test_k_counts_a_vehicle_once_however_its_id_is_written(writings: tuple[str, ...]) -> None:
    routes = router()
    by_topic = {routes.routes_of(f"records/telemetry/{each}")[0].vehicle for each in writings}
    assert len(by_topic) == 1
    assert {routes.key(0, plain_id(each)) for each in writings} == by_topic
    # A store of an earlier version has keys of another kind, which its histories need.
    other = RecordRouter([fleet()], secret=SECRET, max_id_chars=9, folds=False)
    assert len({other.key(0, plain_id(each)) for each in writings}) > 1


def test_ids_that_differ_in_more_than_their_writing_are_different_vehicles() -> None:
    different = ("AB-1", "AB-2", "1.5", "15", "-15", "aB3xY", "ab3xy", "a/b1", "ab/1", "bus", "car")
    assert len({router().key(0, each) for each in different}) == len(different)


def test_a_topic_that_matches_no_source_has_no_route() -> None:
    assert router().routes_of("elsewhere/v1") == ()


SHARED = {
    "name": "health",
    "sources": [{**FLEET["sources"][2], "tells": ["heat"]}],
    "attributes": [{"name": "heat", "lo": 0, "hi": 200}],
}


def test_a_topic_has_a_route_in_each_stream_that_reads_it_and_other_keys_there() -> None:
    streams = [fleet(), StreamSettings.model_validate(SHARED)]
    routes = RecordRouter(streams, secret=SECRET, max_id_chars=9)
    first, second = routes.routes_of("records/telemetry/v1")
    assert (first.stream, first.source, second.stream, second.source) == (0, 2, 1, 0)
    assert first.vehicle != second.vehicle
    assert len(routes.routes_of("records/profile/v1")) == 1


def test_a_shared_topic_is_subscribed_to_once() -> None:
    streams = [StreamSettings.model_validate(SHARED), fleet()]
    assert subscriptions(streams) == [
        ("records/telemetry/+", 1),
        ("records/registration/+", 1),
        ("records/profile/+", 1),
    ]


def test_the_filter_of_a_source_matches_any_vehicle() -> None:
    assert [topic_filter(s) for s in fleet().sources] == [
        "records/registration/+",
        "records/profile/+",
        "records/telemetry/+",
    ]


def test_the_repr_of_a_route_does_not_show_the_vehicle() -> None:
    assert repr(router().routes_of("records/profile/v1")) == "(RecordRoute(...),)"


def test_one_source_may_read_all_topics_if_payloads_name_the_vehicles() -> None:
    [of_all, *others] = FLEET["sources"]
    fleet_of_all = fleet(sources=[{**of_all, "topic": "#", "vehicle": "id"}, *others])
    routes = RecordRouter([fleet_of_all], secret=SECRET, max_id_chars=9)
    assert [route.topic for route in routes.routes_of("any/thing")] == [b"any/thing"]


LEVELS = st.sampled_from(["a", "b", "+", "{vehicle}"])
TOPICS = st.lists(st.sampled_from(["a", "b", "", "{x}", "+", "#"]), min_size=1, max_size=4)


@given(
    st.lists(st.tuples(st.lists(LEVELS, max_size=3), st.booleans()), min_size=1, max_size=5), TOPICS
)
def test_all_streams_that_read_a_topic_are_found_whoever_else_is_there(
    drawn: list[tuple[list[str], bool]], levels: list[str]
) -> None:
    filters = ["/".join([*each, "{vehicle}"] + ["#"] * several) for each, several in drawn]
    topic = "/".join(levels)
    sources = [{**FLEET["sources"][0], "topic": each} for each in filters]
    streams = [
        fleet(name=f"s{i}", sources=[source, *FLEET["sources"][1:]])
        for i, source in enumerate(sources)
    ]
    together = RecordRouter(streams, secret=SECRET, max_id_chars=9)
    alone = [RecordRouter([each], secret=SECRET, max_id_chars=9) for each in streams]
    expected = [(i, route.vehicle) for i, one in enumerate(alone) for route in one.routes_of(topic)]
    assert [(route.stream, route.vehicle) for route in together.routes_of(topic)] == expected
