"""Topics of the records flow: routes, keys of vehicles, and subscriptions."""

import pytest

from anonymizer.pipeline.records.topics import RecordRouter, topic_filter
from tests.pipeline.records.made import FLEET, fleet

SECRET = b"of this test"


def router(*topics: str, secret: bytes = SECRET, name: str = "fleet") -> RecordRouter:
    sources = [
        {**source, "topic": topic} for source, topic in zip(FLEET["sources"], topics, strict=False)
    ] + FLEET["sources"][len(topics) :]
    return RecordRouter([fleet(sources=sources, name=name)], secret=secret, max_id_chars=9)


def test_a_topic_identifies_stream_source_and_vehicle() -> None:
    routes = router()
    first, second = routes.route("records/registration/v1"), routes.route("records/telemetry/v1")
    assert first is not None
    assert second is not None
    assert (first.stream, first.source, second.source) == (0, 0, 2)
    assert first.vehicle == second.vehicle
    other = routes.route("records/telemetry/v2")
    assert other is not None
    assert other.vehicle != first.vehicle


def test_the_key_of_a_vehicle_is_a_digest_that_depends_on_secret_and_stream() -> None:
    keys = {
        route.vehicle
        for one in (router(), router(secret=b"another"), router(name="other"))
        if (route := one.route("records/profile/v1")) is not None
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
    route = router(pattern).route(topic)
    assert (route is not None and bool(route.vehicle)) == known


def test_several_levels_together_are_one_vehicle_id() -> None:
    routes = router("a/{vehicle}/{vehicle}")
    found = {routes.route(topic) for topic in ("a/b/c", "a/c/b", "a/bc/c")}
    assert len(found) == 3


def test_where_the_payload_names_the_vehicle_the_topic_does_not() -> None:
    sources = [{**FLEET["sources"][0], "topic": "feed/+", "vehicle": "id"}, *FLEET["sources"][1:]]
    routes = RecordRouter([fleet(sources=sources)], secret=SECRET, max_id_chars=9)
    named, claimed = routes.route("records/profile/v1"), routes.route("feed/1")
    assert named is not None
    assert claimed is not None
    assert (claimed.vehicle, claimed.topic) == (b"", b"feed/1")
    # An id stands for one vehicle, whichever way it is stated.
    assert routes.key(claimed.stream, "v1") == named.vehicle
    assert [routes.key(0, unusable) for unusable in ("", "0123456789")] == [b"", b""]


def test_a_topic_that_matches_no_source_has_no_route() -> None:
    assert router().route("elsewhere/v1") is None


def test_the_filter_of_a_source_matches_any_vehicle() -> None:
    assert [topic_filter(s) for s in fleet().sources] == [
        "records/registration/+",
        "records/profile/+",
        "records/telemetry/+",
    ]


def test_the_repr_of_a_route_does_not_show_the_vehicle() -> None:
    assert repr(router().route("records/profile/v1")) == "Route(...)"
