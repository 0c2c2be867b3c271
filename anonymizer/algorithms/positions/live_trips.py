"""Trips of devices as they report: each is told when it is known to have ended.

The definitions are those of `recorded_trips`, where the future is known: a trip begins when a
device appears, reappears after a silence or moves on after dwelling, and ends where the next
silence or dwelling begins. So a stop of minutes in the middle is an end.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.protection.delay_buffer import apart
from anonymizer.domain.arrays import FloatArray, Int32Array, RecordArray, UInt8Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.protection import TripRule

_MOST_NODES = 10_000
"""Of a route. What passes more of them between two stops is no trip."""
_BEGINS, _BEGINS_AT_LAST, _STAYS, _CHANGED, _ENDED, _ENDED_AT_STAY, _MOVED = (
    1 << bit for bit in range(7)
)
_STATE = np.dtype(
    [
        # The newest report.
        ("ts", np.float64),
        ("node", np.int32),
        # The first report of the current stay.
        ("stay_ts", np.float64),
        ("stay_lat", np.float64),
        ("stay_lon", np.float64),
        ("stay_node", np.int32),
        # Where and when the trip began.
        ("start_ts", np.float64),
        ("start_node", np.int32),
        # Whether the device has left that place, so that there is a trip.
        ("moved", np.bool_),
        # Whether it may have begun before anybody listened.
        ("cut", np.bool_),
    ]
)
_UNKNOWN = np.zeros(1, _STATE)[0]
_UNKNOWN["ts"] = -np.inf
_END = np.dtype([(name, np.float64) for name in ("start_s", "end_s", "origin", "destination")])


@discreet
class EndedTrip(NamedTuple):
    """A trip that has ended.

    `row`: of its device; `start_s`, `end_s`: unix seconds; `origin`, `destination`: nodes, negative
    off the graph and in privacy zones; `route`: nodes of its reports, each once where it repeats,
    negative likewise, shape (n,).
    """

    row: int
    start_s: float
    end_s: float
    origin: int
    destination: int
    route: Int32Array


class LiveTrips:
    """Follows devices by the row of each, a small integer.

    A trip that may have begun before `begins_s` (unix seconds since when reports are heard) is not
    told. Without `keeps_routes` routes are empty, and trips may be of any number of nodes.

    Notes
    -----
    A report costs a few comparisons in a kernel. What changes its node, or is 50 m from the last
    such report, costs a microsecond in Python too, if routes are kept. A device that moves then
    holds the nodes of its trip in memory, 10,000 at most; one that stays holds one.
    """

    def __init__(self, rule: TripRule, *, begins_s: float, keeps_routes: bool = True) -> None:
        self._rule, self._begins_s, self._keeps_routes = rule, begins_s, keeps_routes
        self._state = np.zeros(0, _STATE)
        self._route_of: dict[int, list[int]] = {}
        self._stay_of: dict[int, int] = {}
        """How many nodes the route had when the stay began."""

    def tick(
        self, row: Int32Array, ts: FloatArray, lat: FloatArray, lon: FloatArray, node: Int32Array
    ) -> list[EndedTrip]:
        """Take in reports; return the trips that have ended by them.

        Row of the device, unix seconds, WGS84 degrees and node (negative: none) of each report,
        shape (n,), in any order. One that is no newer than the last of its device is left out.
        """
        order = np.lexsort((ts, row))
        row, ts, node = row[order], ts[order], node[order]
        self._make_room(int(row.max(initial=-1)) + 1)
        action, end = np.zeros(len(row), np.uint8), np.zeros(len(row), _END)
        rule = self._rule
        _advance(
            self._state,
            *(row, ts, lat[order], lon[order], node),
            *(rule.gap_s, rule.dwell_m, rule.dwell_s, self._begins_s),
            action,
            end,
        )
        if not self._keeps_routes:
            over = np.flatnonzero(action & np.uint8(_ENDED | _ENDED_AT_STAY))
            return [_trip(int(row[i]), [], *end[i].tolist()) for i in over]
        ended: list[EndedTrip] = []
        for i in np.flatnonzero(action & ~np.uint8(_MOVED)).tolist():
            ended += self._follow(int(row[i]), int(node[i]), int(action[i]), end[i])
        return ended

    def silent(self, before_s: float) -> tuple[list[EndedTrip], Int32Array]:
        """Forget who has not reported since a time; return their trips and their rows. O(rows)."""
        state = self._state
        rows = np.flatnonzero((state["ts"] < before_s) & (state["ts"] > -np.inf))
        ended = [
            _trip(each, self._route_of.get(each, []), *_ends_of(state[each]))
            for each in rows[state["moved"][rows] & ~state["cut"][rows]].tolist()
            if len(self._route_of.get(each, ())) <= _MOST_NODES
        ]
        gone = rows.astype(np.int32)
        self.forget(gone)
        return ended, gone

    def forget(self, rows: Int32Array) -> None:
        """Forget the devices in these rows, which may pass to others; their trips are not told."""
        self._state[rows] = _UNKNOWN
        for each in rows.tolist():
            self._route_of.pop(each, None)
            self._stay_of.pop(each, None)

    def _follow(self, row: int, node: int, action: int, end: np.void) -> list[EndedTrip]:
        """Take a report into the route of its device; return the trip that it ended, if any."""
        route, ended = self._route_of.get(row, []), []
        if action & (_ENDED | _ENDED_AT_STAY) and len(route) <= _MOST_NODES:
            nodes = route[: self._stay_of[row]] if action & _ENDED_AT_STAY else route
            ended.append(_trip(row, nodes, *end.tolist()))
        if action & _BEGINS_AT_LAST:
            route = route[-1:]
        elif action & _BEGINS or not action & _MOVED:
            route = []
        if not route or (route[-1] != node and len(route) <= _MOST_NODES):
            route.append(node)
        if action & (_BEGINS | _STAYS):
            self._stay_of[row] = len(route)
        self._route_of[row] = route
        return ended

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        rows = list(self._route_of)
        return {
            "begins_s": self._begins_s,
            "state": self._state.view(np.uint8),
            "row": np.array(rows, np.int32),
            "stay": np.array([self._stay_of[row] for row in rows], np.int32),
            "length": np.array([len(self._route_of[row]) for row in rows], np.int64),
            "node": np.array([node for row in rows for node in self._route_of[row]], np.int32),
        }

    @classmethod
    def restored(cls, rule: TripRule, state: dict[str, Any], *, keeps_routes: bool = True) -> Self:
        """Return what goes on from a state."""
        found = cls(rule, begins_s=state["begins_s"], keeps_routes=keeps_routes)
        found._state = state["state"].view(_STATE)
        rows = state["row"].tolist()
        found._stay_of = dict(zip(rows, state["stay"].tolist(), strict=True))
        routes = np.split(state["node"], np.cumsum(state["length"])[:-1]) if rows else []
        found._route_of = {row: each.tolist() for row, each in zip(rows, routes, strict=True)}
        return found

    def _make_room(self, n_rows: int) -> None:
        have = len(self._state)
        if n_rows > have:
            more = max(n_rows, 2 * have) - have
            self._state = np.concatenate([self._state, np.full(more, _UNKNOWN, _STATE)])


def _ends_of(state: np.void) -> tuple[float, float, float, float]:
    return state["start_ts"], state["ts"], state["start_node"], state["node"]


def _trip(
    row: int, nodes: list[int], start_s: float, end_s: float, origin: float, destination: float
) -> EndedTrip:
    route = np.array(nodes, np.int32)
    return EndedTrip(row, float(start_s), float(end_s), int(origin), int(destination), route)


@kernel
def _advance(
    state: RecordArray,
    row: Int32Array,
    ts: FloatArray,
    lat: FloatArray,
    lon: FloatArray,
    node: Int32Array,
    gap_s: float,
    dwell_m: float,
    dwell_s: float,
    begins_s: float,
    action: UInt8Array,
    end: RecordArray,
) -> None:
    """Move devices by reports sorted by row and time; say what each report means for its trip."""
    beyond_m = np.nextafter(dwell_m, np.inf)
    for i in range(len(row)):
        s = state[row[i]]
        if ts[i] <= s["ts"]:
            continue
        new = s["ts"] == -np.inf
        did = _CHANGED if new or node[i] != s["node"] else 0
        if new or ts[i] - s["ts"] > gap_s:
            if not new and s["moved"] and not s["cut"]:
                did |= _ENDED
                end[i]["start_s"], end[i]["origin"] = s["start_ts"], s["start_node"]
                end[i]["end_s"], end[i]["destination"] = s["ts"], s["node"]
            did |= _BEGINS
            s["start_ts"], s["start_node"] = ts[i], node[i]
            s["moved"], s["cut"] = False, new and ts[i] - begins_s <= gap_s
        elif apart(s["stay_lat"], s["stay_lon"], lat[i], lon[i], beyond_m):
            if not s["moved"] and s["ts"] - s["stay_ts"] >= dwell_s:
                did |= _BEGINS_AT_LAST
                s["start_ts"], s["start_node"] = s["ts"], s["node"]
                s["cut"] = False
            did |= _STAYS
            s["moved"] = True
        elif s["moved"] and ts[i] - s["stay_ts"] >= dwell_s:
            if not s["cut"]:
                did |= _ENDED_AT_STAY
                end[i]["start_s"], end[i]["origin"] = s["start_ts"], s["start_node"]
                end[i]["end_s"], end[i]["destination"] = s["stay_ts"], s["stay_node"]
            s["moved"] = False
            did |= _CHANGED  # the route is over
        if did & (_BEGINS | _STAYS):
            s["stay_ts"], s["stay_node"] = ts[i], node[i]
            s["stay_lat"], s["stay_lon"] = lat[i], lon[i]
        s["ts"], s["node"] = ts[i], node[i]
        action[i] = did | _MOVED if did and s["moved"] else did
