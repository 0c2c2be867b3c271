"""A broker that has what a gateway retains: its network, and a snapshot of its groups."""

import json

import numpy as np

from anonymizer.client import Network, read_network
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.networks.publication import parts
from tests.client.paper import message
from tests.end_to_end import client as mqtt_client

CITY = load_network("city:400")
N_GROUPS, GROUP_SIZE = 12, 10
N_DEVICES = N_GROUPS * GROUP_SIZE


def snapshot_of(network: Network, *, seed: int = 1) -> bytes:
    """Return a snapshot whose groups have published twice, a minute apart, with speeds."""
    rng = np.random.default_rng(seed)
    groups = []
    for g in range(N_GROUPS):
        middle = rng.integers(network.n_nodes)
        far = np.hypot(network.lat - network.lat[middle], network.lon - network.lon[middle])
        near = np.argsort(far)
        speed = {"mean": float(rng.uniform(5, 15)), "p25": 5.0, "p75": 9.0}
        for t, first in ((0, 0), (60, 10)):
            groups.append(
                message(
                    "",
                    network.node_id[near[first : first + 40]].tolist(),
                    1_800_000_000.0 + t,
                    1_800_000_090.0 + t,
                    group=f"group-{g}",
                    pseudonyms=[f"{g}-{i}" for i in range(GROUP_SIZE)],
                    readings={"speed_mps": speed},
                    network=network.version,
                )
            )
    body = {"v": 1, "time": 1_800_000_061.0, "network": network.version, "part": 0, "of": 1}
    return json.dumps({**body, "groups": [json.loads(each) for each in groups]}).encode()


async def retain(url: str, network: RoadNetwork = CITY, *, snapshot: bytes | None = None) -> None:
    """Publish what a gateway retains."""
    about, bodies = parts(network, most_bytes=20_000)
    async with mqtt_client(url, "gateway") as gateway:
        for i, body in enumerate(bodies):
            await gateway.publish(f"anonymizer/network/parts/{i}", body, qos=1, retain=True)
        await gateway.publish("anonymizer/network", about.encoded(), qos=1, retain=True)
        groups = snapshot_of(read_network(network)) if snapshot is None else snapshot
        await gateway.publish("cloaked/current/0", groups, qos=1, retain=True)


async def publish(url: str, topic: str, payload: bytes) -> None:
    """Publish a message."""
    async with mqtt_client(url, "publisher") as publisher:
        await publisher.publish(topic, payload, qos=1)
