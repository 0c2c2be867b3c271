"""Replay of a recorded trace at a multiple of its speed."""

import math
from dataclasses import replace

import numpy as np

from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace, named_nodes
from anonymizer.errors import InputError, SettingsError
from simulator.reports import Reports

_LOOP_GAP_S = 1.0
"""Pause between the last row of a round and the first of the next, in time of the trace."""


class ReplaySource:
    """A source of the rows of a trace, `speed` times as fast as they were recorded.

    Parameters
    ----------
    trace
        A trace of coordinates (see `locate_nodes`).
    speed
        Seconds of the trace in a second of playing.
    skip_s
        Seconds to skip at the beginning, in time of the trace.
    duration_s
        When to end, in seconds of playing; None: at the end of the trace.
    recorded_time
        Whether to state the recorded times instead of those of publishing.
    loop
        Whether to start again at the end.

    Raises
    ------
    InputError
        If no row is left to play.
    SettingsError
        If recorded times would run backwards in a loop.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        speed: float,
        skip_s: float = 0.0,
        duration_s: float | None = None,
        recorded_time: bool = False,
        loop: bool = False,
    ) -> None:
        if loop and recorded_time:
            raise SettingsError("--loop: needs --time now: recorded times would run backwards")
        skipped = int(np.searchsorted(trace.ts, trace.ts[:1] + skip_s)[0]) if trace.n_rows else 0
        if skipped == trace.n_rows:
            raise InputError("the trace has no usable rows" + (" after --from" if skip_s else ""))
        self.device_id = trace.device_id
        self._device = trace.device_of[skipped:]
        self._lat, self._lon, self._ts = (
            trace.lat[skipped:],
            trace.lon[skipped:],
            trace.ts[skipped:],
        )
        self._due_s = (self._ts - self._ts[0]) / speed
        self._round_s = float(self._due_s[-1]) + _LOOP_GAP_S / speed
        self._recorded_time = recorded_time
        self._first = 0
        end_s = math.inf if loop else float(self._due_s[-1])
        if duration_s is not None:
            end_s = min(end_s, duration_s)
        self.n_total = None if math.isinf(end_s) else self._n_due(end_s)
        if self.n_total is None:
            self.rate_per_s = len(self._ts) / self._round_s
        else:
            self.rate_per_s = self.n_total / max(end_s, _LOOP_GAP_S / speed)

    @property
    def next_due_s(self) -> float:
        """When the next report is due, in seconds of playing; infinite at the end."""
        if self.n_total is not None and self._first >= self.n_total:
            return math.inf
        n_rounds, row = divmod(self._first, len(self._ts))
        return float(n_rounds * self._round_s + self._due_s[row])

    def take(self, until_s: float, *, limit: int) -> Reports:
        """Return the reports due up to a moment, at most the oldest `limit`."""
        stop = min(self._n_due(until_s), self._first + limit)
        if self.n_total is not None:
            stop = min(stop, self.n_total)
        number = np.arange(self._first, max(stop, self._first))
        self._first += len(number)
        n_rounds, row = np.divmod(number, len(self._ts))
        return Reports(
            device=self._device[row],
            due_s=n_rounds * self._round_s + self._due_s[row],
            lat=self._lat[row],
            lon=self._lon[row],
            ts=self._ts[row] if self._recorded_time else None,
        )

    def _n_due(self, until_s: float) -> int:
        """Return the number of reports due up to a moment in an endless loop."""
        n_rounds, rest_s = divmod(until_s, self._round_s)
        return int(n_rounds) * len(self._ts) + int(
            np.searchsorted(self._due_s, rest_s, side="right")
        )


def locate_nodes(trace: Trace, network: RoadNetwork) -> Trace:
    """Return a trace of nodes as a trace of coordinates; others are returned unchanged.

    Raises
    ------
    InputError
        If the network has no coordinates, or lacks a node that a row names.
    """
    if trace.node is None:
        return trace
    if not network.has_coordinates:
        raise InputError("the network has no coordinates: its nodes cannot be replayed")
    node = named_nodes(trace, network)
    return replace(trace, lat=network.lat[node], lon=network.lon[node], node=None)
