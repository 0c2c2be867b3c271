"""Which source takes a message: one for all positions and statements of a device."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.cluster.positions.device_routing import DeviceRouting
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.settings import InputSettings
from tests.examples import many

N = 1000
SEVERAL: list[dict[str, Any]] = [
    {"topic": "cars/{device}"},
    {"topic": "fleet/+/{device}/#"},
    {"topic": "{device}/gps"},
]
NAMED: dict[str, Any] = {"topic": "all/+", "device_from": "payload"}
PUBLIC: dict[str, Any] = {"topic": "public/{device}", "kind": "public"}
CLOAKED: dict[str, Any] = {"topic": "sensors/{device}", "kind": "fixed"}


def inputs_of(stated: Sequence[Mapping[str, Any]]) -> list[InputSettings]:
    return [InputSettings.model_validate(each) for each in stated]


def sources(routing: DeviceRouting, *topics: str, n: int = N) -> list[int]:
    messages = [Delivery(topic, b"", 0) for topic in topics]
    found: list[int] = routing.parts_of(PackedDeliveries.of(messages), n).tolist()
    return found


def test_a_device_with_several_topics_has_one_source() -> None:
    routing = DeviceRouting(inputs_of(SEVERAL))
    found = sources(routing, "cars/a", "fleet/north/a", "fleet/south/a/x/y", "a/gps")
    assert len(set(found)) == 1
    assert found[0] != sources(routing, "cars/b")[0]


@many(3)
@given(
    st.lists(
        st.builds(
            "/".join,
            st.lists(
                st.sampled_from(["cars", "fleet", "gps", "a", "b", "ä", ""]), min_size=1, max_size=4
            ),
        ),
        max_size=9,
    ),
    st.integers(1, 5),
    st.integers(0, 9),
)
def test_equal_devices_have_equal_sources_in_every_bridge_whatever_it_knows(
    topics: list[str], n: int, at: int
) -> None:
    inputs = inputs_of(SEVERAL)
    routing, router = DeviceRouting(inputs), TopicRouter(inputs)
    sources(routing, *topics[:at], n=n)
    found = sources(routing, *topics, n=n)
    routing.forget(at_s=0.0)
    routing.forget(at_s=1e9)
    assert sources(routing, *topics, n=n) == found == sources(DeviceRouting(inputs), *topics, n=n)
    source_of: dict[str, int] = {}
    for topic, source in zip(topics, found, strict=True):
        assert 0 <= source < n
        if device := router.device(topic):
            assert source_of.setdefault(device, source) == source


def test_devices_are_divided_evenly() -> None:
    found = sources(DeviceRouting(inputs_of(SEVERAL)), *(f"cars/d{i}" for i in range(4000)), n=4)
    assert np.bincount(found).min() > 900


@pytest.mark.parametrize("stated", [[NAMED], [*SEVERAL, NAMED]])
def test_where_payloads_name_devices_one_source_takes_all_mobile_ones(
    stated: list[dict[str, Any]],
) -> None:
    routing = DeviceRouting(inputs_of([*stated, PUBLIC]))
    topics = ["all/1", "all/2"] + (["cars/a", "fleet/x/b"] if len(stated) > 1 else [])
    assert len(set(sources(routing, *topics))) == 1
    assert len(set(sources(routing, *(f"public/{i}" for i in range(20))))) > 10


def test_one_source_takes_all_cloaked_fixed_devices() -> None:
    routing = DeviceRouting(inputs_of([*SEVERAL, CLOAKED]))
    assert len(set(sources(routing, *(f"sensors/{i}" for i in range(20))))) == 1
    assert len(set(sources(routing, *(f"cars/{i}" for i in range(20))))) > 10


@pytest.mark.parametrize(
    ("stated", "position", "zones", "statement"),
    [
        ([{}], "positions/a", "z/{device}/w", "z/a/w"),
        ([{"topic": "x/{name}/y"}], "x/a/y", "z/{device}/w", "z/a/w"),
        ([*SEVERAL], "fleet/south/a", "z/{device}", "z/a"),
        ([NAMED], "all/1", "z/{device}", "z/a"),
        (
            [{"topic": "{user}/{device}/p"}],
            "ann/phone/p",
            "z/{user}/w/{device}",
            "z/ann/w/phone",
        ),
    ],
)
def test_a_statement_goes_to_the_source_of_the_positions(
    stated: list[dict[str, Any]], position: str, zones: str, statement: str
) -> None:
    routing = DeviceRouting(inputs_of(stated))
    said = PackedDeliveries.of([Delivery(statement, b"", 0), Delivery(statement, b"[]", 0)])
    found = routing.of_statements(zones).parts_of(said, N).tolist()
    assert found == sources(routing, position) * 2
