"""Options that several commands share, the settings of the broker, and playing of reports."""

import math
import os
import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from anonymizer.errors import SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    from anonymizer.domain.arrays import FloatArray
    from anonymizer.pipeline.ports import Outgoing
    from simulator.faults import Faults
    from simulator.playing import Outlet
    from simulator.reports import Due, Playable, Source

    D = TypeVar("D", bound=Due)


class Version(StrEnum):
    """Version of MQTT."""

    V5 = "5"
    V311 = "3.1.1"


def above_zero(value: float | None) -> float | None:
    """Return a number that is above 0 and finite, or None."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter("must be above 0 and finite")
    return value


def _time_of_day(value: str | float | None) -> float | None:
    """Return HH:MM as seconds since midnight."""
    if value is None or isinstance(value, float):
        return value
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", value)
    if found is None:
        raise typer.BadParameter("must be a time of day such as 06:30")
    return 3600.0 * int(found[1]) + 60.0 * int(found[2])


def _topic(value: str) -> str:
    if value.count("{device}") != 1 or any(c in value for c in "+#\0"):
        raise typer.BadParameter("must contain {device} once, and no wildcard")
    return value


Network = Annotated[
    str, typer.Option(metavar="NET", help="A file, city:NODES or grid:ROWSxCOLUMNS.")
]
Devices = Annotated[int, typer.Option(min=1, max=10_000_000)]
Rate = Annotated[
    float, typer.Option(callback=above_zero, metavar="HZ", help="Reports per second and device.")
]
Seed = Annotated[int, typer.Option(min=0, help="Equal seeds give equal traffic.")]
Parked = Annotated[float, typer.Option(min=0, max=1, help="Share of the devices that never move.")]
GpsNoise = Annotated[
    float, typer.Option(min=0, max=1000, metavar="M", help="Standard deviation, metres.")
]
Begins = Annotated[
    float | None,
    typer.Option(
        parser=_time_of_day,
        metavar="HH:MM",
        help="Time of day at the start: at night, vehicles rest longer between their trips.",
        show_default="always the rush hour",
    ),
]
FaultShares = Annotated[
    str | None,
    typer.Option(
        "--faults",
        metavar="NAME=SHARE,...",
        help="Shares of reports with faults: `jumps` to another town, `vague` fixes, and "
        "`undated` ones; not with --batch or --all.",
    ),
]
Broker = Annotated[
    str,
    typer.Option(
        envvar="SIMULATOR_BROKER",
        metavar="URL",
        help="mqtt://host[:port], or mqtts://host[:port] for TLS; ws:// and wss:// likewise.",
    ),
]
MqttVersion = Annotated[Version, typer.Option("--mqtt", help="Version of MQTT.")]
Topic = Annotated[str, typer.Option(callback=_topic, help="{device} is replaced by the id.")]
Qos = Annotated[int, typer.Option(min=0, max=1, help="1: wait for acknowledgements.")]
Connections = Annotated[int, typer.Option(min=1, max=1000, help="Shared by all devices.")]
Batch = Annotated[
    int,
    typer.Option(
        min=1,
        max=10_000,
        metavar="N",
        help="Positions in one message, which state their devices; {device} is then `batch`.",
    ),
]
ConnectTimeout = Annotated[
    float,
    typer.Option(callback=above_zero, metavar="S", help="Time to connect at the start."),
]
Username = Annotated[
    str | None,
    typer.Option(envvar="SIMULATOR_USERNAME", help="With --password-file, or SIMULATOR_PASSWORD."),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        envvar="SIMULATOR_PASSWORD_FILE",
        exists=True,
        dir_okay=False,
        help="Its first line is the password. Or set SIMULATOR_PASSWORD.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        envvar="SIMULATOR_CA_FILE",
        exists=True,
        dir_okay=False,
        help="Certificate authority of the broker; by default those of the system.",
    ),
]
WaitFor = Annotated[
    str | None,
    typer.Option(
        "--wait-for",
        metavar="URL",
        help="Begin when the gateway at this address is ready: http://127.0.0.1:8080.",
    ),
]
AllowPlaintext = Annotated[
    bool,
    typer.Option("--allow-plaintext", help="Allow unencrypted mqtt:// to another machine."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the summary.")]
Duration = Annotated[
    float | None,
    typer.Option(callback=above_zero, metavar="S", help="End after this many seconds of playing."),
]

MakeOutlet: TypeAlias = Callable[[], "Outlet"]


def play_reports(
    source: "Source",
    outlet: "Outlet",
    *,
    quiet: bool,
    faults: "Faults | None" = None,
    seed: int = 0,
) -> None:
    """Publish positions, and print the summary; `faults` and their `seed` are for single ones."""
    from simulator.encoding import named_positions_to, positions_to

    if outlet.per_message == 1:
        encode = positions_to(outlet.topic, source.device_id)
        if faults is not None:
            encode = faults.in_messages(encode, seed=seed)
    else:
        encode = named_positions_to(outlet.topic, source.device_id, per_message=outlet.per_message)
    play_source(source, outlet, encode=encode, quiet=quiet)


def play_source(
    source: "Playable[D]",
    outlet: "Outlet",
    *,
    encode: "Callable[[D, FloatArray], list[Outgoing]]",
    quiet: bool,
) -> None:
    """Publish what a source says, and print the summary."""
    import asyncio

    import numpy as np

    from simulator.displays import summary
    from simulator.playing import play
    from simulator.publishing import Tally

    tally = Tally(was_heard=np.zeros(len(source.device_id), np.bool_))
    asyncio.run(play(source, outlet, tally, encode=encode, quiet=quiet))
    typer.echo(summary(tally, requested_per_s=source.rate_per_s))


def outlet_of(
    *,
    broker: Broker = "mqtt://127.0.0.1:1883",
    qos: Qos = 0,
    connections: Connections = 1,
    connect_timeout: ConnectTimeout = 5.0,
    wait_for: WaitFor = None,
    mqtt: MqttVersion = Version.V5,
    username: Username = None,
    password_file: PasswordFile = None,
    ca_file: CaFile = None,
    allow_plaintext: AllowPlaintext = False,
) -> "Outlet":
    """Return where these options publish to; a password comes from a file or the environment.

    Raises
    ------
    SettingsError
        If the broker cannot be used so.
    """
    from pydantic import ValidationError

    from anonymizer.settings import BrokerSettings
    from simulator.playing import Outlet

    if broker.startswith(("ws://", "wss://")):
        require("websockets")
    try:
        settings = BrokerSettings.model_validate(
            {
                "url": broker,
                "version": mqtt.value,
                "username": username,
                "password": os.environ.get("SIMULATOR_PASSWORD"),
                "password_file": password_file,
                "ca_file": ca_file,
                "allow_plaintext": allow_plaintext,
                "keepalive_s": 5,  # the traffic should resume soon after the broker
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        what = "--broker: " if first["loc"] else ""
        raise SettingsError(what + first["msg"].removeprefix("Value error, ")) from None
    return Outlet(
        broker=settings,
        qos=qos,
        connections=connections,
        wait_for=wait_for,
        connect_timeout_s=connect_timeout,
    )


def publishes(*, qos: int = 0) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `outlet_of`, in place of its parameter `outlet`.

    The command gets a function without arguments, which returns the `Outlet`: of a broker that
    cannot be used is told only who wants to publish.
    """

    def derived(command: Callable[..., None]) -> Callable[..., None]:
        own = {each.name: each for each in signature(command).parameters.values()}
        del own["outlet"]
        shared = dict(signature(outlet_of).parameters)
        shared["qos"] = shared["qos"].replace(default=qos)

        @wraps(command)
        def parsed(**given: Any) -> None:  # noqa: ANN401  of any option
            where = {name: given.pop(name) for name in shared}
            command(**given, outlet=partial(outlet_of, **where))

        # What typer reads.
        parameters = [*own.values(), *shared.values()]
        parsed.__dict__["__signature__"] = signature(command).replace(parameters=parameters)
        parsed.__annotations__ = {each.name: each.annotation for each in parameters}
        return parsed

    return derived
