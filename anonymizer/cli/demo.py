"""Command `anonymizer demo`: broker, simulator, gateway and live map in one terminal."""

from enum import StrEnum
from typing import Annotated

import typer

from anonymizer.cli.waiting import WaitingAloud
from anonymizer.extras import require


class Broker(StrEnum):
    """Which broker the demo runs."""

    AUTO = "auto"
    MOSQUITTO = "mosquitto"
    EMBEDDED = "embedded"


def demo(
    duration: Annotated[
        float | None, typer.Option(min=1, metavar="S", help="Seconds.", show_default="until Ctrl-C")
    ] = None,
    headless: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option("--headless", help="Print line below line; no browser.")
    ] = False,
    devices: Annotated[int, typer.Option(min=1, help="Number of simulated devices.")] = 1000,
    rate: Annotated[
        float, typer.Option(min=0.01, metavar="HZ", help="Reports of each device per second.")
    ] = 1.0,
    network: Annotated[
        str, typer.Option(metavar="NET", help="Road network; see `anonymizer cloak`.")
    ] = "city:2500",
    broker: Annotated[
        Broker, typer.Option(help="auto: Mosquitto if it is installed, else embedded.")
    ] = Broker.AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the traffic.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65535, help="HTTP port; 0: any free one.")] = 0,
    compare: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option(help="Run all three modes, between which the map can switch.")
    ] = True,
) -> None:
    """Run a broker, simulated devices, the gateway and an analyst, without further software.

    The live map in the browser shows what is published next to the true positions.

    [bold]Examples[/bold]

        anonymizer demo

        anonymizer demo --duration 20 --headless --devices 500
    """
    require("learn")  # before anything is loaded or compiled
    if broker is not Broker.MOSQUITTO:
        from anonymizer.transport.local_brokers import find_mosquitto

        if broker is Broker.EMBEDDED or find_mosquitto() is None:
            require("demo")
    with WaitingAloud("loading") as waiting:
        from anonymizer.app.demo import DemoPlan
        from anonymizer.cli.demo_view import present

        plan = DemoPlan(
            network=network,
            n_devices=devices,
            rate_hz=rate,
            seed=seed,
            duration_s=duration,
            http_port=port,
            broker=broker.value,
            compare=compare,
        )
        present(plan, waiting, headless=headless)
