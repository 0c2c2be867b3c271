"""One bad message over MQTT costs itself: it is counted, and everything behind it arrives."""

from pathlib import Path

from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.poison import assert_it_costs_nobody_else, default_mosquitto
from tests.app.gateway.records import compiled
from tests.transport.support import VERSIONS
from tests.transport.unchanged import UnchangedBroker

__all__ = ["compiled"]


@VERSIONS
async def test_messages_that_are_too_large_stop_nothing_on_mosquittos_defaults(
    tmp_path: Path, version: str
) -> None:
    broker = default_mosquitto(tmp_path)
    await broker.start()
    try:
        await assert_it_costs_nobody_else(tmp_path, broker.url, version=version)
    finally:
        await broker.stop()


@VERSIONS
async def test_messages_at_qos_2_stop_nothing_on_a_broker_that_hands_them_on_unchanged(
    broker: LocalBroker, tmp_path: Path, version: str
) -> None:
    relay = UnchangedBroker(broker.url, version5=version == "5")
    async with relay.serving():
        await assert_it_costs_nobody_else(tmp_path, broker.url, relay.url, version=version)
