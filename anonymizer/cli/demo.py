"""`anonymizer demo`: the whole of it in one terminal."""

from enum import StrEnum
from typing import Annotated

import typer


class Broker(StrEnum):
    """Which broker the demo runs."""

    AUTO = "auto"
    MOSQUITTO = "mosquitto"
    EMBEDDED = "embedded"


def demo(
    duration: Annotated[
        float | None, typer.Option(min=1, metavar="S", help="Seconds.", show_default="until Ctrl-C")
    ] = None,
    headless: Annotated[bool, typer.Option("--headless", help="Lines, no browser.")] = False,  # noqa: FBT002  typer's
    devices: Annotated[int, typer.Option(min=1, help="Devices that move.")] = 1000,
    rate: Annotated[
        float, typer.Option(min=0.01, metavar="HZ", help="Reports a second of each device.")
    ] = 1.0,
    network: Annotated[
        str, typer.Option(metavar="NET", help="Where they move; see `cloak`.")
    ] = "city:2500",
    broker: Annotated[
        Broker, typer.Option(help="auto: Mosquitto if there is one, else the embedded one.")
    ] = Broker.AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Of the traffic.")] = 1,
    port: Annotated[int, typer.Option(min=0, max=65535, help="HTTP port; 0: any free one.")] = 0,
    compare: Annotated[  # noqa: FBT002  typer's
        bool, typer.Option(help="Run all three ways of cloaking, for the map to switch between.")
    ] = True,
) -> None:
    """See it work: broker, simulated devices, gateway and an analyst, no other software needed.

    The live map is in the browser: what is published, beside where everybody truly is.

    [bold]Examples[/bold]

        anonymizer demo

        anonymizer demo --duration 20 --headless --devices 500
    """
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
    present(plan, headless=headless)
