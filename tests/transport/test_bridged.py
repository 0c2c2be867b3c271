"""Mosquitto's own bridge, with the lines that `connect` writes, from one broker to another."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from anonymizer.app.connect.ecosystems import ECOSYSTEMS
from anonymizer.domain.fixes import Fix
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.decode.topics import TopicRouter, subscription
from anonymizer.settings import BrokerSettings, InputSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import mosquitto

OF_A_BUS = "/hfp/v2/journey/ongoing/vp/bus/0018/00423/2550/2/Kamppi/14:01/1140/0/60;24/19/73/44"
OF_A_TRAM_IN_A_DEPOT = "/hfp/v2/deadrun/ongoing/vp/tram/0040/00411/2550/2/x/14:01/1140/0/a/b/c/d"
VEHICLE = {
    "VP": {"oper": 18, "veh": 423, "tst": "2027-01-15T08:00:00Z", "lat": 60.17, "long": 24.9}
}


async def test_the_bridge_brings_vehicles_where_its_input_reads_them(
    tmp_path: Path,
) -> None:
    input_ = InputSettings.model_validate(ECOSYSTEMS["hsl"].input)
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    far = mosquitto(tmp_path / "far")
    await far.start()
    # It has neither this name nor a certificate here; the rest is as printed.
    lines = [
        f"address {urlsplit(far.url).netloc}" if line.startswith("address") else line
        for line in ECOSYSTEMS["hsl"].bridge
        if not line.startswith("bridge_capath")
    ]
    near = mosquitto(tmp_path / "near", *lines)
    await near.start()
    arrived: asyncio.Queue[Delivery] = asyncio.Queue()

    def take(deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            arrived.put_nowait(each)

    gateway = MqttLink(
        BrokerSettings(url=near.url),
        client_id="gateway",
        deliver=take,
        subscriptions=[(subscription(input_.topic), 0)],
    )
    vehicle = MqttLink(BrokerSettings(url=far.url), client_id="vehicle", deliver=lambda _: None)
    tasks = [asyncio.create_task(link.run()) for link in (gateway, vehicle)]
    try:
        await gateway.until_connected()
        await vehicle.until_connected()
        body = json.dumps(VEHICLE).encode()
        async with asyncio.timeout(60):
            while arrived.empty():  # the bridge may still be connecting
                messages = [Outgoing(OF_A_TRAM_IN_A_DEPOT, body), Outgoing(OF_A_BUS, body)]
                await vehicle.publish(messages, qos=1, timeout_s=10)
                await asyncio.sleep(0.1)
        found = arrived.get_nowait()
    finally:
        for link in (gateway, vehicle):
            await link.close()
        await asyncio.gather(*tasks)
        await near.stop()
        await far.stop()
    assert TopicRouter([input_]).match(found.topic) == (0, "0018/00423")
    [fix] = input_.make_codec()(found.payload)
    assert isinstance(fix, Fix)
    assert (fix.lat, fix.lon) == (60.17, 24.9)
