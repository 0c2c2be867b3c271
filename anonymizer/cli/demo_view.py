"""Terminal display of the demo: a live view or lines, and a summary at the end."""

import asyncio
import math
import os
import signal
import sys
import webbrowser
from collections import deque
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from anonymizer.app.demo import DemoPlan, Scene, run_demo
from anonymizer.app.gateway.service import stop_at_signal
from anonymizer.app.live_map.rates import FlowSnapshot
from anonymizer.observe.logs import configure_logs
from anonymizer.settings import LogSettings

_LINE_EVERY_S = 5.0
BEAT = (
    "Each device is published once a beat (session.beat_s), more rarely where devices are few;"
    " newer positions replace those in between, because every release tells a little about where"
    " a device drives."
)
"""The same words as in the documentation, a test compares."""
_RATE_SPAN = 10
"""Number of snapshots over which the current rate is computed."""
_WORDS = {
    "suppressed superseded": "replaced by a newer position (*)",
    "suppressed never grouped": "left, or the end came, before a group",
}
_REPLACED = "(*) of the same device, before its group was due"
_MAX_CHARACTERS = 220
"""Longest part of a message that is shown."""


def present(plan: DemoPlan, *, headless: bool) -> None:
    """Run the demo on this terminal until it ends, and print a summary.

    Raises
    ------
    AnonymizerError
        As for `run_demo`.
    """
    console = Console()
    run = _in_lines if headless or not console.is_terminal else _live
    console.print(_summary(asyncio.run(run(plan, console))))


async def _in_lines(plan: DemoPlan, console: Console) -> FlowSnapshot:
    configure_logs(LogSettings(level="warning", format="text"))
    printed_s = 0.0

    def begin(scene: Scene) -> None:
        console.print(f"{_where(scene)}\n{_releases(scene)}\n", soft_wrap=True, highlight=False)

    def show(now: FlowSnapshot) -> None:
        nonlocal printed_s
        if now.seconds - printed_s >= _LINE_EVERY_S:
            printed_s = now.seconds
            console.print(_line(now), soft_wrap=True, highlight=False)
            if now.silent:
                console.print(_silent(now), soft_wrap=True, highlight=False)

    def compiling(done: int, n_jobs: int) -> None:
        console.print(f"compiling kernels, once on this machine: {done} of {n_jobs}")

    return await run_demo(plan, _told(), begin=begin, show=show, compiling=compiling)


async def _live(plan: DemoPlan, console: Console) -> FlowSnapshot:
    starting = Text("starting broker, gateway and simulator ...", style="dim")
    with Live(starting, console=console, refresh_per_second=4, transient=True) as live:
        # Configured only now, because the live view has redirected standard error: log lines then
        # appear above it.
        configure_logs(LogSettings(level="warning", format="text"))
        scenes: list[Scene] = []
        opening: list[asyncio.Future[bool]] = []
        snapshots: deque[FlowSnapshot] = deque(maxlen=_RATE_SPAN)

        def show(now: FlowSnapshot) -> None:
            snapshots.append(now)
            live.update(_view(scenes[0], now, snapshots[0]))

        def begin(scene: Scene) -> None:
            scenes.append(scene)
            if has_desktop(os.environ, sys.platform):
                opening.append(asyncio.ensure_future(_open_in_browser(scene.http_url)))

        bar = Progress(
            TextColumn("compiling kernels, once on this machine"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        task = bar.add_task("")

        def compiling(done: int, n_jobs: int) -> None:
            bar.update(task, completed=done, total=n_jobs)
            live.update(starting if done == n_jobs else bar)

        last = await run_demo(plan, _told(), begin=begin, show=show, compiling=compiling)
        await asyncio.gather(*opening)
        return last


def _told() -> asyncio.Event:
    """Return an event that is set by who ends the demo, or closes its terminal."""
    return stop_at_signal(signal.SIGHUP)


async def _open_in_browser(url: str) -> bool:
    return await asyncio.to_thread(webbrowser.open, url)


def has_desktop(environment: Mapping[str, str], platform: str) -> bool:
    """Return whether a graphical browser can be expected on this machine."""
    if environment.keys() & {"SSH_CONNECTION", "SSH_TTY", "CI"}:
        return False
    return platform in {"darwin", "win32"} or bool(
        environment.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}
    )


def _where(scene: Scene) -> str:
    return f"broker   {scene.broker}\nmap      {scene.http_url}/\nmetrics  {scene.http_url}/metrics"


def _releases(scene: Scene) -> str:
    """Return why far less is published than received."""
    return f"{BEAT} Here session.beat_s = {scene.beat_s:g}."


def _line(now: FlowSnapshot) -> str:
    return (
        f"{now.seconds:4.0f} s  in {now.n_received:,}  out {now.n_published:,} "
        f"in {now.n_messages:,} messages  not published {sum(now.not_published.values()):,}  "
        f"age {_s(now.age_s.mean)}, 95 % up to {_s(now.age_s.quantile(0.95))}  "
        f"{_one_decimal(now.region_nodes.mean)} nodes a region"
    )


def _silent(now: FlowSnapshot) -> str:
    return f"nothing is published: {now.silent}"


def _view(scene: Scene, now: FlowSnapshot, before: FlowSnapshot) -> RenderableType:
    """Return the live view; rates are computed since `before`."""
    span_s = now.seconds - before.seconds
    flow = _table()
    flow.add_row("devices", f"{now.n_devices:,}")
    flow.add_row("positions in", f"{now.n_received:,}")
    flow.add_row("", _rate(now.n_received - before.n_received, span_s))
    flow.add_row("positions out", f"{now.n_published:,}")
    flow.add_row("", _rate(now.n_published - before.n_published, span_s))
    flow.add_row("messages out", f"{now.n_messages:,}")
    quality = _table()
    quality.add_row("age of information, mean", _s(now.age_s.mean))
    quality.add_row("age, 95 % up to", _s(now.age_s.quantile(0.95)))
    quality.add_row("region, median", f"{_whole(now.region_nodes.quantile(0.5))} nodes")
    quality.add_row("region, mean", f"{_one_decimal(now.region_nodes.mean)} nodes")
    quality.add_row("in it, median", f"{_whole(now.k_reached.quantile(0.5))} devices")
    panels = Table.grid(expand=True)
    panels.add_row(
        Panel(flow, title=f"{now.seconds:.0f} s", title_align="left"),
        Panel(quality, title="output", title_align="left", height=8),
    )
    refused = _table()
    for reason, n in now.not_published.items():
        refused.add_row(_WORDS.get(reason, reason), f"{n:,}")
    return Group(
        panels,
        *([Text(_silent(now), style="bold")] if now.silent else []),
        Panel(
            Group(refused, *([_REPLACED] if "suppressed superseded" in now.not_published else []))
            if now.not_published
            else "nothing",
            title="not published",
            title_align="left",
        ),
        Panel(
            Group(_shortened(scene.device.last), _shortened(scene.sensors.last)),
            title="messages of one device, and of public sensors",
            title_align="left",
        ),
        Panel(_shortened(scene.analyst.last), title="messages to the analyst", title_align="left"),
        Text(f"{_where(scene)}   (Ctrl-C ends it)", style="dim", overflow="fold"),
    )


def _summary(now: FlowSnapshot) -> RenderableType:
    table = _table(title=f"{now.seconds:.0f} seconds")
    table.add_row("positions received", f"{now.n_received:,}")
    table.add_row("  published", f"{now.n_published:,}")
    for reason, n in now.not_published.items():
        table.add_row(f"  {_WORDS.get(reason, reason)}", f"{n:,}")
    table.add_row("  unaccounted for", f"{now.n_unaccounted:,}")
    table.add_row("positions a second", _rate(now.n_received, now.seconds))
    table.add_row("messages out", f"{now.n_messages:,}")
    table.add_row(
        "age of information, mean / 95 %",
        f"{_s(now.age_s.mean)} / {_s(now.age_s.quantile(0.95))}",
    )
    table.add_row(
        "arrival to publication, median / 99 %",
        f"{_s(now.latency_s.quantile(0.5))} / {_s(now.latency_s.quantile(0.99))}",
    )
    table.add_row("nodes a region, mean", _one_decimal(now.region_nodes.mean))
    table.add_row("devices in it, median", _whole(now.k_reached.quantile(0.5)))
    told = [_REPLACED] if "suppressed superseded" in now.not_published else []
    if now.silent:
        told.append(_silent(now))
    return Group(table, *(Text(line, overflow="fold") for line in told))


def _table(title: str | None = None) -> Table:
    table = Table(title=title, show_header=False, box=None, pad_edge=False, title_justify="left")
    table.add_column(justify="left", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    return table


def _shortened(message: str) -> Text:
    cut = message[:_MAX_CHARACTERS] + " ..." if len(message) > _MAX_CHARACTERS else message
    return Text(cut or "nothing yet", overflow="fold", style="" if cut else "dim")


def _rate(n: int, seconds: float) -> str:
    return f"{n / seconds:,.0f} /s" if seconds else "-"


def _s(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"


def _whole(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


def _one_decimal(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.1f}"
