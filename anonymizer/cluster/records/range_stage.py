"""A range of closed windows as a stage: rows of all joiners in, classes and answers out.

A range forms classes of the records that it got, and hands over to the planner what found none and
what is at its borders. It publishes when it knows the numbers of its classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.windows import NEVER
from anonymizer.cluster.packed_state import pack_state, unpack_state
from anonymizer.cluster.positions.raw_batches import decode_out, encode_out
from anonymizer.cluster.records.range_rows import (
    ClassSpan,
    Gathered,
    concluded,
    figures,
    published,
    size_of,
)
from anonymizer.cluster.records.window_messages import (
    Ask,
    Finished,
    Formed,
    RangeAnswer,
    RangeRows,
    Settled,
    Shuffled,
    decode,
    encode,
)
from anonymizer.cluster.records.window_ranges import meeting, staged
from anonymizer.cluster.stage import Send, reading, refuse
from anonymizer.domain.arrays import BoolArray
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.anonymize_window import warm_up
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.history import Kept
from anonymizer.pipeline.records.window_classes import Verified, verified
from anonymizer.pipeline.records.window_models import WINDOW_MODELS, seed_of
from anonymizer.settings import Settings


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Found:
    """The classes of a range, before their numbers are known.

    The planner settles the rows in `meets`; `classes` are of the others.
    """

    rows: Gathered
    kept: Kept
    meets: BoolArray
    classes: Verified


@dataclass(slots=True, eq=False, repr=False)
class _Range:
    """A range of a window that is not finished: its rows, in order of arrival, and its classes.

    Attributes
    ----------
    found
        None: not formed yet, or not since a restart.
    """

    window: int
    values: dict[tuple[int, int], bytes] = field(default_factory=dict)
    n_pieces: dict[int, int] = field(default_factory=dict)
    found: _Found | None = None

    def add(self, rows: RangeRows, value: bytes) -> bool:
        """Add rows; return whether they are new."""
        key = rows.joiner, rows.piece
        is_new = key not in self.values
        self.values[key] = value
        self.n_pieces[rows.joiner] = rows.n_pieces
        return is_new

    def is_complete(self, n_joiners: int) -> bool:
        """Return whether all joiners have sent all their rows."""
        return len(self.n_pieces) == n_joiners and len(self.values) == sum(self.n_pieces.values())

    def rows(self) -> list[RangeRows]:
        """Return the rows of all senders, in their order."""
        found = (decode(self.values[key]) for key in sorted(self.values))
        return [rows for rows in found if isinstance(rows, RangeRows)]


class RangeStage:
    """Runs some ranges of each window."""

    def __init__(
        self, settings: Settings, streams: Sequence[Stream], *, number: int, secret: bytes
    ) -> None:
        self.number = number
        self._n_joiners = settings.cluster.n_parts
        self._records_per_range = settings.cluster.records_per_range
        self._n_stages = settings.cluster.n_parts
        self._streams, self._secret = streams, secret
        self._ranges: dict[tuple[int, int], _Range] = {}
        """What is not published yet, by stream and range."""
        self._done: dict[tuple[int, int], int] = {}
        """The last published window of each stream and range."""
        self._blocks: dict[tuple[int, int], dict[int, Outgoing]] = {}
        """Classes to be published, by stream and window, and by number."""
        self._shuffled: dict[int, int] = {}
        """The last window of each stream whose block was published."""
        self._counts = dict.fromkeys(("ranges", "records", "classes", "unverified_classes"), 0)

    @property
    def counters(self) -> dict[str, int]:
        """What has happened so far, by name."""
        return dict(self._counts)

    def take(self, value: bytes, *, at_s: float) -> list[Send]:  # noqa: ARG002  as all stages
        """Take a message of a joiner or a planner; return the messages to send in turn."""
        with reading():
            message = decode(value)
            if not isinstance(message, RangeRows | Settled | Shuffled | Ask):
                refuse()
            _ = self._streams[message.stream]
        if isinstance(message, RangeRows):
            return self._add(message, value)
        if isinstance(message, Settled):
            return list(self._publish(message))
        if isinstance(message, Shuffled):
            return self._shuffle(message)
        return self._say_again(message)

    def _add(self, rows: RangeRows, value: bytes) -> list[Send]:
        key = rows.stream, rows.range_
        if rows.window <= self._done.get(key, rows.window - 1):
            return []
        of = self._ranges.setdefault(key, _Range(rows.window))
        if not of.add(rows, value) or not of.is_complete(self._n_joiners):
            return []
        found = self._find(key, of)
        self._counts["ranges"] += 1
        self._counts["records"] += len(found.meets)
        self._counts["unverified_classes"] += found.classes.n_refused
        return [self._formed(rows, found)]

    def _formed(self, rows: RangeRows, found: _Found) -> Send:
        """Return what the planner has to know about a range that has rows."""
        sent = Formed(
            rows.stream,
            rows.window,
            rows.range_,
            rows.n_ranges,
            rows.silent,
            rows.values_of,
            found.classes.n_classes,
            figures(found.rows, found.classes),
            found.classes.n_refused,
            *found.rows.only(found.meets),
            found.kept.class_of[found.meets],
            found.kept.left_out[found.meets],
        )
        return Send("planner", rows.stream, encode(sent))

    def _say_again(self, ask: Ask) -> list[Send]:
        key = ask.stream, ask.range_
        if ask.window <= self._done.get(key, NEVER):
            return [Send("planner", ask.stream, encode(Finished(ask.stream, ask.window)))]
        of = self._ranges.get(key)
        if of is None or of.window != ask.window or not of.is_complete(self._n_joiners):
            return []  # it is said when all rows are there
        return [self._formed(of.rows()[0], self._find(key, of))]

    def _shuffle(self, some: Shuffled) -> list[Send]:
        """Publish the block in the order of its numbers when all classes are there."""
        if some.window <= self._shuffled.get(some.stream, NEVER):
            return []
        key = some.stream, some.window
        block = self._blocks.setdefault(key, {})
        block.update(zip(some.numbers, decode_out(some.messages), strict=True))
        if len(block) < size_of(self.number, some.n_classes, self._n_stages):
            return []
        del self._blocks[key]
        self._shuffled[some.stream] = some.window
        return published(
            [block[number] for number in sorted(block)],
            name=self._streams[some.stream].settings.name,
            window=some.window,
            number=self.number,
        )

    def _find(self, key: tuple[int, int], of: _Range) -> _Found:
        """Return the classes of a complete range: the same at every attempt."""
        if of.found is None:
            stream = self._streams[key[0]]
            seed = seed_of(self._secret, stream.settings.name, of.window)
            senders = of.rows()
            rows = Gathered.of(stream, senders, seed=seed)
            kept = rows.classes()
            n_ranges = senders[0].n_ranges
            meets = np.zeros(len(rows.key), bool)
            if n_ranges > 1:
                meets = meeting(rows.portion, kept, most=self._records_per_range // n_ranges)
            stays = np.where(meets, np.int32(SUPPRESSED), kept.class_of)
            classes = verified(rows.portion, replace(kept, class_of=stays))
            of.found = _Found(rows, kept, meets, classes)
        return of.found

    def _publish(self, message: Settled) -> Iterator[Send]:
        key = message.stream, message.range_
        of = self._ranges.get(key)
        if of is None or of.window != message.window:
            return
        found, senders = self._find(key, of), of.rows()
        del self._ranges[key]
        self._done[key] = message.window
        self._counts["classes"] += found.classes.n_classes
        stretch = ClassSpan(
            message.stream,
            of.window,
            senders[0].n_ranges,
            message.first_class,
            message.n_classes,
            message.first_message,
        )
        sends, memories = concluded(
            found.rows, found.classes, stretch, number=self.number, n_blocks=self._n_stages
        )
        yield from sends
        outcome = found.classes.outcomes()
        outcome[found.meets] = message.outcome
        met = np.flatnonzero(found.meets).tolist()
        for i, blob in zip(met, message.memories, strict=False):
            memories[i] = blob
        answers = found.rows.by_sender(outcome, memories)
        for rows, (of_sender, to_store) in zip(senders, answers, strict=True):
            answer = RangeAnswer(
                message.stream,
                of.window,
                message.range_,
                rows.piece,
                message.first_message + message.n_classes,
                of_sender,
                to_store,
            )
            yield Send("joiner", rows.joiner, encode(answer))

    def snapshot(self) -> bytes:
        """Return the whole state. It holds raw records: store it like them."""
        return pack_state(
            f"range {self.number}",
            {
                "ranges": [
                    [*key, of.window, list(of.values.values())] for key, of in self._ranges.items()
                ],
                "done": [[*key, window] for key, window in self._done.items()],
                "blocks": [
                    [*key, list(block), encode_out(list(block.values()))]
                    for key, block in self._blocks.items()
                ],
                "shuffled": list(self._shuffled.items()),
                "counts": self._counts,
            },
        )

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same range."""
        state = unpack_state(f"range {self.number}", snapshot)
        self._ranges = {}
        for stream, range_, window, values in state["ranges"]:
            of = self._ranges[stream, range_] = _Range(window)
            for value in values:
                rows = decode(value)
                if isinstance(rows, RangeRows):
                    of.add(rows, value)
        self._done = {(stream, range_): window for stream, range_, window in state["done"]}
        self._blocks = {
            (stream, window): dict(zip(numbers, decode_out(messages), strict=True))
            for stream, window, numbers, messages in state["blocks"]
        }
        self._shuffled = dict(state["shuffled"])
        self._counts = dict(state["counts"])


def range_stages(
    settings: Settings, streams: Sequence[Stream], *, secret: bytes
) -> Callable[[int], RangeStage]:
    """Return a function that makes the stage of ranges of a number; see `joiner_stages`."""
    those = staged(streams)
    return lambda number: RangeStage(settings, those, number=number, secret=secret)


def warm_up_stages(streams: Sequence[Stream]) -> None:
    """Compile what the first window of each stream needs, on a synthetic one.

    Kafka ends a transaction in which a stage compiles.
    """
    for stream in staged(streams):
        some = stream.in_window(dict.fromkeys(stream.open_columns, "0123456789"))
        warm_up(some, WINDOW_MODELS[some.settings.model](some))
