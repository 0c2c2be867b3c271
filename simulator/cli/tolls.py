"""The command `simulator tolls`."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.options import (
    MakeOutlet,
    Quiet,
    Seed,
    above_zero,
    publishes,
)

EXAMPLES = """Examples:

    simulator tolls --print-settings > toll.toml

    anonymizer serve --config toll.toml

    simulator tolls --days 7 --per-day 2000 --rate 500

    simulator tolls --marginals gantry_marginals_2023.json --out exits.csv

    simulator tolls --csv exits.csv
    """


def _truck_topic(value: str) -> str:
    if value.count("{vehicle}") != 1 or any(c in value for c in "+#\0"):
        raise typer.BadParameter("must contain {vehicle} once, and no wildcard")
    return value


@publishes(qos=1)
def tolls(
    *,
    days: Annotated[int, typer.Option(min=1, max=3660)] = 1,
    per_day: Annotated[int, typer.Option(min=1, help="Exits on a Monday.")] = 2100,
    trucks: Annotated[int, typer.Option(min=1, max=10_000_000)] = 1700,
    start: Annotated[
        datetime, typer.Option(formats=["%Y-%m-%d"], metavar="DAY", help="First day, local time.")
    ] = datetime(2023, 1, 2),  # noqa: DTZ001  local time of the motorways
    marginals: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON of counts: section_id, vehicle_type."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Replay a file: truck_id, exit_time, ..."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a CSV file; publish nothing.")
    ] = None,
    rate: Annotated[
        float, typer.Option(callback=above_zero, metavar="HZ", help="Exits per second.")
    ] = 200.0,
    seed: Seed = 0,
    topic: Annotated[
        str, typer.Option(callback=_truck_topic, help="{vehicle} is replaced by the truck's id.")
    ] = "toll/exit/{vehicle}",
    print_settings: Annotated[
        bool,
        typer.Option("--print-settings", help="Print matching gateway settings; send nothing."),
    ] = False,
    quiet: Quiet = False,
    outlet: MakeOutlet,
) -> None:
    """Simulate trucks that leave motorways and pay toll, by the hour and the day of the week.

    Sections and truck classes are as frequent as in the marginals. Exits state their own time,
    whatever the rate at which they are sent. The exits depend only on the seed.
    """
    import asyncio

    import numpy as np

    from simulator.displays import summary
    from simulator.playing import play
    from simulator.publishing import Tally
    from simulator.toll_exits import (
        MADE,
        TollSource,
        encoder,
        made_exits,
        n_made,
        read_exits,
        read_marginals,
        settings_for,
        write_exits,
    )

    chosen = MADE if marginals is None else read_marginals(marginals)
    if print_settings:
        typer.echo(settings_for(list(chosen.section)), nl=False)
        return
    if csv is not None:
        replayed = read_exits(csv)
        n_exits, exits = len(replayed), iter(replayed)
    else:
        n_exits = n_made(per_day, start.date(), days)
        exits = made_exits(
            chosen,
            n_trucks=trucks,
            per_day=per_day,
            first_day=start.date(),
            n_days=days,
            seed=seed,
        )
    if out is not None:
        typer.echo(f"{out}: {write_exits(out, exits):,} exits")
        return
    where = outlet()
    source = TollSource(exits, n_total=n_exits, rate_per_s=rate)
    tally = Tally(was_heard=np.zeros(max(n_exits, 1), np.bool_))
    asyncio.run(play(source, where, tally, encode=encoder(topic), quiet=quiet))
    typer.echo(summary(tally, requested_per_s=rate))
