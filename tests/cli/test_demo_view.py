"""What the demo shows, drawn without a terminal."""

import io
from dataclasses import dataclass, fields, replace

import pytest
from rich.console import Console, RenderableType

from anonymizer.app.demo import Scene, Subscriber
from anonymizer.app.demo_methods import StreamSnapshot
from anonymizer.app.live_map.rates import FlowSnapshot
from anonymizer.cli import demo_view as live
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.histograms import BatchHistogram
from anonymizer.pipeline.ledger import FINAL


def histogram(counts: dict[float, int]) -> BatchHistogram:
    """Return a histogram of values with an edge at each."""
    made = BatchHistogram(sorted(counts))
    for value, n in counts.items():
        made.observe([value] * n)
    return made


EARLY = FlowSnapshot(
    seconds=0.0,
    n_received=0,
    n_messages=0,
    n_of=dict.fromkeys(FINAL, 0),
    n_held=0,
    n_told=0,
    n_devices=0,
    latency_s=histogram({}),
    age_s=histogram({}),
    region_nodes=histogram({}),
    k_reached=histogram({}),
    silent="",
)
LATER = FlowSnapshot(
    seconds=10.0,
    n_received=10_020,
    n_messages=4_000,
    n_of=EARLY.n_of
    | {Outcome.PUBLISHED: 9_990, Outcome.SUPPRESSED__TOO_FEW_DEVICES: 7, Outcome.LATE: 3},
    n_held=20,
    n_told=0,
    n_devices=1_000,
    latency_s=histogram({0.0421: 50, 0.1333: 50}),
    age_s=histogram({5.0: 90, 21.0: 10}),
    region_nodes=histogram({8.0: 51, 28.0: 49}),
    k_reached=histogram({8.0: 1}),
    silent="",
)
SCENE = Scene(
    "Mosquitto at mqtt://127.0.0.1:1883",
    "http://127.0.0.1:8080",
    30.0,
    Subscriber(2, "x" * 500),
)


def drawn(what: RenderableType, *, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_before_the_first_position_there_is_nothing_to_measure() -> None:
    scene = replace(SCENE, analyst=Subscriber())
    for text in (drawn(live._summary(EARLY)), drawn(live.methods(EARLY, scene)), live._line(EARLY)):
        assert "nan" not in text
    assert "nothing yet" in drawn(live.methods(EARLY, scene))


def test_it_says_why_less_is_published_than_received() -> None:
    assert live._releases(SCENE) == f"{live.BEAT} Here session.beat_s = 30."


@pytest.mark.parametrize(("n_lost", "shown"), [(0, "0"), (5, "5")])
def test_the_summary_says_how_much_is_unaccounted_for(n_lost: int, shown: str) -> None:
    n_of = LATER.n_of | {Outcome.PUBLISHED: 10_010 - n_lost}
    last = replace(LATER, n_held=0, n_of=n_of)
    text = drawn(live._summary(last))
    [line] = [line for line in text.splitlines() if "unaccounted for" in line]
    assert line.split()[-1] == shown
    assert "1,002 /s" in text


def test_a_line_tells_the_same_without_a_terminal() -> None:
    assert live._line(LATER) == (
        "  10 s  in 10,020  out 9,990 in 4,000 messages  not published 10  "
        "age 6.6 s, 95 % below 21.0 s  17.8 nodes per region"
    )


@pytest.mark.parametrize(
    ("environment", "platform", "opens"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),  # a browser for the terminal would take it from the view
        ({}, "darwin", True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "there"}, "linux", False),
        ({"CI": "1"}, "darwin", False),
    ],
)
def test_a_browser_is_opened_only_where_somebody_sits_before_it(
    environment: dict[str, str], platform: str, *, opens: bool
) -> None:
    assert live.has_desktop(environment, platform) == opens


STREAM = StreamSnapshot(
    name="fleet",
    model="kd",
    k=10,
    n_received=120,
    n_published=100,
    n_held=15,
    not_published={"suppressed incomplete": 5},
    n_windows=2,
    n_classes=7,
    last={},
)


@dataclass(frozen=True, slots=True)
class WithRecords(Scene):
    """A scene with one stream, without a gateway."""

    def streams(self) -> list[StreamSnapshot]:
        return [STREAM]


def test_at_the_end_all_methods_stand_side_by_side() -> None:
    at = {each.name: getattr(SCENE, each.name) for each in fields(SCENE)}
    scene = WithRecords(**at | {"classes": {"fleet": Subscriber(1, '{"k":12}')}})
    text = drawn(live.methods(LATER, scene))
    assert STREAM.n_unaccounted == 0
    for row in ("received", "published", "2 regions", "7 classes", "10 or more", "unaccounted for"):
        assert row in text
    assert '(k,d) classes: {"k":12}' in text
    assert "toll API: no window is published yet" in text
    scene.tolls.append({"section_region": "N area", "truck_count": 6})
    assert "section_region N area, truck_count 6" in drawn(live.methods(LATER, scene))


def test_a_stream_is_told_of_in_words_that_fit_its_numbers() -> None:
    few = replace(STREAM, n_windows=1, n_classes=1)
    assert live._stream_line(few).endswith("100 out in 1 class of 1 window")


def test_lines_come_every_second_and_tell_of_a_stream_what_is_new() -> None:
    lines, quiet = live.DemoLines(), replace(STREAM, n_windows=0, n_classes=0, n_published=0)
    said = {
        n / 2: list(lines.after(replace(LATER, seconds=n / 2), [STREAM if n > 6 else quiet]))
        for n in range(1, 13)
    }
    assert [second for second, each in said.items() if each] == [1, 2, 3, 4, 5, 6]
    assert [second for second, each in said.items() if len(each) > 1] == [1, 4]
    assert said[4][1].strip() == live._stream_line(STREAM)
    silent = replace(LATER, seconds=14.0, silent="no road is near")
    assert list(lines.after(silent, [STREAM]))[1:] == ["nothing is published: no road is near"]
