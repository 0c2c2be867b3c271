"""Terminal display of the demo: lines as it goes on, and a summary at the end."""

import asyncio
import math
import os
import signal
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.app.demo import DemoPlan, Scene, run_demo
from anonymizer.app.demo_methods import StreamSnapshot
from anonymizer.app.gateway.service import stop_at_signal
from anonymizer.app.live_map.rates import FlowSnapshot
from anonymizer.cli.waiting import WaitingAloud
from anonymizer.observe.logs import configure_logs
from anonymizer.settings import LogSettings

_LINE_EVERY_S = 1.0
_STARTING = "starting broker, simulator and gateway"
_COMPILING = "compiling kernels in the background, once on this machine"
_AT_WORK = "still at work"
BEAT = (
    "Each device is published once a beat; newer positions replace those in between, as every"
    " release tells a bit of where a device drives."
)
"""The same words as in the documentation, a test compares."""
_WORDS = {
    "suppressed superseded": "replaced by a newer position (*)",
    "suppressed never grouped": "no group formed before it left, or the end",
    "suppressed too few devices": "too few devices near",
    "suppressed off graph": "too far from any road",
    "suppressed region too large": "region too large",
    "suppressed overload": "more than the gateway could take",
    "late": "older than the one before",
    "duplicate": "repeated",
}
_REPLACED = "(*) of the same device, before its group was due"
_MAX_CHARACTERS = 145
"""Longest part of a message that is shown."""


def present(plan: DemoPlan, waiting: WaitingAloud, *, headless: bool) -> None:
    """Run the demo on this terminal until it ends, and print a summary.

    Raises
    ------
    AnonymizerError
        As for `run_demo`.
    KeyboardInterrupt
        If it is stopped before the gateway is made.
    """
    console = Console()
    try:
        in_place = console.is_terminal and not headless
        last, scene = asyncio.run(_shown(plan, console, waiting, in_place=in_place))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    console.print(_summary(last), methods(last, scene) if scene else "")


class DemoLines:
    """What a demo says as it goes on, line below line."""

    def __init__(self) -> None:
        self._said_s = 0.0
        self._said_of: dict[str, tuple[int, ...]] = {}

    def after(self, now: FlowSnapshot, streams: Sequence[StreamSnapshot]) -> Iterator[str]:
        """Yield the lines that are due: nobody waits for long, and streams are told of by news."""
        if now.seconds - self._said_s < _LINE_EVERY_S:
            return
        self._said_s = now.seconds
        fresh = []
        for each in streams:
            news = each.n_windows, each.n_published, each.n_classes
            if self._said_of.get(each.name) != news:
                self._said_of[each.name] = news
                fresh.append(each)
        yield from lines_of(now, fresh)


def lines_of(now: FlowSnapshot, streams: Sequence[StreamSnapshot]) -> Iterator[str]:
    """Yield what there is to say of a moment."""
    yield _line(now)
    yield from (f"        {_stream_line(each)}" for each in streams)
    if now.silent:
        yield _silent(now)


async def _shown(
    plan: DemoPlan, console: Console, waiting: WaitingAloud, *, in_place: bool
) -> tuple[FlowSnapshot, Scene | None]:
    """Run the demo; its lines replace each other where they stand, or come one below the other."""
    lines = DemoLines()
    scenes: list[Scene] = []
    opening: list[asyncio.Future[bool]] = []
    told = Console(stderr=True)
    waiting.what = _STARTING
    with (
        Live(console=console, refresh_per_second=4, transient=True)
        if in_place
        else nullcontext(None) as live
    ):
        # Configured only now, because the live view has redirected standard error: log lines then
        # appear above it.
        configure_logs(LogSettings(level="warning", format="text"))

        def begin(scene: Scene) -> None:
            scenes.append(scene)
            waiting.what = _AT_WORK
            waiting.said()
            text = f"{_where(scene)}\n{_releases(scene)}\n"
            console.print(text, soft_wrap=True, highlight=False)
            if in_place and has_desktop(os.environ, sys.platform):
                opening.append(asyncio.ensure_future(_open_in_browser(scene.http_url)))

        def show(now: FlowSnapshot) -> None:
            streams = scenes[0].streams()
            if live is not None:
                waiting.said()
                live.update(Text("\n".join(lines_of(now, streams)), overflow="fold"))
                return
            for line in lines.after(now, streams):
                waiting.said()
                console.print(line, soft_wrap=True, highlight=False)

        def compiling(done: int, asked: int) -> None:
            waiting.what = f"{_AT_WORK if scenes else _STARTING}, {done} kernels of {asked}"
            if asked == 1:
                told.print(f"{_COMPILING}; until then, they run as plain Python")
            elif done == asked:
                told.print(f"{done} kernels are compiled")

        last = await run_demo(plan, _told(), begin=begin, show=show, compiling=compiling)
        await asyncio.gather(*opening)
    return last, scenes[0] if scenes else None


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
        f"age {_s(now.age_s.mean)}, 95 % below {_s(now.age_s.quantile(0.95))}  "
        f"{_one_decimal(now.region_nodes.mean)} nodes per region"
    )


def _silent(now: FlowSnapshot) -> str:
    return f"nothing is published: {now.silent}"


def _summary(now: FlowSnapshot) -> RenderableType:
    table = _table(title=f"{now.seconds:.0f} seconds")
    table.add_row("positions received", f"{now.n_received:,}")
    table.add_row("  published", f"{now.n_published:,}")
    for reason, n in now.not_published.items():
        table.add_row(f"  {_WORDS.get(reason, reason)}", f"{n:,}")
    table.add_row("  unaccounted for", f"{now.n_unaccounted:,}")
    table.add_row("positions per second", _rate(now.n_received, now.seconds))
    table.add_row("messages out", f"{now.n_messages:,}")
    table.add_row(
        "age of information, mean / 95 % below",
        f"{_s(now.age_s.mean)} / {_s(now.age_s.quantile(0.95))}",
    )
    table.add_row(
        "arrival to publication, median / 99 % below",
        f"{_s(now.latency_s.quantile(0.5))} / {_s(now.latency_s.quantile(0.99))}",
    )
    table.add_row("nodes per region, mean", _one_decimal(now.region_nodes.mean))
    table.add_row("devices per region, median", _whole(now.k_reached.quantile(0.5)))
    told = [_REPLACED] if "suppressed superseded" in now.not_published else []
    if now.silent:
        told.append(_silent(now))
    return Group(table, *(Text(line, overflow="fold") for line in told))


def methods(now: FlowSnapshot, scene: Scene) -> RenderableType:
    """Return what each method published of the same vehicles, and what it hid, side by side."""
    streams = scene.streams()
    table = Table(title="four methods, the same vehicles", title_justify="left", pad_edge=False)
    for heading in ("", "regions", *(MODELS[each.model].heading for each in streams)):
        table.add_column(heading, justify="right" if heading else "left", overflow="fold")
    floor = _whole(now.k_reached.quantile(0.0))
    rows = [
        ["received", f"{now.n_received:,}", *(f"{each.n_received:,}" for each in streams)],
        ["published", f"{now.n_published:,}", *(f"{each.n_published:,}" for each in streams)],
        [
            "  as",
            _counted(scene.analyst.n_messages, "region", "regions"),  # not those of sensors
            *(_counted(s.n_classes, "class", "classes") for s in streams),
        ],
        ["waiting", f"{now.n_held:,}", *(f"{each.n_held:,}" for each in streams)],
        [
            "not published",
            f"{sum(now.not_published.values()):,}",
            *(f"{sum(each.not_published.values()):,}" for each in streams),
        ],
        ["unaccounted for", f"{now.n_unaccounted:,}", *(f"{s.n_unaccounted:,}" for s in streams)],
        ["hidden among", f"{floor} or more", *(f"{each.k} or more" for each in streams)],
    ]
    for row in rows:
        table.add_row(*row)
    examples = [("regions", scene.analyst.last)] + [
        (MODELS[each.model].heading, scene.classes[each.name].last) for each in streams
    ]
    said = [Text(f"{name}: ") + _shortened(message) for name, message in examples]
    tolls = [Text(f"toll API: {_toll(row)}") for row in scene.tolls]
    return Group("", table, *said, *(tolls or [Text("toll API: no window is published yet")]))


def _counted(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _toll(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items())


def _stream_line(each: StreamSnapshot) -> str:
    return (
        f"{MODELS[each.model].heading}: {each.n_received:,} records in, "
        f"{each.n_published:,} out in {_counted(each.n_classes, 'class', 'classes')} of "
        f"{_counted(each.n_windows, 'window', 'windows')}"
    )


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
