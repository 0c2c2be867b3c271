"""A toy of the gateway: two vehicles, one group, one tick, from bytes to a message.

It runs (`python docs/toy_gateway.py`) and needs nothing but Python. Each part stands for files of
`anonymizer/` that do the same for a million devices, over arrays, and says what the toy leaves out.
"""

import json
import math
from collections import Counter, deque
from dataclasses import dataclass, field

# The road network: junctions with their places, and their neighbours (`domain/network.py`).
# The toy has six junctions along one road, 100 m apart.
LAT = [60.0000, 60.0009, 60.0018, 60.0027, 60.0036, 60.0045]
NEIGHBOURS = [[1], [0, 2], [1, 3], [2, 4], [3, 5], [4]]
LON, SNAP_LIMIT_M, TIME_TO_LIVE_S = 24.0, 60.0, 60.0


class Refused(Exception):  # noqa: N818  it is no fault of the program
    """A message that cannot be used; the text is its outcome. No outcome tells a value of it."""


# Step 1, decode: bytes in, a fix out, or the reason why there is none (`codecs/native.py`,
# `pipeline/positions/decode/`). The topic names the device: a broker can enforce who may publish to
# it, and nobody can enforce a payload.


@dataclass(frozen=True)
class Fix:
    """Where a device says that it is, and when."""

    device: str
    ts: float
    lat: float
    lon: float


def decode(topic: str, payload: bytes) -> Fix:
    """Return what a message says."""
    try:
        said = json.loads(payload)
        fix = Fix(topic.removeprefix("positions/"), *(float(said[x]) for x in ("ts", "lat", "lon")))
    except (ValueError, KeyError, TypeError):
        raise Refused("invalid/schema") from None
    if not all(map(math.isfinite, (fix.ts, fix.lat, fix.lon))):
        raise Refused("invalid/schema")
    return fix


# Step 2, locate: the junction that a position belongs to (`algorithms/positions/map_matching.py`).
# The real one finds the nearest road, also by heading, and refuses jumps (`trust.py`).


def locate(fix: Fix) -> int:
    """Return the junction of a fix."""

    def metres(junction: int) -> float:
        north = (fix.lat - LAT[junction]) * 111_195
        return math.hypot(north, (fix.lon - LON) * 111_195 * math.cos(math.radians(fix.lat)))

    nearest = min(range(len(LAT)), key=metres)
    if metres(nearest) > SNAP_LIMIT_M:
        raise Refused("suppressed/off_graph")
    return nearest


# Step 3, the density map: where each device was last, and nothing that adds up messages: repeated,
# late and reordered messages change no count (`algorithms/positions/density.py`).


@dataclass
class Density:
    """The newest position of each device."""

    version_of: dict[str, float] = field(default_factory=dict)
    junction_of: dict[str, int] = field(default_factory=dict)

    def advance(self, fix: Fix, junction: int) -> None:
        """Move a device, unless this is old news."""
        before = self.version_of.get(fix.device, -math.inf)
        if fix.ts <= before:
            raise Refused("duplicate" if fix.ts == before else "late")
        self.version_of[fix.device], self.junction_of[fix.device] = fix.ts, junction

    def expire(self, now: float) -> None:
        """Forget devices that have been silent for long."""
        for device, ts in list(self.version_of.items()):
            if ts < now - TIME_TO_LIVE_S:
                del self.version_of[device], self.junction_of[device]

    def near(self, junction: int) -> int:
        """Return how many devices are at a junction and at its neighbours: ADKA's density."""
        at = Counter(self.junction_of.values())
        return at[junction] + sum(at[v] for v in NEIGHBOURS[junction])


# Step 4, k: few devices near, many must share a region (`algorithms/positions/adka.py`). As
# published, k is 10, 5 or 2; the toy has two vehicles, so it is content with two.


def k_for(density: int, *, most: int = 2) -> int:
    """Return how many devices must share a region where this many are near."""
    return min(10 if density < 4 else 5 if density < 10 else 2, most)


# Step 5, groups and their region: the devices of a group publish the same region, so that nobody
# can tell for which of them it was made (`algorithms/positions/cloaks/session.py`). The real groups
# live for a minute, publish when their turn comes, and consist of places that several devices
# share. The toy takes whoever is met along the road.


@dataclass(frozen=True)
class Group:
    """Devices that publish one region."""

    k: int
    members: tuple[str, ...]
    region: tuple[int, ...]


def group_from(root: int, density: Density) -> Group:
    """Collect devices around a junction, breadth first, until there are k."""
    k = k_for(density.near(root))
    seen, queue = [root], deque([root])
    while sum(at in seen for at in density.junction_of.values()) < k:
        if not queue:
            raise Refused("suppressed/too_few_devices")
        for v in NEIGHBOURS[queue.popleft()]:
            if v not in seen:
                seen.append(v)
                queue.append(v)
    members = sorted(device for device, at in density.junction_of.items() if at in seen)
    return Group(k, tuple(members), tuple(sorted(seen)))  # sorted: growth began at the root


# Step 6, verify: recount from the positions alone, with code that shares nothing with step 5
# (`algorithms/positions/verification.py`). What fails is suppressed, whole.


def verify(group: Group, density: Density) -> None:
    """Refuse a group that does not keep its promise."""
    inside = {d for d, at in density.junction_of.items() if at in set(group.region)}
    if len(inside) < group.k or not set(group.members) <= inside:
        raise Refused("suppressed/unverified")


# Step 7, publish: pseudonyms in place of names, and in an order that tells nothing
# (`pipeline/positions/out/`). The real ones are drawn from a secret and end with their group.


def message(group: Group, *, now: float, pseudonym_of: dict[str, str]) -> bytes:
    """Return what subscribers read."""
    return json.dumps(
        {
            "time": now,
            "k": group.k,
            "region": group.region,
            "pseudonyms": sorted(pseudonym_of[device] for device in group.members),
        }
    ).encode()


# One tick: everything that arrived is settled exactly once (`pipeline/positions/tick/flow.py`,
# `pipeline/ledger.py`): received = published + suppressed + invalid + late + duplicate.


def tick(
    arrived: list[tuple[str, bytes]], density: Density, *, now: float, pseudonym_of: dict[str, str]
) -> tuple[list[bytes], Counter[str]]:
    """Return the messages of a tick, and how many arrivals had each outcome."""
    outcomes: Counter[str] = Counter()
    reported: dict[str, int] = {}
    for topic, payload in arrived:
        try:
            fix = decode(topic, payload)
            junction = locate(fix)
            density.advance(fix, junction)
            if fix.device in reported:
                outcomes["suppressed/superseded"] += 1  # only the newest counts
            reported[fix.device] = junction
        except Refused as refused:
            outcomes[str(refused)] += 1
    density.expire(now)
    messages, published = [], set[str]()
    for device, junction in reported.items():
        try:
            if device not in published:
                group = group_from(junction, density)
                verify(group, density)
                messages.append(message(group, now=now, pseudonym_of=pseudonym_of))
                published.update(group.members)
            outcomes["published"] += 1
        except Refused as refused:
            outcomes[str(refused)] += 1
    if outcomes.total() != len(arrived):
        raise RuntimeError("something is neither published nor accounted for")
    return messages, outcomes


def main() -> None:
    """Show a tick."""
    arrived = [
        ("positions/veh-17", b'{"ts": 100.0, "lat": 60.0009, "lon": 24.0}'),
        ("positions/veh-18", b'{"ts": 100.1, "lat": 60.0027, "lon": 24.0001}'),
        ("positions/veh-17", b'{"ts": 100.0, "lat": 60.0009, "lon": 24.0}'),  # sent twice
        ("positions/veh-19", b'{"ts": 100.2, "lat": "?"}'),  # costs itself alone
    ]
    pseudonym_of = {"veh-17": "q7Zd", "veh-18": "a3nG"}
    messages, outcomes = tick(arrived, Density(), now=100.5, pseudonym_of=pseudonym_of)
    for each in messages:
        print(each.decode())
    print(dict(outcomes))


if __name__ == "__main__":
    main()
