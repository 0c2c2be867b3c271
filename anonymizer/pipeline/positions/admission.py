"""Admission: decoded positions with plausible times, of devices that have a slot in their table."""

import numpy as np

from anonymizer.algorithms.positions.operator import classify_time
from anonymizer.domain.arrays import FloatArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.positions.decoded import Decoded
from anonymizer.pipeline.positions.decoding import date_the_undated
from anonymizer.pipeline.positions.group_readings import GroupReadings
from anonymizer.pipeline.positions.id_lives import IdLives
from anonymizer.pipeline.positions.input_counts import LocatedInputs
from anonymizer.pipeline.positions.trip_guard import Positions
from anonymizer.settings import PresenceSettings


def timeliness(ts: FloatArray, presence: PresenceSettings, *, now: float) -> UInt8Array:
    """Return `HELD` or why a time is not plausible, shape (n,); NaN, no time, is.

    Parameters
    ----------
    ts
        Unix seconds.
    presence
        Which times are plausible.
    now
        Unix seconds at which the tick closes.
    """
    stated = np.where(np.isnan(ts), now, ts)
    return classify_time(stated, now, ahead_s=presence.max_ahead_s, behind_s=presence.max_behind_s)


def admit(
    decoded: Decoded,
    *,
    presence: PresenceSettings,
    devices: DeviceTable,
    readings: GroupReadings,
    ids: IdLives,
    ledger: Ledger,
    since: float,
    now: float,
    inputs: LocatedInputs | None = None,
) -> Positions:
    """Return the admitted positions, tagged with their arrival times, and note their readings.

    Parameters
    ----------
    decoded
        Positions of one tick.
    presence
        Which times are plausible.
    since, now
        Unix seconds; see `date_the_undated`.
    devices, readings, ids
        Where the devices get their slots, and where readings and ids that change are noted.
    ledger
        Where the other positions are settled.
    inputs
        Where they are counted by input, and where it is remembered for the others.
    """
    outcome = timeliness(decoded.ts, presence, now=now)
    slot = np.full(len(outcome), NO_SLOT, np.int32)
    timely = np.flatnonzero(outcome == Outcome.HELD)
    # Only accepted positions may take a slot: a rejected message must leave no trace.
    slot[timely] = decoded.slots(timely, devices)
    outcome[timely[slot[timely] == NO_SLOT]] = Outcome.SUPPRESSED__OVERLOAD
    ts = date_the_undated(decoded.ts, slot, since=since, now=now)
    readings.note(
        decoded.reading_row,
        decoded.reading_attribute,
        decoded.reading_value,
        slot=slot,
        ts=ts,
    )
    if decoded.id_changes is not None:
        ids.mark(slot[decoded.id_changes & (slot != NO_SLOT)])
    kept = outcome == Outcome.HELD
    ledger.settle_all(outcome[~kept])
    if inputs is not None and decoded.input is not None:
        inputs.counts.settle_all(decoded.input[~kept], outcome[~kept])
        inputs.admit(slot[kept], decoded.input[kept])
    columns = (slot, ts, decoded.lat, decoded.lon, decoded.at_s)
    heading = None if decoded.heading is None else decoded.heading[kept]
    node = None if decoded.node is None else decoded.node[kept]
    return Positions(*(column[kept] for column in columns))._replace(heading=heading, node=node)
