"""Statements of zones in a cluster: each goes to the source of its device's positions."""

from zlib import crc32

import pytest

from anonymizer.cluster.positions.zone_statements import ZoneRouting
from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import DeviceZoneSettings, InputSettings


@pytest.mark.parametrize(
    ("input_", "topic"),
    [
        ({}, "positions/a"),
        ({"topic": "x/{name}/y"}, "x/a/y"),
        ({"topic": "all", "device_from": "payload"}, "all"),
    ],
)
def test_a_statement_goes_to_the_source_of_the_positions(
    input_: dict[str, str], topic: str
) -> None:
    routing = ZoneRouting(DeviceZoneSettings(topic="z/{device}/w"), InputSettings(**input_))  # type: ignore[arg-type]
    messages = PackedDeliveries.of([Delivery("z/a/w", b"", 0), Delivery("z/a/w", b"[]", 0)])
    assert routing.parts_of(messages, 1000).tolist() == [crc32(topic.encode()) % 1000] * 2


def test_a_statement_goes_to_the_source_of_an_id_of_several_levels() -> None:
    routing = ZoneRouting(
        DeviceZoneSettings(topic="z/{user}/w/{device}"), InputSettings(topic="{user}/{device}/p")
    )
    messages = PackedDeliveries.of([Delivery("z/ann/w/phone", b"", 0)])
    assert routing.parts_of(messages, 1000).tolist() == [crc32(b"ann/phone/p") % 1000]
