"""Device-owned privacy zones in the flow: what devices state, held in memory alone.

Their demands for more company or larger places, and that they take no part, are kept alike.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.demands import Demand
from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.algorithms.positions.protection import IN_ZONE, Circle, OwnedZones, Polygon, Zones
from anonymizer.codecs.device_zones import StatedZones, decode
from anonymizer.domain.arrays import BoolArray, Int32Array, distinct
from anonymizer.domain.device_ids import id_of
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.pipeline.positions.tick.zone_shares import ZoneHolder, ZoneShares
from anonymizer.settings.base import id_levels

if TYPE_CHECKING:
    from anonymizer.settings import DeviceZoneSettings

_UNKNOWN = -2
"""Owner of a slot whose device has not been looked up."""
_NO_ZONES = -1
_HIDDEN = -3
"""It takes no part, or its zones are not known, because there is no room for them."""
_NAMES_PER_PLACE = 20
"""So many times `most_devices` are remembered by name alone."""
_NO_DEMAND = Demand(0, 0.0)
ZONES_BYTES = 8192
"""Largest message: as large as that of 20 polygons of 16 corners."""
_MAX_ZONES = 20
"""Of one device: a home, a workplace and some more. Each costs time in every tick."""
_MOST_RECENT = 256
"""Devices that may restate their zones before all zones are compiled anew."""


_WAIT_S = 60.0
"""How long who takes part again waits for the second time; twice as long each further time."""
_REMEMBERED_S = 86_400.0
"""So long after it took part again, a device is as if for the first time; nobody waits longer."""


class _Statement(NamedTuple):
    """What is said about the zones of a device; see `DeviceZones.put`."""

    device: str
    payload: bytes
    by: str
    beside: Collection[str]
    again: bool


class _Wishes(NamedTuple):
    """What a device has stated, as far as it can be met; None in place of it: it takes no part."""

    zones: Zones
    demand: Demand
    trips: bool
    """Whether its trips may be told."""


_NOTHING = _Wishes(Zones(), _NO_DEMAND, trips=True)


class _Return(NamedTuple):
    """The last time that a device took part again, and until when it waits, unix seconds."""

    n: int
    at_s: float
    until_s: float


class DeviceZones:
    """The zones that devices have stated, and the positions inside them.

    `put` may be called in another thread than the other methods.

    `most_k` is the largest k that a device may demand; 0: nobody can meet demands, so whoever has
    one takes no part. `demands` are by the keys of devices.

    Notes
    -----
    Who takes no part and then does again waits, longer each time: what others may lose by it, the
    device loses many times over. As many devices are remembered for that as may have zones.

    A tick costs O(positions), and more only for the positions of devices with zones. The zones of
    devices that stated them lately are compiled apart from the others, so that a device cannot slow
    ticks down by restating its own: 10,000 devices with zones, of 100,000 that report, take 2 ms.
    """

    def __init__(
        self,
        settings: "DeviceZoneSettings",
        devices: DeviceTable,
        *,
        most_devices: int,
        most_k: int = 0,
    ) -> None:
        self._most_devices = most_devices
        self._most_k = most_k
        self._levels = id_levels(settings.filter_topic)
        self._devices = devices
        self._arrived: deque[_Statement] = deque()
        self._said_of: dict[int, dict[str, bytes]] = {}
        """The last payload of each who passes statements on, by the keys of devices."""
        self._zones_of: dict[int, Zones] = {}
        """What follows from these, for those who take part."""
        self._absent: set[int] = set()
        """Those who take no part."""
        self._refused: set[int] = set()
        """Those of them who have not said so."""
        self._withdrawn: set[int] = set()
        """Those who have said so, or lost their room, since `withdrawn` was called."""
        self.demands: dict[int, Demand] = {}
        self.n_put = self.n_applied = 0
        """Statements that have arrived, and those that ticks have applied."""
        self._now = -np.inf
        self._returned: dict[int, _Return] = {}
        """Those who took part again, the last of them last."""
        self._waiting: list[tuple[float, ZoneHolder]] = []
        """A heap of when they may, at the earliest."""
        self._without_trips: set[int] = set()
        """Those whose trips are not to be told."""
        self._places = ZoneShares(most_devices)
        self._left_out = ZoneShares(_NAMES_PER_PLACE * most_devices)
        """Devices for whose zones there is no room: nothing is published about them."""
        self._shut_out: set[int] = set()
        """Publishers of more names than are kept; all their devices are hidden."""
        self._shut_out_lately = False
        self._owner_of: dict[int, int] = {}
        self._owned = self._recently_owned = OwnedZones()
        self._n_owned = 0
        self._recent: set[int] = set()
        self._owner_of_slot: Int32Array = np.zeros(0, np.int32)
        # Compiles the kernel, which the first statement would else do in the middle of a tick.
        self._owned.contains(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    @property
    def n_left_out(self) -> int:
        """Devices hidden for lack of room for their zones; a publisher shut out counts as one."""
        return len(self._left_out) + len(self._shut_out)

    @property
    def n_refused(self) -> int:
        """Devices hidden because their statements cannot be used, or because they must wait."""
        return len(self._refused)

    @property
    def room_again(self) -> bool:
        """Whether there is room by now for devices that were left out, should they state again."""
        return len(self._left_out) > 0 and len(self._places) < self._most_devices

    def put(
        self,
        deliveries: Iterable[Delivery],
        *,
        by: str = "",
        beside: Collection[str] = (),
        again: bool = False,
    ) -> None:
        """Take in messages on the topic of the settings; the next tick applies them.

        What those `beside` have last passed on about the same device is also true: one of them may
        be behind the others. What anybody else has passed on about it is forgotten. `again`: the
        messages may have arrived before, and only those of devices left out count.
        """
        for delivery in deliveries:
            device, payload = _said_in(delivery, self._levels)
            self._arrived.append(_Statement(device, payload, by, beside, again))
            self.n_put += 1

    def takes_no_part(self, deliveries: Iterable[Delivery]) -> dict[str, bool]:
        """Return whether each device takes no part by what it says last; in any thread."""
        return takes_no_part(deliveries, self._levels)

    def withdrawn(self, *, now: float) -> tuple[Int32Array, KeyArray]:
        """Apply what has arrived; return the devices that say that they take no part.

        And those for whose zones there is no room any more. The slots of those that have one, and
        the keys of all: of one that has been silent for long there are still counts, trips and
        stops. `now`: unix seconds, at which the tick closes.
        """
        self._now = now
        self._apply()
        keys = np.fromiter(self._withdrawn, np.uint64, len(self._withdrawn))
        found = (self._devices.find(device) for device in self._withdrawn)
        slots: Int32Array = np.array([slot for slot in found if slot != NO_SLOT], np.int32)
        self._withdrawn.clear()
        return slots, keys

    def keep_out(self, positions: Positions, node: Int32Array) -> tuple[Int32Array, BoolArray]:
        """Return the node of each position, `IN_ZONE` inside a zone of its device's own.

        And which positions are of devices about which nothing is published anywhere, shape (n,).
        """
        self._apply()
        if not self._said_of and not self.n_left_out:
            return node, np.zeros(len(node), bool)
        owner = self._owners(positions.slot)
        absent = owner == _HIDDEN
        if self._overflowed:
            absent |= owner == _NO_ZONES
        hidden = absent.copy()
        for zones, first, end in (
            (self._owned, 0, self._n_owned),
            (self._recently_owned, self._n_owned, np.iinfo(np.int32).max),
        ):
            own = np.flatnonzero((owner >= first) & (owner < end))
            hidden[own] = zones.contains(
                owner[own].astype(np.int64) - first, positions.lat[own], positions.lon[own]
            )
        return np.where(hidden, np.int32(IN_ZONE), node), absent

    @property
    def silent(self) -> Collection[int]:
        """The keys of devices about which nothing is published, whenever it was reported."""
        if not self.n_left_out:
            return self._absent
        return self._absent.union(held.device for held in self._left_out.all())

    def shut_out(self) -> bool:
        """Return whether a publisher was shut out since this was asked: once a tick, by the intake.

        Which devices were its own is not known of those that have left.
        """
        lately, self._shut_out_lately = self._shut_out_lately, False
        return lately

    @property
    def without_trips(self) -> Collection[int]:
        """The keys of devices whose trips are not published, not even those that have ended."""
        silent = self.silent
        return self._without_trips.union(silent) if silent else self._without_trips

    def no_trips(self, slot: Int32Array) -> BoolArray:
        """Return which devices asked that only their trips not be told, shape (n,)."""
        if not self._without_trips:
            return np.zeros(len(slot), np.bool_)
        asked = np.fromiter(self._without_trips, np.uint64, len(self._without_trips))
        return np.isin(self._devices.keys(slot), asked)

    def forget(self, slots: Int32Array) -> None:
        """Forget which devices these slots belonged to: they may pass to others."""
        self._owner_of_slot[slots[slots < len(self._owner_of_slot)]] = _UNKNOWN

    def _apply(self) -> None:
        """Apply the statements that have arrived, in their order."""
        ripe = bool(self._waiting) and self._waiting[0][0] <= self._now
        if not (self._arrived or ripe):
            return
        while self._waiting and self._waiting[0][0] <= self._now:
            held = heappop(self._waiting)[1]
            if self._waits(held.device):
                heappush(self._waiting, (self._returned[held.device].until_s, held))
            elif held.device in self._said_of:
                self._take(held, self._said_of[held.device])
        while self._arrived:
            name, payload, by, beside, again = self._arrived.popleft()
            self.n_applied += 1
            held = ZoneHolder(self._devices.publisher(name), self._devices.key(name))
            if held.publisher in self._shut_out or (again and not self._left_out.has(held)):
                continue
            device = held.device
            before = self._said_of.get(device, {})
            said = {each: before[each] for each in before if each == by or each in beside}
            said[by] = payload
            if said != before:
                self._take(held, said)
        if len(self._recent) > _MOST_RECENT:
            self._compile_all()
        else:
            self._compile_recent()

    def _take(self, held: ZoneHolder, said: dict[str, bytes]) -> None:
        """Replace what was stated about a device before."""
        self._recent.add(held.device)
        stated = [self._stated(payload) for payload in dict.fromkeys(said.values())]
        withdrew = any(map(_withdraws, self._said_of.get(held.device, {}).values()))
        withdraws = any(map(_withdraws, said.values()))
        if withdrew and not withdraws:
            self._return(held)
        if all(each is _NOTHING for each in stated) and not self._waits(held.device):
            self._drop(held)
            return
        without = self._places.take(held)
        if without != held:
            self._left_out.leave(held)
            self._heed(held.device, stated, withdraws=withdraws)
            self._said_of[held.device] = said
        if withdraws and not withdrew:
            self._withdrawn.add(held.device)
        if without is not None:
            if not self._left_out.has(without):
                self._withdrawn.add(without.device)
            self._drop(without)
            self._leave_out(without)

    def _return(self, held: ZoneHolder) -> None:
        """Let a device that takes part again wait, the longer the more often it has done so."""
        last = self._returned.pop(held.device, None)
        n = last.n + 1 if last and self._now < last.at_s + _REMEMBERED_S else 1
        until_s = self._now + min(_WAIT_S * (2.0 ** min(n - 1, 32) - 1), _REMEMBERED_S)
        if until_s > self._now and (last is None or last.until_s <= self._now):
            heappush(self._waiting, (until_s, held))  # else it is there already
        self._returned[held.device] = _Return(n, self._now, until_s)
        if len(self._returned) > self._most_devices:
            del self._returned[next(iter(self._returned))]

    def _waits(self, device: int) -> bool:
        found = self._returned.get(device)
        return found is not None and self._now < found.until_s

    def _heed(self, device: int, stated: Sequence[_Wishes | None], *, withdraws: bool) -> None:
        """Take in what a device wishes; of several statements, all hold."""
        self._forget(device)
        wishes = [each for each in stated if each is not None]
        if len(wishes) < len(stated) or self._waits(device):
            self._absent.add(device)
            if not withdraws:
                self._refused.add(device)
            return
        zones = [each.zones for each in wishes if len(each.zones)]
        if zones:
            self._zones_of[device] = Zones.joined(zones)
        demand = Demand(
            max(each.demand.k for each in wishes), max(each.demand.road_m for each in wishes)
        )
        if demand != _NO_DEMAND:
            self.demands[device] = demand
        if not all(each.trips for each in wishes):
            self._without_trips.add(device)

    def _forget(self, device: int) -> None:
        self._zones_of.pop(device, None)
        self._absent.discard(device)
        self._refused.discard(device)
        self._without_trips.discard(device)
        self.demands.pop(device, None)

    def _drop(self, held: ZoneHolder) -> None:
        """Forget a device: it has withdrawn its zones, or its place is another's now."""
        self._places.leave(held)
        self._left_out.leave(held)
        self._forget(held.device)
        self._said_of.pop(held.device, None)
        self._recent.add(held.device)

    def _leave_out(self, held: ZoneHolder) -> None:
        """Hide a device by name; with too many names, all devices of the publisher with most."""
        without = None if self._overflowed else self._left_out.take(held)
        if without is None:
            return
        publisher = without.publisher
        self._shut_out.add(publisher)
        self._shut_out_lately = True
        self._withdrawn.update(each.device for each in self._places.of(publisher))
        for each in (*self._left_out.of(publisher), *self._places.of(publisher)):
            self._drop(each)
        self._owner_of_slot[:] = _UNKNOWN

    @property
    def _overflowed(self) -> bool:
        """Whether more publishers are shut out than are kept: any device may be one of theirs.

        It takes a broker that lets users make publishers up.
        """
        return len(self._shut_out) > self._most_devices

    def state(self) -> dict[str, Any]:
        """Return what was said. It says where devices want privacy: store it like raw positions."""
        return {
            "said": [
                [held.publisher, held.device, list(self._said_of[held.device].items())]
                for held in self._places.all()
            ],
            "left_out": [list(held) for held in self._left_out.all()],
            "shut_out": sorted(self._shut_out),
            "returned": [[device, *each] for device, each in self._returned.items()],
            "now": self._now,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; between two ticks."""
        self._said_of, self._zones_of, self.demands = {}, {}, {}
        self._absent, self._refused, self._without_trips = set(), set(), set()
        self._places = ZoneShares(self._most_devices)
        self._left_out = ZoneShares(_NAMES_PER_PLACE * self._most_devices)
        self._shut_out = set(state["shut_out"])
        self._now = state["now"]
        self._returned = {device: _Return(*each) for device, *each in state["returned"]}
        for publisher, device in state["left_out"]:
            self._leave_out(ZoneHolder(publisher, device))
        for publisher, device, said in state["said"]:  # the settings may by now allow fewer
            self._take(ZoneHolder(publisher, device), dict(said))
        self._waiting = [
            (self._returned[each.device].until_s, each)
            for each in self._places.all()
            if self._waits(each.device)
        ]
        heapify(self._waiting)
        self._withdrawn.clear()  # nothing is held of them by now
        self._shut_out_lately = False
        self._compile_all()

    def _compile_all(self) -> None:
        self._owner_of = {device: owner for owner, device in enumerate(self._zones_of)}
        self._owned = OwnedZones(list(self._zones_of.values()))
        self._n_owned = len(self._zones_of)
        self._recently_owned = OwnedZones()
        self._recent.clear()
        self._owner_of_slot[:] = _UNKNOWN

    def _compile_recent(self) -> None:
        """Compile the zones of devices that have restated them; their older ones are not used."""
        for device in self._recent:
            self._owner_of.pop(device, None)
        owners = sorted(self._recent & self._zones_of.keys())
        self._recently_owned = OwnedZones([self._zones_of[device] for device in owners])
        self._owner_of.update(zip(owners, range(self._n_owned, 2**31), strict=False))
        slots = np.array([self._devices.find(device) for device in self._recent], np.int32)
        self.forget(slots[slots != NO_SLOT])

    def _stated(self, payload: bytes) -> _Wishes | None:
        """Return what a message asks for; None if it is unusable or cannot be met."""
        if not payload:
            return _NOTHING
        stated = decode(payload)
        if isinstance(stated, Outcome):
            return None
        if stated.everywhere or len(stated.circles) + len(stated.polygons) > _MAX_ZONES:
            return None
        demand = Demand(stated.k, stated.road_m)
        if demand != _NO_DEMAND and (not self._most_k or demand.k > self._most_k):
            return None
        try:
            zones = _zones_of(stated)
        except ValueError:
            return None
        wishes = _Wishes(zones, demand, stated.trips)
        return wishes if len(zones) or demand != _NO_DEMAND or not stated.trips else _NOTHING

    def _owner(self, publisher: int, device: int) -> int:
        if publisher in self._shut_out or self._left_out.has(ZoneHolder(publisher, device)):
            return _HIDDEN
        if device in self._absent:
            return _HIDDEN
        return self._owner_of.get(device, _NO_ZONES)

    def _owners(self, slot: Int32Array) -> Int32Array:
        """Return the owner of each slot, negative if its device has no zones, same shape."""
        more = int(slot.max(initial=-1)) + 1 - len(self._owner_of_slot)
        if more > 0:
            room = np.full(max(more, len(self._owner_of_slot)), _UNKNOWN, np.int32)
            self._owner_of_slot = np.concatenate([self._owner_of_slot, room])
        unknown = distinct(slot[self._owner_of_slot[slot] == _UNKNOWN])
        keys = self._devices.keys(unknown).tolist()
        publishers = self._devices.publishers(unknown).tolist()
        found = [self._owner(*each) for each in zip(publishers, keys, strict=True)]
        self._owner_of_slot[unknown] = np.array(found, np.int32)
        owner: Int32Array = self._owner_of_slot[slot]
        return owner


def takes_no_part(deliveries: Iterable[Delivery], levels: Sequence[int]) -> dict[str, bool]:
    """Return whether each device takes no part by what it says last.

    `levels`: of their topics, from which the id of the device comes.
    """
    said = (_said_in(each, levels) for each in deliveries)
    return {device: _withdraws(payload) for device, payload in said}


def _said_in(delivery: Delivery, levels: Sequence[int]) -> tuple[str, bytes]:
    """Return the device of a statement, and what it says."""
    of_topic = delivery.topic.split("/")
    device = id_of(of_topic[i] for i in levels)
    return device, b"?" if len(delivery.payload) > ZONES_BYTES else delivery.payload


def _withdraws(payload: bytes) -> bool:
    """Return whether a device says that it takes no part; an unreadable message does not."""
    stated = decode(payload)
    return isinstance(stated, StatedZones) and stated.everywhere


def _zones_of(stated: StatedZones) -> Zones:
    return Zones(
        circles=[Circle(each.lat, each.lon, each.radius_m) for each in stated.circles],
        polygons=[Polygon(corners) for corners in stated.polygons],
    )
