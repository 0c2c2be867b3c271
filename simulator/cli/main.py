"""The `simulator` command and its subcommands."""

import typer

from simulator.cli import records, replay, run, sensors, tolls

app = typer.Typer(
    name="simulator",
    help="Traffic for the gateway over MQTT: simulated on a road network, or replayed.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run", epilog=run.RUN_EXAMPLES)(run.run)
app.command("trace", epilog=run.TRACE_EXAMPLE)(run.trace)
app.command("replay", epilog=replay.EXAMPLES)(replay.replay)
app.command("records", epilog=records.EXAMPLES)(records.records)
app.command("sensors", epilog=sensors.EXAMPLES)(sensors.sensors)
app.command("tolls", epilog=tolls.EXAMPLES)(tolls.tolls)
