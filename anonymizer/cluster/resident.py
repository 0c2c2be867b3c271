"""A stage that stays in memory, and what it needs to go on after a crash.

What a stage has taken lies in Kafka, in one partition, in one order: the topic is the journal. The
state therefore is a snapshot of the stage and the offset of the last input before it. From there,
the stage takes the inputs again that lie between, and what it sends meanwhile is dropped: it was
sent before. State, outputs and offsets are committed together, so an input that has not come yet is
one whose outputs nobody has seen. Inputs that a committed snapshot contains are not needed any
more. A stage is in memory until somebody else takes an input of it.

A state that is older than the outputs does no harm: more inputs are taken again. A state that
belongs to other inputs would, because its offset means nothing in another topic. So a snapshot
names the topic and the Kafka that it belongs to, and a stage stands still if they differ. Nor does
a state mean the same under every setting, so a snapshot names those under which it was written, and
a stage stands still if one of them has changed.

An input that a stage cannot read, or at which it fails, is dropped: the stage is put back to its
state before that input, and goes on. Every replica of the stage does the same.
"""

import math
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import msgspec
import structlog

from anonymizer.cluster.stage import Send, Stage, UnreadableError
from anonymizer.domain.discreet import discreet
from anonymizer.errors import TransportError

PIECE_BYTES = 512 << 10
"""A snapshot is stored in pieces of this size, below the limit of Kafka's messages."""
_LEAST_BYTES = 1 << 20
"""Inputs of fewer bytes are rather taken again than followed by a snapshot."""
_MOST_AGE_S = 300.0
"""Age at which a snapshot is replaced however small the inputs were. Until then Kafka keeps raw
data."""
_INPUT_BYTES = 64
"""Added to the size of each input for the work that it takes."""
_HEAD = "head"
SNAPSHOT_FORMAT = 5
"""Of the snapshots of all stages, and of what stages send each other: whoever changes any of it
raises this number."""


@discreet
class Input(NamedTuple):
    """What came to a stage: where it lies in the partition, its content, and when it was written.

    `at_s` is in unix seconds.
    """

    offset: int
    value: bytes
    at_s: float


class StandstillError(TransportError):
    """A stage cannot go on until the operator acts, on this worker or on any other."""


class LostInputsError(StandstillError):
    """Kafka does not have the inputs any more that would have to be taken again."""


class Place(NamedTuple):
    """Where the inputs of a stage are.

    `origin`: the ids of Kafka and of the topic; one that is made anew has another id. `end`: offset
    behind the last message.
    """

    origin: str
    end: int


class Journal(Protocol):
    """The inputs of a stage and its snapshot, as Kafka has them."""

    name: str
    """Of the stage, for messages to the operator."""

    def place(self) -> Place:
        """Return where they are.

        Raises `StandstillError` if this worker has read another topic of this name before.
        """
        ...

    def between(self, after: int, before: int) -> Iterator[Input]:
        """Yield the inputs after one offset and before another, which was read.

        Raises `LostInputsError` if they are not there any more.
        """
        ...

    def stored(self) -> Mapping[str, bytes]:
        """Return what was stored and committed, by name."""
        ...

    def store(self, name: str, value: bytes | None) -> None:
        """Store bytes with the outputs of the present input; None: forget what has this name."""
        ...


class _Head(msgspec.Struct, array_like=True):
    """What the state says about its snapshot. The first field stays the first in every format."""

    format: int
    offset: int
    n_pieces: int
    at_s: float
    origin: str
    written_with: Mapping[str, Any] = {}


_NONE = _Head(SNAPSHOT_FORMAT, -1, 0, 0.0, "")
"""Of a stage that has stored nothing."""


@dataclass
class StageEvents:
    """What happened to the stages of a worker."""

    n_snapshots: int = 0
    n_restored: int = 0
    """`n_snapshots`, `n_restored`: snapshots stored, and how often one was gone back to."""
    n_again: int = 0
    """Inputs taken again."""
    n_anew: int = 0
    """How often a stage lost its state because its inputs were lost."""
    n_dropped: Counter[str] = field(
        default_factory=lambda: Counter(
            dict.fromkeys(("unreadable", "failed", "unaddressed", "too_large"), 0)
        )
    )
    """Inputs dropped by their reason: `unreadable`, `failed` where the stage failed at it, and
    `unaddressed` where it names no stage. Also outputs that are `too_large` for their topic."""


class Resident:
    """One stage, which takes each input of its key once, in the order of the partition.

    Parameters
    ----------
    drop
        Called with an input that is dropped, and the reason; it returns what is sent about it.
    counts
        Counted on.
    written_with
        Settings without which its state means something else, by their keys; anything of JSON.

    Attributes
    ----------
    stage
        None before the first input.
    offset, at_s
        Of the last input taken; -1 and 0 before.
    covered
        Offset of the last input that the stored snapshot contains; -1: there is none.
        Earlier inputs are not needed when the transaction that stored it is committed.
    """

    def __init__(
        self,
        make: Callable[[], Stage],
        journal: Journal,
        drop: Callable[[Input, str], list[Send]],
        counts: StageEvents,
        *,
        written_with: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._make, self._journal, self._drop, self._counts = make, journal, drop, counts
        self._written_with = dict(written_with)
        self._origin = ""
        self.stage: Stage | None = None
        self.offset, self.at_s = -1, 0.0
        self.covered = -1
        self._n_bytes = self._n_snapshot_bytes = 0
        self._n_pieces = 0  # the most that may lie there
        self._snapshot_at_s = -math.inf

    def take(self, given: Input) -> list[Send]:
        """Let the stage take an input; return what it sends, or the notice if the input is dropped.

        `given` is the next input whose outputs were not committed. StandstillError if inputs are
        missing before this one, or the snapshot is not of these inputs.
        """
        stage = self.stage
        if stage is None or given.offset <= self.offset:
            stage = self._standing_before(given.offset)
        if given.offset <= self.offset:
            return []  # Kafka has forgotten that it was taken, and the snapshot has not
        try:
            sends = stage.take(given.value, at_s=given.at_s)
        except UnreadableError:
            sends = self._dropped(given, "unreadable")
        except Exception as error:
            if not _is_of_the_input(error):
                raise
            # Not its text: that may repeat what is in the input.
            where = traceback.extract_tb(error.__traceback__)[-1]
            _LOG.error(
                "a stage failed at an input",
                stage=self._journal.name,
                error=type(error).__name__,
                at=f"{Path(where.filename).name}:{where.lineno}",
            )
            stage = self._standing_before(given.offset)
            sends = self._dropped(given, "failed")
            self._snapshot_at_s = -math.inf  # so that nobody has to go back once more
        else:
            self._passed(given)
        if (
            self._n_bytes > max(_LEAST_BYTES, self._n_snapshot_bytes)
            or self.at_s - self._snapshot_at_s > _MOST_AGE_S
        ):
            self._save(stage)
        return sends

    def _dropped(self, given: Input, why: str) -> list[Send]:
        """Go on as if an input had not come: its time does not count, either."""
        self._passed(given._replace(at_s=self.at_s))
        self._counts.n_dropped[why] += 1
        return self._drop(given, why)

    def _standing_before(self, offset: int) -> Stage:
        """Return the stage as it stood before an input, from the snapshot and the inputs since."""
        stored = self._journal.stored()
        head = self._head(stored.get(_HEAD))
        self._origin = self._checked(head.origin, head.offset)
        self._n_pieces = max(self._n_pieces, head.n_pieces)
        try:
            self.stage = self._caught_up(head, stored, offset)
        except LostInputsError:
            self._counts.n_anew += 1
            raise
        return self.stage

    def _caught_up(self, head: _Head, stored: Mapping[str, bytes], offset: int) -> Stage:
        """Take again what lies before an offset, but for the inputs at which the stage fails."""
        fails: set[int] = set()
        while True:
            stage, failed = self._restored(head, stored), None
            for each in self._journal.between(self.offset, offset):
                if each.offset in fails:
                    continue
                try:
                    stage.take(each.value, at_s=each.at_s)
                except UnreadableError:
                    continue
                except Exception as error:
                    if not _is_of_the_input(error):
                        raise
                    failed = each.offset
                    break
                self._passed(each)
                self._counts.n_again += 1
            if failed is None:
                return stage
            fails.add(failed)

    def _checked(self, origin: str, offset: int) -> str:
        """Return the origin of the inputs after checking a snapshot's; "" stands for any.

        Raises `StandstillError` if it is not: its offset says nothing about these inputs.
        """
        place = self._journal.place()
        if origin not in {"", place.origin}:
            raise self._standstill(
                "its state belongs to another topic than the one that is there. Kafka came back"
                " with an empty disk, or somebody deleted the topic"
            )
        if offset >= place.end:
            raise self._standstill(
                f"its state contains the inputs up to offset {offset}, and Kafka has only"
                f" those before {place.end}: it has lost some"
            )
        return place.origin

    def _standstill(self, why: str, see: str = "the alert ClusterStateLost") -> StandstillError:
        return StandstillError(f"cluster: {self._journal.name} cannot go on: {why}. See {see}")

    def _head(self, stored: bytes | None) -> _Head:
        """Return the head of the snapshot.

        Raises `StandstillError` if it is in another format, or was written with other settings.
        """
        if stored is None:
            return _NONE
        try:
            number = _DECODE_ANY(stored)[0]
            head = _DECODE(stored) if number == SNAPSHOT_FORMAT else None
        except (ValueError, TypeError, LookupError, RecursionError):
            number, head = "unknown", None
        if head is None:
            raise self._standstill(
                f"its snapshot is in format {number}, and this version reads format"
                f" {SNAPSHOT_FORMAT} alone",
                "docs/scaling.md, Upgrade",
            )
        then, now = head.written_with, self._written_with
        if changed := sorted(key for key in then.keys() & now.keys() if then[key] != now[key]):
            raise self._standstill(
                f"its snapshot was written with another {', '.join(changed)}",
                "docs/scaling.md, Upgrade",
            )
        return head

    def _passed(self, given: Input) -> None:
        self.offset, self.at_s = given.offset, given.at_s
        self._n_bytes += len(given.value) + _INPUT_BYTES

    def _restored(self, head: _Head, stored: Mapping[str, bytes]) -> Stage:
        stage = self._make()
        self.offset = self.covered = head.offset
        self.at_s, self._n_bytes, self._n_snapshot_bytes = head.at_s, 0, 0
        if head is _NONE:  # it has not taken anything, or has to take everything again
            self._snapshot_at_s = -math.inf  # a snapshot at once
            return stage
        snapshot = b"".join(stored.get(str(piece), b"") for piece in range(head.n_pieces))
        try:
            stage.restore(snapshot)
        except Exception:  # noqa: BLE001  it may lack anything, and repeats what it has
            raise self._standstill("its snapshot cannot be read") from None
        self._n_snapshot_bytes, self._snapshot_at_s = len(snapshot), head.at_s
        self._counts.n_restored += 1
        return stage

    def _save(self, stage: Stage) -> None:
        self._checked(self._origin, self.covered)  # the topic may be deleted under this stage
        snapshot = stage.snapshot()
        starts = range(0, len(snapshot), PIECE_BYTES)
        for piece, start in enumerate(starts):
            self._journal.store(str(piece), snapshot[start : start + PIECE_BYTES])
        for piece in range(len(starts), self._n_pieces):
            self._journal.store(str(piece), None)
        head = _Head(
            SNAPSHOT_FORMAT,
            self.offset,
            len(starts),
            self.at_s,
            self._origin,
            self._written_with,
        )
        self._journal.store(_HEAD, msgspec.msgpack.encode(head))
        self._n_bytes, self._n_snapshot_bytes, self._n_pieces = 0, len(snapshot), len(starts)
        self._snapshot_at_s = self.at_s
        self.covered = self.offset
        self._counts.n_snapshots += 1


_DECODE = msgspec.msgpack.Decoder(_Head).decode
_DECODE_ANY = msgspec.msgpack.Decoder().decode


def _is_of_the_input(error: Exception) -> bool:
    """Return whether the input itself makes the stage fail, on whatever machine."""
    return not isinstance(error, MemoryError | OSError | TransportError)


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
