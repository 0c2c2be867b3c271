"""Messages between the stages of the records flow, as bytes.

The first byte of a message says what it is. They hold raw values and keys of vehicles: protect them
like raw records. Every one may come twice: what is known already is ignored.

A window is closed in this order. Joiners state every tick what they have placed. The planner of
the stream says `Close`, and gets a `Survey` from each joiner; it states the `Plan`, by which each
joiner sends `RangeRows` to each range. A range tells the planner in `Formed` how many classes it
has, and hands over what meets at its borders. The planner says `Settled`, the range publishes, and
tells each joiner the `RangeAnswer`. Of a window with several ranges the classes are shuffled before
they are published: whoever made one sends it in `Shuffled` to the range stage that has its number.

A planner that knows nothing asks every joiner in `Recall`, and gets `Held`. If a window is under
way, it then asks the ranges in `Ask`, which state `Formed` again, or that all is `Finished`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, UInt8Array

Values = Mapping[int, Sequence[str]]
"""The values of each open column, in the order of their codes."""
Memories = Sequence[bytes | None]
"""What is stored of the vehicle of each row; empty: of none."""


class TickState(NamedTuple):
    """What a joiner has placed of a stream up to a tick; see `Seen` for the last four."""

    stream: int
    joiner: int
    tick: int
    at_s: float
    newest: Sequence[float]
    heard_s: Sequence[float]
    opened: Sequence[int]
    floor: int


class Close(NamedTuple):
    """A joiner is to close a window, and to accept nothing before `floor` any more."""

    stream: int
    window: int
    floor: int


class Survey(NamedTuple):
    """What a joiner has in a closed window.

    Attributes
    ----------
    n_records, n_complete, n_vehicles
        Records, those with all needed sources, and the vehicles that have one of these.
    n_reported
        Number of complete records of which each source reported a part, shape (sources,).
    next_message
        Above the numbers of the messages of all windows before.
    sample
        Where some complete records belong, evenly spread; see `routes_of`. Flat.
    values_of, counts_of
        As of `Joined`, and how often each occurs.
    """

    stream: int
    joiner: int
    window: int
    n_records: int
    n_complete: int
    n_vehicles: int
    n_reported: IntArray
    next_message: int
    sample: Int32Array
    values_of: Values
    counts_of: Mapping[int, IntArray]

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"Survey({self.joiner}, {self.window})"


class Plan(NamedTuple):
    """How a window is divided into ranges.

    Attributes
    ----------
    n_asked
        Number of ranges asked for, see `divide`; 0: there are no complete records.
    silent
        Sources that are silent in this window.
    sample
        By which it is divided, of all joiners. Flat.
    values_of
        The values of the open columns in the whole window.
    code_of
        The code among them of each text of the joiner that is told.
    """

    stream: int
    window: int
    n_asked: int
    silent: Sequence[int]
    sample: Int32Array
    values_of: Values
    code_of: Mapping[int, IntArray]

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"Plan({self.window}, {self.n_asked})"


class RangeRows(NamedTuple):
    """A piece of the records of a joiner for a range.

    Attributes
    ----------
    range_
        Number of the range in the window.
    piece, n_pieces
        Number of this piece, and how many the joiner sends to this range.
    n_ranges, silent, values_of
        Of the window.
    columns
        Codes of each column of `Joined.cells`.
    key
        Of the vehicle of each row.
    memories
        Of the vehicles.
    """

    stream: int
    joiner: int
    window: int
    range_: int
    piece: int
    n_pieces: int
    n_ranges: int
    silent: Sequence[int]
    values_of: Values
    columns: Sequence[Int32Array]
    key: IntArray
    memories: Memories

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"RangeRows({self.joiner}, {self.window}, {self.range_}, {self.piece})"


class Formed(NamedTuple):
    """The number of classes of a range, and those of its rows that are to meet others.

    `n_classes`: those that the range publishes itself, with their `summary`; `n_refused`: those
    that verification refused. `columns`, `key`, `memories` are the rows that meet others, as
    in `RangeRows`; `class_of`, `left_out`: class of each in the range, or `SUPPRESSED`, and whether
    earlier windows are the reason.
    """

    stream: int
    window: int
    range_: int
    n_ranges: int
    silent: Sequence[int]
    values_of: Values
    n_classes: int
    summary: Mapping[str, float]
    n_refused: int
    columns: Sequence[Int32Array]
    key: IntArray
    memories: Memories
    class_of: Int32Array
    left_out: BoolArray

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"Formed({self.window}, {self.range_})"


class Settled(NamedTuple):
    """The numbers of the classes of a range, and what became of the rows that met others.

    The range's classes are the ones from `first_class` on, before they are numbered at random;
    `outcome`, `memories` are of the rows of `Formed`.
    """

    stream: int
    window: int
    range_: int
    first_class: int
    n_classes: int
    first_message: int
    outcome: UInt8Array
    memories: Memories

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"Settled({self.window}, {self.range_})"


class RangeAnswer(NamedTuple):
    """What became of a piece of the rows of a joiner, and what to remember of their vehicles.

    Attributes
    ----------
    next_message
        Above the numbers of the messages of this window and of all before.
    """

    stream: int
    window: int
    range_: int
    piece: int
    next_message: int
    outcome: UInt8Array
    memories: Memories

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"RangeAnswer({self.window}, {self.range_}, {self.piece})"


class Shuffled(NamedTuple):
    """Classes with numbers from one block, which is published when all of its numbers are there."""

    stream: int
    window: int
    n_classes: int
    numbers: Sequence[int]
    messages: bytes

    def __repr__(self) -> str:
        """Reveal no class before it is published."""
        return f"Shuffled({self.window}, {len(self.numbers)})"


class Recall(NamedTuple):
    """A planner knows nothing, and asks a joiner what it has heard.

    Attributes
    ----------
    asked
        Of this question: the answer repeats it.
    """

    stream: int
    asked: int


class Held(NamedTuple):
    """What a joiner has heard from the planner, up to the question.

    `last`: the window that it closed last, `NEVER` for none; `n_ranges`: 0 if it is settled,
    `UNPLANNED` if there is no plan yet; `survey`: that of the window, encoded; empty: it comes
    later, or is not needed any more.
    """

    stream: int
    joiner: int
    asked: int
    last: int
    n_ranges: int
    survey: bytes

    def __repr__(self) -> str:
        """Reveal no record."""
        return f"Held({self.joiner}, {self.last}, {self.n_ranges})"


UNPLANNED = -1


class Ask(NamedTuple):
    """A range is to say again what it has told the planner about a window."""

    stream: int
    window: int
    range_: int


class Finished(NamedTuple):
    """A range has published a window."""

    stream: int
    window: int


_BYTE_OF: dict[type, bytes] = {
    TickState: b"T",
    Close: b"C",
    Survey: b"V",
    Plan: b"N",
    RangeRows: b"W",
    Formed: b"M",
    Settled: b"S",
    RangeAnswer: b"A",
    Shuffled: b"P",
    Recall: b"Q",
    Held: b"H",
    Ask: b"K",
    Finished: b"F",
}
_TYPE_OF = {byte: kind for kind, byte in _BYTE_OF.items()}
_Message = (
    TickState
    | Close
    | Survey
    | Plan
    | RangeRows
    | Formed
    | Settled
    | RangeAnswer
    | Shuffled
    | Recall
    | Held
    | Ask
    | Finished
)


_SHORT = TickState, Shuffled, Finished
_LONG = frozenset(byte for kind, byte in _BYTE_OF.items() if kind not in _SHORT)


def takes_long(value: bytes) -> bool:
    """Return whether a stage may work for seconds on an input.

    After these it may join a window, divide it, or form classes: after a `RangeAnswer`, too, where
    the next window is to be closed, and after an `Ask` since the stage was restarted.
    """
    return value[:1] in _LONG


def encode(message: _Message) -> bytes:
    """Return a message as bytes: numbers in as few as hold the largest of their column."""
    return _BYTE_OF[type(message)] + pack([_packable(field) for field in message])


def decode(value: bytes) -> _Message:
    """Return the message that was encoded.

    Raises
    ------
    ValueError
        If there is none of this kind.
    """
    kind: Any = _TYPE_OF.get(value[:1])
    if kind is None:
        raise ValueError("this is no message between stages of records")
    fields = unpack(memoryview(value)[1:])
    if not isinstance(fields, list):  # bytes would be read as numbers
        raise ValueError("this is no list of fields")  # noqa: TRY004  as of all that is unreadable
    message = kind(*fields)
    if message.stream < 0:
        raise ValueError("this is a message of no stream")
    of: dict[str, Any] = message._asdict()
    of |= {name: dict(of[name]) for name in ("values_of", "counts_of", "code_of") if name in of}
    if "columns" in of:
        of["columns"] = [column.astype(np.int32) for column in of["columns"]]
    decoded: _Message = kind(**of)
    return decoded


def _packable(field: Any) -> Any:  # noqa: ANN401  any field of a message
    if isinstance(field, Mapping) and all(isinstance(key, int) for key in field):
        return list(field.items())
    if isinstance(field, list) and field and isinstance(field[0], np.ndarray):
        return [_narrow(column) for column in field]
    return field


def _narrow(column: Int32Array) -> Any:  # noqa: ANN401  of any type of whole numbers
    """Return codes, which are 0 and up, in the smallest type that holds them."""
    return column.astype(np.min_scalar_type(int(column.max(initial=0))))
