import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.positions.decode.topics import Route, TopicRouter, subscription
from anonymizer.settings import InputSettings
from tests import naive

NATIVE = CODECS["native"]


def router(*filters: str) -> TopicRouter:
    return TopicRouter([an_input(topic) for topic in filters])


def an_input(topic: str, codec: str = "native") -> InputSettings:
    device_from = "topic" if "{device}" in topic.split("/") else "payload"
    return InputSettings.model_validate(
        {"topic": topic, "codec": codec, "device_from": device_from}
    )


@pytest.mark.parametrize(
    ("pattern", "topic", "device"),
    [
        ("positions/{device}", "positions/a", "a"),
        ("positions/{device}", "positions/ä b", "ä b"),
        ("{device}", "a", "a"),
        ("{device}/position", "a/position", "a"),
        ("{device}/+/{device}", "fleet/x/car", "fleet/car"),
        ("+/{device}/#", "x/a", "a"),
        ("+/{device}/#", "x/a/b/c", "a"),
        ("/hfp/v2/+/{device}/{device}/#", "/hfp/v2/bus/17/42/x", "17/42"),
        ("#", "any/thing", None),
        ("a/#", "a", None),
        ("a/+", "a/", None),
    ],
)
def test_a_topic_names_its_device(pattern: str, topic: str, device: str | None) -> None:
    assert router(pattern).find(topic) == Route(NATIVE, device)


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [
        ("positions/{device}", "positions"),
        ("positions/{device}", "positions/a/b"),
        ("positions/{device}", "/positions/a"),
        ("positions/{device}", "Positions/a"),
        ("positions/{device}", ""),
        ("a/b/#", "a"),
        ("+/{device}/#", "x"),
    ],
)
def test_a_topic_that_fits_no_input_has_no_route(pattern: str, topic: str) -> None:
    assert router(pattern).find(topic) is None


@pytest.mark.parametrize(
    ("pattern", "topic"),
    [("positions/{device}", "positions/"), ("{device}/{device}", "a/"), ("{device}/{device}", "/")],
)
def test_a_topic_with_an_empty_level_for_the_device_names_none(pattern: str, topic: str) -> None:
    assert router(pattern).find(topic) == Route(NATIVE, "")


def test_the_first_input_that_matches_decides() -> None:
    inputs = [an_input("buses/{device}", "hfp"), an_input("{device}/+"), an_input("#", "traccar")]
    route = TopicRouter(inputs).find
    assert route("buses/7") == Route(CODECS["hfp"], "7")
    assert route("trams/7") == Route(NATIVE, "trams")
    assert route("trams") == Route(CODECS["traccar"], None)


levels = st.sampled_from(["a", "b", "+", "{device}"])
filters = st.tuples(st.lists(levels, min_size=1, max_size=3), st.booleans()).map(
    lambda parts: "/".join([*parts[0], *(["#"] if parts[1] else [])])
)
topic_names = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=4).map("/".join)


@given(filters, st.lists(topic_names, min_size=1, max_size=5))
def test_routes_agree_with_a_regular_expression_and_asking_again_changes_nothing(
    topic_filter: str, names: list[str]
) -> None:
    routed = router(topic_filter)
    pattern = naive.mqtt_filter(topic_filter)
    for name in names + names:
        match, route = pattern.fullmatch(name), routed.find(name)
        assert (route is not None) == (match is not None)
        if route is not None and match is not None:
            parts = match.groups()
            expected = ("/".join(parts) if all(parts) else "") if parts else None
            assert route.device == expected


def test_the_broker_is_asked_for_any_device() -> None:
    assert subscription("{device}/x/{device}/#") == "+/x/+/#"


def test_who_speaks_is_not_in_the_repr_of_a_route() -> None:
    assert "secret" not in repr(Route(NATIVE, "secret"))


def test_an_input_with_bounds_is_read_by_its_codec_which_checks_them() -> None:
    stated = {"codec": "owntracks", "topic": "o/{device}"}
    assert TopicRouter([InputSettings.model_validate(stated)]).layouts[0] is not None
    bounded = TopicRouter(
        [InputSettings.model_validate(stated | {"within": {"speed_mps": (5.0, 9.0)}})]
    )
    assert bounded.layouts == [None]
    body = b'{"_type": "location", "lat": 60, "lon": 24, "tst": 1, "vel": %d}'
    [slow], [fast] = (bounded.routes[0].codec(body % kmh) for kmh in (10, 20))
    assert slow is Outcome.INVALID__NOT_SELECTED
    assert isinstance(fast, Fix)


def test_bounds_that_hold_nothing_are_refused() -> None:
    with pytest.raises(ValidationError, match="must not be above"):
        InputSettings.model_validate({"within": {"speed_mps": (9.0, 5.0)}})
