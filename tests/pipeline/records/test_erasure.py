"""Brute force on the store: what its file reveals of closed windows to somebody with the key."""

import hashlib
import itertools
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from anonymizer.pipeline.records.topics import RecordRouter
from anonymizer.settings import LimitSettings
from tests.pipeline.records.made import FLEET, Sent, fleet
from tests.pipeline.records.support import Rig

VEHICLES = [f"v{i:02}" for i in range(20)]
AGES = range(20, 50)
TIMES = range(20)
ONE_SOURCE: dict[str, Any] = {
    "sources": [source for source in FLEET["sources"] if source["name"] == "profile"],
    "attributes": [attribute for attribute in FLEET["attributes"] if attribute["name"] == "age"],
}


def sent(window: int) -> list[Sent]:
    """Return one part of each vehicle."""
    return [
        Sent(v, "profile", window * 60.0 + (7 * i + window) % 20, {"age": 20 + (11 * i) % 30})
        for i, v in enumerate(VEHICLES)
    ]


def on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def traces(secret: bytes, part: Sent, key_of: RecordRouter) -> Iterator[bytes]:
    """Yield what a store could have kept of a part: digests in several forms, its key, its time."""
    topic, payload = part.topic.encode(), part.payload
    for size, content in itertools.product((8, 16), (payload + topic, topic + payload, payload)):
        yield hashlib.blake2b(content, digest_size=size, key=secret).digest()
    [route] = key_of.routes_of(part.topic)
    yield route.vehicle
    yield from (struct.pack(order, part.ts) for order in ("<d", ">d"))


@cache
def traces_of(secret: bytes, window: int) -> dict[str, set[bytes]]:
    """Return the traces of every part that a vehicle could have sent."""
    key_of = RecordRouter(
        [fleet(**ONE_SOURCE)], secret=secret, max_id_chars=LimitSettings().max_device_id_chars
    )
    candidates = itertools.product(VEHICLES, AGES, TIMES)
    found: dict[str, set[bytes]] = {vehicle: set() for vehicle in VEHICLES}
    for vehicle, age, second in candidates:
        part = Sent(vehicle, "profile", window * 60.0 + second, {"age": age})
        found[vehicle].update(traces(secret, part, key_of))
    return found


def recovered(path: Path, window: int) -> int:
    """Return for how many vehicles some candidate is found in the files, with the key in hand."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        (secret,) = db.execute("SELECT value FROM secrets WHERE name = 'key'").fetchone()
    content = on_disk(path)
    pieces = {content[i : i + 8] for i in range(len(content) - 7)}
    return sum(
        any(trace[:8] in pieces and trace in content for trace in of_vehicle)
        for of_vehicle in traces_of(secret, window).values()
    )


def test_no_record_of_a_closed_window_can_be_recovered_with_the_key(tmp_path: Path) -> None:
    rig = Rig(tmp_path, **ONE_SOURCE)
    rig.take(*sent(1))
    assert recovered(rig.path, 1) == 20  # an open window has to be there
    rig.close(silent=True)
    assert recovered(rig.path, 1) == 0
    rig.take(*(Sent(f"other{i}", "profile", 130.0 + i, {"age": 30}) for i in range(9)))
    assert recovered(rig.path, 1) == 0
    assert rig.publish()
    rig.crash()
    assert recovered(rig.path, 1) == 0
    rig.store.close()
    assert recovered(rig.path, 1) == 0


def test_parts_of_a_vehicle_that_withdraws_are_erased_at_once_and_no_more_are_taken(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, **ONE_SOURCE)
    rig.take(*sent(0))
    rig.flow.withdraw({"v03": True, "v99": True, "v04": False})
    rig.check()
    assert rig.accounts()["suppressed/privacy_zone"] == 1
    assert rig.flow.router.key(0, "v03") not in on_disk(rig.path)
    assert rig.flow.router.key(0, "v04") in on_disk(rig.path)
    rig.take(Sent("v03", "profile", 3.0, {"age": 21}))
    assert rig.accounts()["suppressed/privacy_zone"] == 2
    rig.crash()
    assert rig.state.records.n_records == len(VEHICLES) - 1
    rig.close(silent=True)
    assert sum(message["count"] for message in rig.classes()) == len(VEHICLES) - 1
    rig.flow.withdraw({"v03": True})
    rig.flow.withdraw({"v03": False})
    rig.take(Sent("v03", "profile", 1000.0, {"age": 21}))
    assert rig.state.records.n_records == 1
    rig.store.close()


def test_all_records_of_a_vehicle_that_withdraws_are_erased(tmp_path: Path) -> None:
    rig = Rig(tmp_path, **ONE_SOURCE, per="record")
    rig.take(*sent(0))
    rig.take(*(Sent("v03", "profile", float(ts), {"age": 21}) for ts in (30, 31, 32)))
    rig.flow.withdraw({"v03": True})
    rig.check()
    assert rig.accounts()["suppressed/privacy_zone"] == 4
    assert rig.state.records.n_records == len(VEHICLES) - 1
    rig.flow.withdraw({"v03": False})
    rig.take(*(Sent("v03", "profile", float(ts), {"age": 22}) for ts in range(30, 130)))
    assert rig.state.records.n_records == len(VEHICLES) + 99, "its share is free again"
    rig.store.close()
