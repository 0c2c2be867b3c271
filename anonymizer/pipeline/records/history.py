"""History of a stream: classes that stay safe together with those of earlier windows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cumulative import (
    Lasting,
    Memory,
    advance,
    lasting_columns,
    pack,
    short,
    unpack,
)
from anonymizer.algorithms.records.cumulative_enforcement import enforce, keep_company
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.window_model import cost_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Remembered:
    """The memory of the vehicles of a window.

    Attributes
    ----------
    stream
        The stream; its settings say which attributes last.
    memory
        The memory of the vehicle of each record, in the order of the records.
    """

    stream: Stream
    memory: Memory

    def classes(
        self, records: Records, form: Callable[[Records, IntArray], Int32Array]
    ) -> tuple[Int32Array, BoolArray]:
        """Return classes that leave every vehicle enough values, and the records suppressed for it.

        Parameters
        ----------
        records
            One for each vehicle.
        form
            Forms the classes of some of the records; it also gets their indices.

        Notes
        -----
        Vehicles that shared a class stay together where possible; the others are partitioned
        anew, and a vehicle without a class moves to the class whose loss grows least by it.
        """
        stream, lasting = self.stream, _lasting(self.stream)
        criteria = stream.schema, stream.promise
        class_of = keep_company(self.memory, lasting, records, *criteria)
        rest = np.flatnonzero(class_of == SUPPRESSED)
        if len(rest) >= stream.promise.k:
            fresh = form(_numbered(records, rest), rest)
            first = int(class_of.max(initial=-1)) + 1
            class_of[rest] = np.where(fresh == SUPPRESSED, fresh, fresh + first)
        unassigned = class_of == SUPPRESSED
        # They form one class: if it breaks the promise, enforcement moves its members to others.
        class_of[unassigned] = int(class_of.max(initial=-1)) + 1
        cost = cost_of(stream)
        enforced = enforce(self.memory, lasting, records, *criteria, class_of, cost=cost).class_of
        return enforced, (enforced == SUPPRESSED) & ~unassigned

    def after(
        self, records: Records, class_of: Int32Array, *, first_company: int
    ) -> tuple[list[bytes], int]:
        """Return the memory of each vehicle after this window, and how many are below the floor."""
        lasting = _lasting(self.stream)
        memory = advance(self.memory, lasting, records, class_of, first_company=first_company)
        n_short = int((short(memory, lasting) & (class_of != SUPPRESSED)).sum())
        return pack(memory, lasting), n_short


def remembered(
    stream: Stream, memories: Mapping[bytes, bytes], vehicles: Sequence[bytes]
) -> Remembered | None:
    """Return the memory of vehicles; None if no attribute of the stream lasts."""
    if not stream.lasting:
        return None
    return Remembered(
        stream, unpack([memories.get(vehicle) for vehicle in vehicles], _lasting(stream))
    )


def _lasting(stream: Stream) -> Lasting:
    return lasting_columns(stream.schema, stream.promise, stream.lasting)


def _numbered(records: Records, chosen: IntArray) -> Records:
    """Return the chosen records, their persons numbered from 0."""
    only = records.only(chosen)
    return Records(only.qi, only.sensitive, np.arange(len(chosen), dtype=np.int32))
