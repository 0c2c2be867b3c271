"""Classes that are safe beside those of earlier windows, and what is remembered of them."""

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Remembered:
    """What the vehicles of a window have in common with their earlier classes.

    Attributes
    ----------
    stream
        Whose attributes last.
    memory
        Of the vehicle of each record, in their order.
    """

    stream: Stream
    memory: Memory

    def classes(
        self, records: Records, form: Callable[[Records, IntArray], Int32Array]
    ) -> tuple[Int32Array, BoolArray]:
        """Return classes that leave enough of every vehicle, and who is left out for that.

        Parameters
        ----------
        records
            One a vehicle.
        form
            Forms the classes of some of the records, which it gets with their indices.

        Notes
        -----
        Vehicles that shared a class stay together where they can; the rest is partitioned
        afresh, and whom no class takes looks for the one that it makes the least worse.
        """
        stream, lasting = self.stream, _lasting(self.stream)
        given = stream.schema, stream.promise
        class_of = keep_company(self.memory, lasting, records, *given)
        rest = np.flatnonzero(class_of == SUPPRESSED)
        if len(rest) >= stream.promise.k:
            fresh = form(_numbered(records, rest), rest)
            first = int(class_of.max(initial=-1)) + 1
            class_of[rest] = np.where(fresh == SUPPRESSED, fresh, fresh + first)
        homeless = class_of == SUPPRESSED
        # As one class, which is given up if it keeps no promise, they look for homes.
        class_of[homeless] = int(class_of.max(initial=-1)) + 1
        enforced = enforce(self.memory, lasting, records, *given, class_of).class_of
        return enforced, (enforced == SUPPRESSED) & ~homeless

    def after(
        self, records: Records, class_of: Int32Array, *, first_company: int
    ) -> tuple[list[bytes], int]:
        """Return what is to be remembered of each vehicle, and of how many too little is left."""
        lasting = _lasting(self.stream)
        memory = advance(self.memory, lasting, records, class_of, first_company=first_company)
        n_short = int((short(memory, lasting) & (class_of != SUPPRESSED)).sum())
        return pack(memory, lasting), n_short


def remembered(
    stream: Stream, memories: Mapping[bytes, bytes], vehicles: Sequence[bytes]
) -> Remembered | None:
    """Return what is remembered of vehicles; None: nothing lasts, so there is nothing to."""
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
