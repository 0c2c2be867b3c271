"""The planner of a stream as a stage: it closes windows, divides them, and settles their borders.

It waits for every joiner, always: whoever is missing could be one of the k of a class. A joiner
whose worker has died is restored elsewhere and goes on.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.ranges import NO_GROUP, meetings
from anonymizer.algorithms.windows import NEVER, Seen, Windows
from anonymizer.domain.arrays import Int32Array, UInt8Array
from anonymizer.pipeline.packed_state import pack_state, unpack_state
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.multisource_model import seed_of
from anonymizer.pipeline.records.range_rows import (
    Gathered,
    figures,
    numbers_of,
    published,
    settled,
)
from anonymizer.pipeline.records.release_messages import encode_window
from anonymizer.pipeline.records.silence import silent_in
from anonymizer.pipeline.records.store_port import Release
from anonymizer.pipeline.records.window_classes import Verified
from anonymizer.pipeline.records.window_messages import (
    Close,
    Formed,
    Memories,
    Plan,
    Settled,
    Survey,
    TickState,
    Values,
    decode,
    encode,
    merged,
    recoded,
)
from anonymizer.pipeline.records.window_ranges import Places, check_streams, without_search
from anonymizer.pipeline.stage import Send
from anonymizer.settings import Settings


class PlannerStage:
    """Runs the planner of one stream.

    Parameters
    ----------
    settings
        The same for all stages.
    stream, number
        The stream and its number.
    secret
        Key of the seeds.
    """

    def __init__(self, settings: Settings, stream: Stream, *, number: int, secret: bytes) -> None:
        self.number = number
        self._stream, self._secret = stream, secret
        self._n_joiners = settings.cluster.n_joiners
        self._n_range_stages = settings.cluster.n_ranges
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
        self._next_message = 1
        self._now = -inf
        names = ("windows", "records", "met_records", "classes", "unverified_classes")
        self._counts = dict.fromkeys(names, 0)

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        return dict(self._counts)

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take what a joiner or a range sends; return what follows from it."""
        self._now = max(self._now, at_s)
        message = decode(value)
        if isinstance(message, TickState):
            self._read(message)
            return list(self._close_next())
        if isinstance(message, Survey):
            return list(self._divide(message))
        if isinstance(message, Formed):
            return list(self._settle(message))
        raise ValueError("this is no input of a planner")

    # The windows: combined over the joiners tick by tick, as if one process had placed all parts.

    def _read(self, state: TickState) -> None:
        if state.tick <= self._stated[state.joiner]:
            return
        self._stated[state.joiner] = state.tick
        self._states[state.joiner].append(state)
        tick, passed = min(self._stated), []
        for states in self._states:
            while states and states[0].tick <= tick:
                passed.append(states.popleft())
        if not passed:
            return
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
        if self._closing or not self._waiting or self._windows is None:
            return
        self._last = min(self._waiting)
        self._waiting.discard(self._last)
        self._closing = True
        close = Close(self.number, self._last, max(self._windows.floor, self._last + 1))
        for joiner in range(self._n_joiners):
            yield Send("joiner", joiner, encode(close))

    # A window: from the surveys of the joiners to the numbers of its classes.

    def _divide(self, survey: Survey) -> Iterator[Send]:
        if not self._is_expected(survey) or self._n_ranges is not None:
            return
        self._surveys[survey.joiner] = survey
        if len(self._surveys) < self._n_joiners:
            return
        surveys = [self._surveys[joiner] for joiner in range(self._n_joiners)]
        n = sum(each.n_complete for each in surveys)
        values_of = merged(each.values_of for each in surveys)
        places = Places.of(self._stream.in_window(values_of))
        plan = Plan(
            self.number,
            survey.window,
            ceil(n / self._records_per_range),
            silent_in(self._stream, n, np.sum([each.n_reported for each in surveys], axis=0)),
            np.concatenate([_sample(each, places, values_of) for each in surveys]).ravel(),
            values_of,
        )
        self._n_ranges = 0
        if plan.n_asked:
            self._n_ranges = places.division(plan.sample, plan.n_asked).n_ranges
        for joiner in range(self._n_joiners):
            yield Send("joiner", joiner, encode(plan))
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
        answers: dict[int, tuple[UInt8Array, Memories]] = {}
        for each, at in zip(met, first[len(ranges) :], strict=True):
            numbers = numbers_of(
                at,
                each.classes.n_classes,
                n_classes,
                first_message=self._next_message,
                seed=each.rows.portion.seed,
                n_parts=len(ranges),
            )
            yield from published(
                each.rows, each.classes, window=self._last, numbers=numbers, number=self.number
            )
            memories, _ = each.rows.remembered(each.classes, first_company=self._next_message + at)
            of_group = each.rows.by_sender(each.classes.outcomes(), memories)
            answers.update(zip(each.group, of_group, strict=True))
        for i in range(len(ranges)):
            outcome, to_store = answers.get(i, (np.zeros(0, np.uint8), []))
            yield Send(
                "range",
                i % self._n_range_stages,
                encode(
                    Settled(
                        self.number,
                        self._last,
                        i,
                        first[i],
                        n_classes,
                        self._next_message,
                        outcome,
                        to_store,
                    )
                ),
            )
        self._next_message += n_classes
        summaries = [of.summary for of in ranges]
        yield from self._finish([*summaries, *(figures(*each[1:]) for each in met)], formed.silent)

    def _met(self, group: list[int], ranges: Sequence[Formed], *, is_new: bool) -> "_Met":
        """Return what meets of some ranges, in new classes or as it was."""
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
        """Release the window, and go on to the next."""
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
            release = Release(name, self._last, *span, self._now, summary)
            yield Send("release", self.number, encode_window(release))
        self._counts["windows"] += 1
        self._closing, self._n_ranges = False, None
        self._surveys, self._formed = {}, {}
        yield from self._close_next()

    def _is_expected(self, message: Survey | Formed) -> bool:
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
                "next_message": self._next_message,
                "now": self._now,
                "counts": self._counts,
            },
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same planner.

        Raises
        ------
        ValueError
            If it is of another one, or the stream was declared in another way.
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
        self._next_message, self._now = state["next_message"], state["now"]
        self._counts = dict(state["counts"])
        for value in (*state["states"], *state["surveys"], *state["formed"]):
            message = decode(value)
            if isinstance(message, TickState):
                self._states[message.joiner].append(message)
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


def _sample(survey: Survey, places: Places, values_of: Values) -> Int32Array:
    """Return the sample of a joiner in the codes of the whole window."""
    sample = survey.sample.reshape(-1, len(places.columns)).copy()
    for at, column in enumerate(places.columns):
        if column in values_of:
            sample[:, at] = recoded(sample[:, at], survey.values_of[column], values_of[column])
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
    check_streams([stream.settings for stream in streams])
    staged = [without_search(stream) for stream in streams]
    return lambda number: PlannerStage(settings, staged[number], number=number, secret=secret)
