"""Benchmark of freshness: how old is what subscribers know of devices, by mode and fleet."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass

from anonymizer.errors import TransportError
from anonymizer.transport.local_brokers import running_mosquitto
from benchmarks.gateways import Scrape, running_gateway, running_simulator, until
from benchmarks.tables import Cell, Table

FRESHNESS = (
    "published/s",
    "age mean, s",
    "age p95, s",
    "region p50, s",
    "region p99, s",
)
"""Columns of `freshness_of`."""
NOTES = (
    "published: cloaked positions; of several of one device that wait for a beat, the newest.",
    "age: of the newest region of each pseudonym that lives, sampled every second.",
    "region p50, p99: from the arrival of a cloaked position to its region at the broker.",
)

_AGE, _LATENCY = "anonymizer_age_of_information_seconds", "anonymizer_latency_seconds"
_SETTINGS = """
[network]
source = "{network}"
[broker]
url = "{url}"
[[inputs]]
topic = "positions/{{device}}"
[region]
mode = "{mode}"
[http]
port = 0
"""
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """A run of one mode with default settings."""

    mode: str
    """Of `[region]`."""
    n_devices: int
    """Each reports once a second."""
    network: str = "city:10000"
    settle_s: float = 130.0
    seconds: float = 60.0
    """`settle_s`, `seconds`: the measurement begins after the former, and lasts for the latter. By
    default it is a whole `session.epoch_s`, each group has published before, and none was formed in
    the first minute, in which nobody is known to move."""


def freshness_of(between: Scrape | None, seconds: float) -> tuple[Cell, ...]:
    """Return what became of cloaked positions between two scrapes; empty for a relay."""
    if between is None:
        return ("",) * len(FRESHNESS)
    return (
        round(between.outcome("published") / seconds),
        between.mean(_AGE),
        between.quantile(_AGE, 0.95),
        between.quantile(_LATENCY, 0.5),
        between.quantile(_LATENCY, 0.99),
    )


def freshness(fleets: Sequence[Fleet]) -> list[Table]:
    """Run each mode with each fleet, each time with a fresh broker."""
    rows = [asyncio.run(_run(fleet)) for fleet in fleets]
    columns = ("mode", "devices", "network", "received/s", *FRESHNESS, "load")
    notes = (
        "default settings; each device reports once a second through Mosquitto, QoS 0.",
        *NOTES,
        "load: processes that ran or waited for a core at the end, on average over a minute.",
    )
    return [Table("How old is what subscribers know", columns, rows, notes)]


async def _run(fleet: Fleet) -> tuple[Cell, ...]:
    async with running_mosquitto() as url:
        toml = _SETTINGS.format(network=fleet.network, url=url, mode=fleet.mode)
        options = {"network": fleet.network, "devices": fleet.n_devices, "rate": 1, "broker": url}
        stated = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        async with running_gateway(toml) as gateway, running_simulator(*stated):

            async def has_all_devices() -> bool:
                return await gateway.n_received() >= fleet.n_devices

            if not await until(has_all_devices, within_s=_START_S):
                raise TransportError("the gateway receives too little from the simulator")
            await asyncio.sleep(fleet.settle_s)
            before = await gateway.scrape()
            await asyncio.sleep(fleet.seconds)
            between = await gateway.scrape() - before
    return (
        fleet.mode,
        fleet.n_devices,
        fleet.network,
        round(between.n_received / fleet.seconds),
        *freshness_of(between, fleet.seconds),
        os.getloadavg()[0],
    )
