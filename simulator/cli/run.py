"""The commands `simulator run` and `simulator trace`."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from anonymizer.errors import SettingsError
from anonymizer.extras import extra
from simulator.cli.options import (
    Batch,
    Begins,
    Devices,
    Duration,
    FaultShares,
    GpsNoise,
    MakeOutlet,
    Network,
    Parked,
    Quiet,
    Rate,
    Seed,
    Topic,
    above_zero,
    play_reports,
    play_source,
    publishes,
)

RUN_EXAMPLES = """Examples:

    simulator run --network city:10000 --devices 5000 --rate 1

    simulator run --network sf.graphml --devices 200 --duration 60 --seed 7 --record sf.parquet

    simulator run --network city:10000 --all --begins 06:30
    """
TRACE_EXAMPLE = """Example:

    simulator trace city.parquet --network city:10000 --devices 1000 --duration 300
    """

_MAX_BATCH = 100_000
_TOPIC = "positions/{device}"


@publishes()
def run(
    *,
    network: Network,
    devices: Devices = 1000,
    rate: Rate = 1.0,
    seed: Seed = 0,
    duration: Duration = None,
    parked: Parked = 0.1,
    gps_noise: GpsNoise = 3.0,
    begins: Begins = None,
    faults: FaultShares = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also send records with the speeds really driven, toll exits where trips end, and "
            "sensors: what the settings of `anonymizer init --all` take.",
        ),
    ] = False,
    sensors: Annotated[
        int, typer.Option(min=0, help="With --all: number of sensors that stand still.")
    ] = 20,
    readings: Annotated[
        bool, typer.Option("--readings", help="Also send speed_mps, a reading of each device.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="TRACE", help="Also write a trace (csv, csv.gz, parquet); ts from 0."),
    ] = None,
    topic: Topic = _TOPIC,
    batch: Batch = 1,
    quiet: Quiet = False,
    outlet: MakeOutlet,
) -> None:
    """Simulate devices that drive over a road network and report their positions.

    Each device takes the fastest path from one destination to the next, slows down at junctions,
    stops at some, and dwells at its destination. The movement depends only on the seed.
    """
    from anonymizer.kernel_background import compiling_in_background
    from anonymizer.networks import load_network
    from simulator.faults import Faults
    from simulator.fleet import FleetSource
    from simulator.reports import Recording
    from simulator.scenario import Scenario
    from simulator.traffic import Traffic

    if record is not None:
        with extra("tables"):
            from simulator.trace_writer import TraceWriter

    where = replace(outlet(), topic=topic, per_message=batch)
    wrong = None
    if faults is not None:
        if batch > 1 or everything:
            raise SettingsError("--faults: are of single positions: not with --batch or --all")
        try:
            wrong = Faults.of(faults)
        except ValueError as error:
            raise SettingsError(f"--faults: {error}") from None
    if everything and (batch > 1 or readings or record is not None or topic != _TOPIC):
        raise SettingsError("--all: has its own topics, and no --batch, --readings or --record")
    with compiling_in_background():
        roads = load_network(network)
        if everything:
            scenario = Scenario(
                roads,
                devices,
                rate_hz=rate,
                n_sensors=sensors,
                duration_s=duration,
                seed=seed,
                noise_m=gps_noise,
                parked_share=parked,
                begins_s=begins,
            )
            play_source(scenario, where, encode=scenario.encode, quiet=quiet)
            return
        traffic = Traffic(roads, devices, seed=seed, parked_share=parked, begins_s=begins)
        source = FleetSource(
            traffic,
            rate_hz=rate,
            duration_s=duration,
            noise_m=gps_noise,
            seed=seed,
            states_speed=readings,
        )

        if record is None:
            play_reports(source, where, quiet=quiet, faults=wrong, seed=seed)
        else:
            with TraceWriter(record, device_id=source.device_id, live=True) as writer:
                recording = Recording(source, writer)
                play_reports(recording, where, quiet=quiet, faults=wrong, seed=seed)


def trace(
    out: Annotated[Path, typer.Argument(metavar="TRACE", help="csv, csv.gz or parquet.")],
    *,
    network: Network,
    duration: Annotated[
        float, typer.Option(callback=above_zero, metavar="S", help="Seconds of traffic.")
    ],
    devices: Devices = 1000,
    rate: Rate = 1.0,
    seed: Seed = 0,
    parked: Parked = 0.1,
    gps_noise: GpsNoise = 3.0,
    begins: Begins = None,
) -> None:
    """Write the traffic of `run` to a file as fast as possible; no broker is needed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from anonymizer.networks import load_network
    from simulator.fleet import FleetSource
    from simulator.reports import Recording
    from simulator.traffic import Traffic

    with extra("tables"):
        from simulator.trace_writer import TraceWriter

    traffic = Traffic(
        load_network(network),
        devices,
        seed=seed,
        parked_share=parked,
        begins_s=begins,
    )
    source = FleetSource(traffic, rate_hz=rate, duration_s=duration, noise_m=gps_noise, seed=seed)
    with TraceWriter(out, device_id=source.device_id) as writer:
        recording = Recording(source, writer)
        with Progress(TextColumn("driving"), BarColumn(), MofNCompleteColumn()) as bar:
            task = bar.add_task("", total=source.n_total)
            while recording.next_due_s < math.inf:
                bar.advance(task, len(recording.take(duration, limit=_MAX_BATCH)))
    typer.echo(f"{out}: {source.n_total:,} positions of {devices:,} devices")
