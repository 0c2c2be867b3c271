"""The planner of a stream as a stage: it closes windows, divides them, and settles their borders.

One window, from left to right and from top to bottom::

    joiners                planner                ranges
       |---- TickState ------>|                      |    every tick: newest times, open windows
       |<------- Close -------|                      |    the watermark has passed its end
       |----- Survey -------->|                      |    how many records, and a sample of them
       |<------- Plan --------|                      |    into how many ranges, by which sample
       |----- Rows -----------+--------------------->|    each record to its range
       |                      |<------ Formed -------|    how many classes; what meets others
       |                      |------ Settled ------>|    the numbers of its classes
       |<---- Answer ---------+----------------------|    what became of each record

Say that 10,000 records make two ranges. Range 0 keeps 400 classes, range 1 keeps 410. 12 records
meet, and the planner makes 2 classes of them. So the window has 812 classes: in `Settled`, those of
range 0 begin at 0, those of range 1 at 400, and those of the planner are the last two. A secret
permutation of these numbers is what is published.

It waits for every joiner, always: whoever is missing could be one of the k of a class. A joiner
whose worker has died is restored elsewhere and goes on.

A planner that knows nothing asks the joiners first, and the ranges where a window is under way. It
learns all it needs: what another planner has sent to several stages was sent to all or to none of
them, and came before the question.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple
from zlib import crc32

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.ranges import NO_GROUP, meetings
from anonymizer.algorithms.windows import NEVER, Seen, Windows
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.records.range_rows import (
    ClassSpan,
    Gathered,
    concluded,
    figures,
    settled,
)
from anonymizer.cluster.records.window_messages import (
    UNPLANNED,
    Ask,
    Close,
    Finished,
    Formed,
    Held,
    Memories,
    Plan,
    Recall,
    Settled,
    Survey,
    TickState,
    Values,
    decode,
    encode,
)
from anonymizer.cluster.records.window_ranges import (
    Places,
    merged,
    n_ranges_of,
    stage_of,
    staged,
)
from anonymizer.cluster.stage import Send, reading, refuse
from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.join import recoded
from anonymizer.pipeline.records.release_messages import encode_window
from anonymizer.pipeline.records.silence import silent_in
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.pipeline.records.window_classes import Verified
from anonymizer.pipeline.records.window_models import seed_of
from anonymizer.settings import Settings


class PlannerStage:
    """Runs the planner of one stream."""

    def __init__(self, settings: Settings, stream: Stream, *, number: int, secret: bytes) -> None:
        self.number = number
        self._stream, self._secret = stream, secret
        self._n_joiners = settings.cluster.n_parts
        self._n_range_stages = settings.cluster.n_parts
        self._records_per_range = settings.cluster.records_per_range
        self._windows: Windows | None = None
        self._states: list[deque[TickState]] = [deque() for _ in range(self._n_joiners)]
        """What each joiner has stated and not all have: by tick."""
        self._stated = [-inf] * self._n_joiners
        """The last tick that each has stated."""
        self._waiting: set[int] = set()
        """Windows that are due."""
        self._last = NEVER
        """The window that was closed last, or is being closed."""
        self._closing = False
        self._surveys: dict[int, Survey] = {}
        self._n_ranges: int | None = None
        self._formed: dict[int, Formed] = {}
        self._asked: int | None = None
        """The question that the joiners were asked; None: it has not taken anything yet."""
        self._held: dict[int, Held] | None = {}
        """The answers by joiner; None: all have answered."""
        self._now = -inf
        names = ("windows", "records", "met_records", "classes", "unverified_classes")
        self._counts = dict.fromkeys(names, 0)

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        return dict(self._counts)

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take a message of a joiner or a range; return the messages to send in turn."""
        with reading():
            message = decode(value)
            if not isinstance(message, TickState | Held | Survey | Formed | Finished):
                refuse()
        self._now, sends = max(self._now, at_s), []
        if self._asked is None:
            self._asked = crc32(value)
            recall = encode(Recall(self.number, self._asked))
            sends = [Send("joiner", joiner, recall) for joiner in range(self._n_joiners)]
        return [*sends, *self._taken(message)]

    def _taken(self, message: TickState | Held | Survey | Formed | Finished) -> Iterator[Send]:
        if isinstance(message, TickState):
            self._read(message)
            yield from self._close_next()
        elif isinstance(message, Held):
            yield from self._recall(message)
        elif isinstance(message, Survey):
            yield from self._divide(message)
        elif isinstance(message, Formed):
            yield from self._settle(message)
        elif self._is_expected(message):
            yield from self._go_on()

    # What others know of an earlier planner.

    def _recall(self, held: Held) -> Iterator[Send]:
        if self._held is None or held.asked != self._asked:
            return
        self._held[held.joiner] = held
        if held.survey:
            self._hear(decode(held.survey))
        if len(self._held) < self._n_joiners:
            return
        all_held, self._held = self._held.values(), None
        self._last = max(each.last for each in all_held)
        surveys = self._surveys.items()
        self._surveys = {joiner: of for joiner, of in surveys if of.window == self._last}
        self._pass_ticks()
        if any(each.n_ranges == 0 for each in all_held):
            self._surveys = {}
            yield from self._close_next()
            return
        self._closing = True
        n_ranges = max(each.n_ranges for each in all_held)
        if n_ranges == UNPLANNED:
            yield from self._plan()
            return
        self._n_ranges = n_ranges
        for i in range(n_ranges):
            ask = Ask(self.number, self._last, i)
            yield Send("range", stage_of(self.number, i, self._n_range_stages), encode(ask))

    def _hear(self, survey: object) -> None:
        if isinstance(survey, Survey):
            self._surveys[survey.joiner] = survey

    # The windows: combined over the joiners tick by tick, as if one process had placed all parts.

    def _read(self, state: TickState) -> None:
        if state.tick <= self._stated[state.joiner]:
            return
        self._stated[state.joiner] = state.tick
        self._states[state.joiner].append(state)
        if self._held is None:
            self._pass_ticks()

    def _pass_ticks(self) -> None:
        """Combine the ticks that all joiners have stated, one by one."""
        stated = min(self._stated)
        ticks = {each.tick for states in self._states for each in states if each.tick <= stated}
        for tick in sorted(ticks):
            passed = [
                states.popleft() for states in self._states if states and states[0].tick == tick
            ]
            self._pass_tick(passed)

    def _pass_tick(self, passed: Sequence[TickState]) -> None:
        at_s = max(each.at_s for each in passed)
        if self._windows is None:
            self._windows = self._new_windows(at_s)
        for each in passed:
            opened = [window for window in each.opened if window > self._last]
            self._windows.merge(Seen(each.newest, each.heard_s, opened, each.floor))
        due = self._windows.due(at_s=at_s)
        self._waiting.update(window for window in due if window > self._last)

    def _new_windows(self, at_s: float) -> Windows:
        newest = [-inf] * len(self._stream.settings.sources)
        return Windows(self._stream.rule, newest, at_s=at_s)

    def _close_next(self) -> Iterator[Send]:
        if self._held is not None or self._closing or not self._waiting or self._windows is None:
            return
        self._last = min(self._waiting)
        self._waiting.discard(self._last)
        self._closing = True
        close = Close(self.number, self._last, max(self._windows.floor, self._last + 1))
        for joiner in range(self._n_joiners):
            yield Send("joiner", joiner, encode(close))

    # A window: from the surveys of the joiners to the numbers of its classes.

    def _divide(self, survey: Survey) -> Iterator[Send]:
        if self._held is not None:
            self._hear(survey)
        elif self._is_expected(survey) and self._n_ranges is None:
            self._hear(survey)
            yield from self._plan()

    def _plan(self) -> Iterator[Send]:
        if len(self._surveys) < self._n_joiners:
            return
        surveys = [self._surveys[joiner] for joiner in range(self._n_joiners)]
        n = sum(each.n_complete for each in surveys)
        values_of, code_of = merged(surveys)
        places = Places.of(self._stream.in_window(values_of))
        samples = [
            _sample(each, places, values_of, own)
            for each, own in zip(surveys, code_of, strict=True)
        ]
        plan = Plan(
            self.number,
            self._last,
            n_ranges_of(
                self._stream,
                n,
                sum(each.n_vehicles for each in surveys),
                records_per_range=self._records_per_range,
            ),
            silent_in(self._stream, n, np.sum([each.n_reported for each in surveys], axis=0)),
            np.concatenate(samples).ravel(),
            values_of,
            {},
        )
        self._n_ranges = 0
        if plan.n_asked:
            self._n_ranges = places.division(plan.sample, plan.n_asked).n_ranges
        for joiner in range(self._n_joiners):
            yield Send("joiner", joiner, encode(plan._replace(code_of=code_of[joiner])))
        if not self._n_ranges:
            yield from self._finish([], plan.silent)

    def _settle(self, formed: Formed) -> Iterator[Send]:
        if not self._is_expected(formed) or self._n_ranges is None:
            return
        self._formed[formed.range_] = formed
        if len(self._formed) < self._n_ranges:
            return
        ranges = [self._formed[range_] for range_ in range(self._n_ranges)]
        met = [self._met(group, ranges, is_new=is_new) for group, is_new in _groups(ranges)]
        sizes = [of.n_classes for of in ranges] + [each.classes.n_classes for each in met]
        *first, n_classes = np.cumsum([0, *sizes]).tolist()
        next_message = max(survey.next_message for survey in self._surveys.values())
        answers: dict[int, tuple[UInt8Array, Memories]] = {}
        for each, at in zip(met, first[len(ranges) :], strict=True):
            stretch = ClassSpan(self.number, self._last, len(ranges), at, n_classes, next_message)
            sends, memories = concluded(
                each.rows, each.classes, stretch, number=self.number, n_blocks=self._n_range_stages
            )
            yield from sends
            of_group = each.rows.by_sender(each.classes.outcomes(), memories)
            answers.update(zip(each.group, of_group, strict=True))
        for i in range(len(ranges)):
            outcome, to_store = answers.get(i, (np.zeros(0, np.uint8), []))
            yield Send(
                "range",
                stage_of(self.number, i, self._n_range_stages),
                encode(
                    Settled(
                        self.number,
                        self._last,
                        i,
                        first[i],
                        n_classes,
                        next_message,
                        outcome,
                        to_store,
                    )
                ),
            )
        summaries = [of.summary for of in ranges]
        yield from self._finish([*summaries, *(figures(*each[1:]) for each in met)], formed.silent)

    def _met(self, group: list[int], ranges: Sequence[Formed], *, is_new: bool) -> "_Met":
        """Return the rows of some ranges that meet, in new classes or in their former ones."""
        senders = [ranges[i] for i in group]
        seed = seed_of(self._secret, self._stream.settings.name, self._last)
        rows = Gathered.of(self._stream, senders, seed=seed)
        left_out = np.concatenate([each.left_out for each in senders])[rows.order]
        former = _apart([each.class_of for each in senders])[rows.order]
        classes = settled(rows, former, left_out, is_new=is_new)
        self._counts["met_records"] += len(rows.key)
        self._counts["unverified_classes"] += classes.n_refused
        return _Met(group, rows, classes)

    def _finish(
        self, summaries: Sequence[Mapping[str, float]], silent: Sequence[int]
    ) -> Iterator[Send]:
        """Release the window, and go on."""
        n_records = sum(each.n_records for each in self._surveys.values())
        if n_records:
            summary = _together(summaries) | {
                "records": n_records,
                "promised_k": self._stream.promise.k,
                "silent_sources": len(silent),
            }
            self._counts["records"] += n_records
            self._counts["classes"] += int(summary["classes"])
            span = self._stream.rule.span(self._last)
            name = self._stream.settings.name
            release = PublishedWindow(name, self._last, *span, self._now, summary)
            yield Send("release", self.number, encode_window(release))
        yield from self._go_on()

    def _go_on(self) -> Iterator[Send]:
        """Go on to the next window."""
        self._counts["windows"] += 1
        self._closing, self._n_ranges = False, None
        self._surveys, self._formed = {}, {}
        yield from self._close_next()

    def _is_expected(self, message: Survey | Formed | Finished) -> bool:
        return self._closing and message.window == self._last

    def snapshot(self) -> bytes:
        """Return the whole state. It holds raw records: store it like them."""
        return pack_state(
            f"planner {self.number}",
            {
                "shape": self._stream.shape,
                "windows": None if self._windows is None else self._windows.state(),
                "states": [encode(state) for states in self._states for state in states],
                "stated": self._stated,
                "waiting": sorted(self._waiting),
                "last": self._last,
                "closing": self._closing,
                "surveys": [encode(survey) for survey in self._surveys.values()],
                "n_ranges": self._n_ranges,
                "formed": [encode(formed) for formed in self._formed.values()],
                "asked": self._asked,
                "held": None
                if self._held is None
                else [encode(held) for held in self._held.values()],
                "now": self._now,
                "counts": self._counts,
            },
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same planner.

        Raises
        ------
        ValueError
            If it belongs to another planner, or the stream was declared differently.
        """
        state = unpack_state(f"planner {self.number}", snapshot)
        if state["shape"] != self._stream.shape:
            raise ValueError("the stream was declared in another way")
        self._windows = None
        if state["windows"] is not None:
            self._windows = self._new_windows(0.0)
            self._windows.restore(state["windows"])
        self._states = [deque() for _ in range(self._n_joiners)]
        self._stated = list(state["stated"])
        self._waiting, self._last = set(state["waiting"]), state["last"]
        self._closing, self._n_ranges = state["closing"], state["n_ranges"]
        self._surveys, self._formed = {}, {}
        self._now, self._asked = state["now"], state["asked"]
        self._held = None if state["held"] is None else {}
        self._counts = dict(state["counts"])
        held = state["held"] or ()
        for value in (*state["states"], *state["surveys"], *state["formed"], *held):
            message = decode(value)
            if isinstance(message, TickState):
                self._states[message.joiner].append(message)
            elif isinstance(message, Held) and self._held is not None:
                self._held[message.joiner] = message
            elif isinstance(message, Survey):
                self._surveys[message.joiner] = message
            elif isinstance(message, Formed):
                self._formed[message.range_] = message


class _Met(NamedTuple):
    """The rows of a group of ranges that meet, and their classes."""

    group: list[int]
    rows: Gathered
    classes: Verified


def _groups(ranges: Sequence[Formed]) -> Iterator[tuple[list[int], bool]]:
    """Yield ranges that settle together, and whether they form new classes."""
    n_met = np.array([len(of.key) for of in ranges])
    n_left = [int((of.class_of == SUPPRESSED).sum()) for of in ranges]
    has_border = n_met > n_left
    if has_border.any():
        n_classes = np.array([of.n_classes for of in ranges]) + has_border
        group_of = meetings(n_left, n_classes.tolist())
    else:  # only records without a class meet, wherever they are
        group_of = np.where(n_met > 0, 0, NO_GROUP)
    for group in range(int(group_of.max(initial=NO_GROUP)) + 1):
        yield np.flatnonzero(group_of == group).tolist(), True
    rest = np.flatnonzero((n_met > 0) & (group_of == NO_GROUP)).tolist()
    if rest:
        yield rest, False


def _apart(class_of: Sequence[Int32Array]) -> Int32Array:
    """Return the classes of several ranges, numbered so that no two ranges share one."""
    first, numbered = 0, []
    for each in class_of:
        numbered.append(np.where(each == SUPPRESSED, each, each + np.int32(first)))
        first += int(each.max(initial=SUPPRESSED)) + 1
    return np.concatenate(numbered)


def _sample(
    survey: Survey, places: Places, values_of: Values, code_of: Mapping[int, IntArray]
) -> Int32Array:
    """Return the sample of a joiner in the codes of the whole window."""
    sample = survey.sample.reshape(-1, len(places.columns)).copy()
    for at, column in enumerate(places.columns):
        if column in values_of:
            own, n_values = code_of[column].tolist(), len(values_of[column])
            sample[:, at] = recoded(sample[:, at], own, n_values)
    return sample


def _together(summaries: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the summary of a window from those of its parts."""
    with_classes = [each for each in summaries if each["classes"]]
    n = sum(each["published"] for each in summaries)
    lost = sum(each["gcp"] * each["published"] for each in with_classes)
    found: dict[str, float] = {
        "published": n,
        "classes": sum(each["classes"] for each in summaries),
        "gcp": lost / n if n else 0.0,
    }
    for name in ("k", "d", "l"):
        found[name] = min((each[name] for each in with_classes), default=0)
    if any("too_little_left" in each for each in summaries):
        found["too_little_left"] = sum(each.get("too_little_left", 0) for each in summaries)
    return found


def planner_stages(
    settings: Settings, streams: Sequence[Stream], *, secret: bytes
) -> Callable[[int], PlannerStage]:
    """Return a function that makes the planner of the stream of a number; see `joiner_stages`."""
    those = staged(streams)
    return lambda number: PlannerStage(settings, those[number], number=number, secret=secret)
