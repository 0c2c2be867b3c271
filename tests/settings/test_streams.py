from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError

from anonymizer.domain.promises import Promise
from anonymizer.settings import PromiseSettings, Settings, StreamSettings
from tests.pipeline.records.made import FLEET, fleet

NUMBER: dict[str, Any] = {"role": "sensitive", "lo": 0, "hi": 9}
LASTING_FAULT = [{**a, "lasting": True} for a in FLEET["attributes"][-1:]] + FLEET["attributes"][
    :-1
]
CELLS: dict[str, Any] = {
    "model": "cells",
    "method": "auto",
    "promise": {"k": 4},
    "cumulative": "report",
}


def mistake(**changes: Any) -> str:  # noqa: ANN401  settings of any kind
    """Return what is said of a fleet with a mistake in it."""
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({"streams": [{**deepcopy(FLEET), **changes}]})
    [error] = caught.value.errors(include_url=False, include_input=False, include_context=False)
    return error["msg"]


def attribute(**values: Any) -> str:  # noqa: ANN401  settings of any kind
    """Return what is said of a mistaken attribute."""
    attributes = [*FLEET["attributes"][1:], {"name": "type", **values}]
    return mistake(attributes=attributes)


def source(**values: Any) -> str:  # noqa: ANN401  settings of any kind
    """Return what is said of a mistaken source."""
    sources = [*FLEET["sources"][1:], {"name": "a", "tells": ["type", "region"], **values}]
    return mistake(sources=sources)


def test_settings_without_streams_are_what_they_were() -> None:
    assert Settings().streams == ()
    assert Settings.model_validate({"streams": [FLEET]}).inputs == Settings().inputs


def test_streams_alone_are_enough_and_nothing_at_all_is_not() -> None:
    assert Settings.model_validate({"inputs": [], "streams": [FLEET]}).inputs == ()
    with pytest.raises(ValidationError, match="inputs: at least one is required, or streams"):
        Settings.model_validate({"inputs": []})


def test_a_promise_is_safe_where_nothing_is_said() -> None:
    promise = StreamSettings.model_validate({**FLEET, "promise": {}}).promise.promise
    assert promise == Promise(k=10, d=2, l=1, max_share=0.995, max_source_share=0.95)


def test_one_value_of_all_is_as_much_as_is_asked_for_where_d_is_1_or_it_is_said() -> None:
    said = {"d": 2, "max_share": 1, "max_source_share": 1}
    for promise in ({"d": 1}, said):
        kept = fleet(promise=promise, cumulative="report").promise.promise
        assert (kept.max_share, kept.max_source_share) == (1, 1)


def test_names_are_put_into_topics() -> None:
    assert fleet().output_topic == "anonymized/fleet"
    assert fleet().sources[0].filter_topic == "records/registration/{vehicle}"


def test_silence_lasts_a_window_and_its_lateness_where_nothing_is_said() -> None:
    assert fleet(idle_s=None).silence_s == 65
    assert fleet(idle_s=3).silence_s == 3


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "the domain must be declared"),
        ({"lo": 1}, "lo and hi must be given together"),
        ({"lo": 1, "hi": 1}, "lo must be below hi"),
        ({"lo": 1, "hi": 2, "values": ["a"]}, "either lo and hi or values"),
        ({"values": ["a", "a"]}, "each category once"),
        ({"values": ["a"], "role": "secret"}, "'qi', 'sensitive' or 'measure'"),
        ({"values": ["a"], "role": "measure"}, "a measure must be a number"),
        ({"lo": 0, "hi": 1, "role": "measure", "lasting": True}, "a measure must be a number"),
        ({"lo": 0, "hi": 1, "label": "prefix"}, "prefix is for categories"),
        ({"lo": 0, "hi": 1, "label": "hours"}, 'values = "time_of_day"'),
        ({"values": "time_of_day", "hi": 24}, "declares the whole domain"),
        ({"values": ["a"], "name": "own"}, "a field of the class itself"),
        ({"lo": 0, "hi": 9, "bands": [3]}, "bands: are for sensitive numbers"),
        ({"values": ["a"], "role": "sensitive", "bands": [3]}, "bands: are for sensitive numbers"),
        (NUMBER | {"bands": [3], "lasting": True}, "bands: are not for a lasting attribute"),
        (NUMBER | {"bands": [3, 3]}, "bands: must rise, above lo and up to hi"),
        (NUMBER | {"bands": [0, 3]}, "bands: must rise, above lo and up to hi"),
        (NUMBER | {"bands": [3, 9.5]}, "bands: must rise, above lo and up to hi"),
    ],
)
def test_an_attribute_has_one_domain(values: dict[str, Any], said: str) -> None:
    assert said in attribute(**values)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"topic": "records/{source}"}, "{vehicle} is required"),
        ({"vehicle": "id"}, "must not name the vehicle"),
        ({"vehicle": "id", "topic": "a/{depot}"}, "must not name the vehicle"),
        ({"vehicle": "type", "topic": "a"}, "type is the vehicle, not an attribute"),
        ({"topic": "a+/{vehicle}"}, "level 1 is neither plain"),
        ({"topic": "#/{vehicle}"}, "level 1 is neither plain"),
        ({"tells": ["type", "region", "height"]}, "not declared"),
        ({"tells": ["type"]}, "every attribute must have a source"),
        ({"tells": ["type", "region", "age"]}, "names must be unique"),
        ({"name": "profile"}, "names must be unique"),
        ({"time": "type"}, "type is the time of a part, not an attribute"),
        ({"topic": "records/profile/{vehicle}"}, "topic: names must be unique"),
    ],
)
def test_a_source_is_a_topic_that_carries_attributes(values: dict[str, Any], said: str) -> None:
    assert said in source(**values)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"promise": {"k": 1}}, "greater than or equal to 2"),
        ({"model": "kld"}, "requires promise.l of 2"),
        (
            {"promise": {"min_spread": {"type": 1.0}}},
            "promise: min_spread: type is not a numeric quasi-identifier",
        ),
        ({"per": "record"}, "requires a single source"),
        ({"method": "fast"}, 'method: must be auto or hilbert or best for "kd"'),
        ({"model": "kaca"}, 'method: must be auto or kmeans or fast for "kaca"'),
        (
            {"model": "kaca", "method": "auto", "promise": {"max_share": 0.5}},
            "supports k, d and l only",
        ),
        ({"promise": {"d": 1}}, "requires promise.d of 2 or more for a lasting"),
        ({"attributes": LASTING_FAULT}, "requires promise.l of 2 or more for a lasting sensitive"),
        ({"target": "fault"}, 'target: not available for "kd"'),
        ({"labels": "range"}, 'labels: not available for "kd"'),
        (CELLS | {"method": "best"}, 'auto or tree for "cells"'),
        (CELLS | {"promise": {"k": 4, "l": 5}}, "promise: l = 5 is more than k = 4"),
        (CELLS | {"promise": {"k": 4, "entropy_l": 4.5}}, "entropy-l = 4.5 is more than k = 4"),
        (CELLS | {"target": "age"}, "target: must be a sensitive attribute or a measure"),
        (CELLS | {"target": "height"}, "target: must be a sensitive attribute or a measure"),
        (CELLS | {"target": "fault"}, "target: is sensitive: requires promise.l of 2 or more"),
        (CELLS | {"labels": "median"}, "'representative' or 'range'"),
        (
            CELLS | {"cumulative": None, "labels": "representative"},
            'requires labels = "range": a representative',
        ),
        (
            {"model": "kaca", "method": "auto", "promise": {"d": 1}},
            "requires promise.d of 2 or more",
        ),
        ({"topic": "anonymized/#"}, "should match pattern"),
        ({"name": "a/b"}, "should match pattern"),
        ({"attributes": [{**a, "role": "sensitive"} for a in FLEET["attributes"]]}, "at least one"),
        (
            {
                "attributes": [{**a, "role": "qi"} for a in FLEET["attributes"]],
                "promise": {"l": 2},
            },
            "require a sensitive attribute",
        ),
    ],
)
def test_a_stream_that_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    assert said in mistake(**changes)


def test_cells_ask_for_k_alone_and_learn_what_is_sensitive_once_it_is_bounded() -> None:
    cells = fleet(**CELLS)
    assert (cells.promise.promise.d, cells.promise.promise.max_share) == (1, 1)
    assert (cells.labels, cells.learned) == ("representative", None)
    for bound in ({"l": 2}, {"entropy_l": 1.5}, {"t": 0.2}):
        bounded = CELLS | {"promise": {"k": 4, **bound}}
        assert fleet(**bounded).learned == "fault"
        assert fleet(**bounded, target="fault").learned == "fault"
        assert fleet(**bounded, target="").learned is None
    enforced = fleet(**CELLS | {"cumulative": "enforce", "labels": "range"})
    assert enforced.promise.promise.d == 2
    assert fleet(**CELLS | {"method": "tree"}).method == "tree"


def test_kaca_asks_for_k_alone_unless_more_is_said() -> None:
    kaca = fleet(model="kaca", method="auto", promise={"k": 7}, cumulative="report")
    assert (kaca.promise.k, kaca.promise.d) == (7, 1)
    lasting = fleet(model="kaca", method="auto", promise={"k": 7})
    assert (lasting.promise.d, lasting.promise.promise.max_share) == (2, 1)
    assert fleet(model="kaca", method="auto", promise={"k": 7, "d": 3}).promise.d == 3


@pytest.mark.parametrize(
    ("window_s", "utc_offset_h", "begins"),
    [(86_400, 8, 57_600), (86_400, -5, 18_000), (3600, 5.5, 1800), (60, 8, 0), (86_400, 0, 0)],
)
def test_windows_begin_with_local_days(window_s: float, utc_offset_h: float, begins: float) -> None:
    assert fleet(window_s=window_s, utc_offset_h=utc_offset_h).begin_s == begins


@pytest.mark.parametrize(("lateness_s", "n"), [(30, 8), (600, 12)])
def test_so_many_windows_are_open_that_they_close_in_time(lateness_s: float, n: int) -> None:
    assert fleet(window_s=60, lateness_s=lateness_s).rule.max_open == n


def two_streams(**changes: Any) -> Settings:  # noqa: ANN401  settings of any kind
    """Return settings of a stream, and of another one that reads its telemetry as well."""
    telemetry = {**FLEET["sources"][2], "tells": ["heat"]}
    heat = {"name": "heat", "lo": 0, "hi": 200}
    other = {"name": "other", "sources": [telemetry], "attributes": [heat], **changes}
    return Settings.model_validate({"streams": [FLEET, other]})


def test_streams_may_read_one_topic_if_each_value_is_in_one_of_them() -> None:
    fleet_, other = two_streams().streams
    assert [mine.name for mine, _ in fleet_.topics_shared_with(other)] == ["telemetry"]
    assert fleet_.values_shared_with(other) == []


def test_a_value_in_two_streams_has_to_be_asked_for_in_both() -> None:
    speed: dict[str, Any] = {
        "sources": [{**FLEET["sources"][2], "tells": ["v"]}],
        "attributes": [{"name": "v", "path": "speed", "lo": 0, "hi": 60}],
    }
    for promised in ({}, {"cumulative": "report"}):  # FLEET enforces its promise
        with pytest.raises(ValidationError, match="fleet and other publish speed of the same"):
            two_streams(**speed, **promised)
    both: list[dict[str, Any]] = [
        {**FLEET, "cumulative": "report"},
        {"name": "other", **speed, "cumulative": "report"},
    ]
    one, other = Settings.model_validate({"streams": both}).streams
    assert one.values_shared_with(other) == ["speed"]
    speed["sources"][0]["tells"] = ["v", "heat"]
    speed["attributes"][0]["role"] = "measure"  # a class tells its mean alone
    speed["attributes"].append({"name": "heat", "lo": 0, "hi": 200})
    one, other = two_streams(**speed).streams
    assert one.values_shared_with(other) == []


@pytest.mark.parametrize(
    "source",
    [
        {"topic": "records/+", "vehicle": "id"},
        {"topic": "records/telemetry/#", "vehicle": "id"},
        {"topic": "records/{kind}/{vehicle}"},
    ],
)
def test_streams_that_read_one_message_name_its_vehicle_alike(source: dict[str, Any]) -> None:
    telemetry = {**FLEET["sources"][2], **source, "tells": ["heat"]}
    if source["topic"] == "records/+":
        assert two_streams(sources=[telemetry]).streams  # one level less: no message is for both
        return
    with pytest.raises(ValidationError, match="fleet and other may read one message: both must"):
        two_streams(sources=[telemetry])


def test_two_streams_are_apart() -> None:
    with pytest.raises(ValidationError, match="streams: names must be unique"):
        Settings.model_validate({"streams": [FLEET, FLEET]})


@pytest.mark.parametrize(
    ("changes", "enforces"),
    [
        ({"model": "kd"}, True),
        ({"model": "kd", "cumulative": "report"}, False),
        ({"model": "kaca"}, True),
        ({"model": "kaca", "cumulative": "report"}, False),
        ({"model": "cells", "labels": "range"}, True),
        ({"model": "cells", "cumulative": "report"}, False),
    ],
)
def test_windows_together_keep_the_promise_by_default_where_the_model_can(
    changes: dict[str, Any],
    enforces: bool,  # noqa: FBT001  a case
) -> None:
    settings = fleet(method="auto", **changes)
    assert (settings.enforces, settings.unprotected) == (enforces, not enforces)


@pytest.mark.parametrize("model", ["kd", "kld", "kaca", "cells"])
def test_a_margin_is_added_to_k_and_d_of_every_model(model: str) -> None:
    asked = {"k": 4, "d": 2, "l": 2, "k_extra": 3}
    labels = {"labels": "range"} if model == "cells" else {}
    kept = fleet(model=model, method="auto", promise=asked, **labels).promise
    assert (kept.k, kept.promise.k, kept.d, kept.promise.d) == (4, 7, 2, 5)
    without_d = PromiseSettings(k=4, d=1, k_extra=3).promise
    assert (without_d.k, without_d.d) == (7, 1)
