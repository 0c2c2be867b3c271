"""The gateway on real streets with real taxis, replayed at sixty times their speed."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import printed
from tests.end_to_end import SIMULATOR, Witness, quick, serving, witness
from tests.promises import (
    Truth,
    Whereabouts,
    groups_too_small,
    leaks,
    pseudonyms_without_device,
)

WALL_S = 8
DELAY_S = 3.0
"""What a machine may need to carry a message into a tick, beyond what the latest one of all took to
the witness, and beyond the longest time in which the gateway published nothing: at a load of 15 on
two cores either is many seconds."""

pytestmark = pytest.mark.data


def has_seen(watching: Witness, n_raw: int) -> Callable[[], bool]:
    """Return whether so many raw positions were seen; what was seen before is not read again."""
    n_seen = looked = 0

    def all_seen() -> bool:
        nonlocal n_seen, looked
        n_seen += sum(each.topic.startswith("positions/") for each in watching.seen[looked:])
        looked = len(watching.seen)
        return n_seen == n_raw

    return all_seen


def raw_truths(seen: Witness) -> list[Truth]:
    raw = [message for message in seen.seen if message.topic.startswith("positions/")]
    payloads = [json.loads(message.payload) for message in raw]
    return [
        Truth(message.topic.removeprefix("positions/"), said["ts"], said["lat"], said["lon"])
        for message, said in zip(raw, payloads, strict=True)
    ]


async def test_taxis_at_sixty_times_their_speed_are_cloaked_covered_and_accounted_for(
    broker: LocalBroker, tmp_path: Path
) -> None:
    data = Path(os.environ["ANONYMIZER_DATA"])
    source = str(data / "networks" / "san_francisco")
    settings = quick(
        broker.url,
        network={"source": source, "snap_limit_m": 150},
        public_network={"enabled": False},  # it states the coordinates of all nodes
        tick={"interval_s": 0.1},
        inputs=[{"max_speed_mps": 1e7}],  # what is believed has a proof of its own
    )
    traffic = (
        *(SIMULATOR, "replay", data / "traces" / "cabspotting_sf_2008-05-19_20.parquet"),
        *("--speed", "60", "--from", "36000", "--duration", str(WALL_S)),
        *("--broker", broker.url, "--quiet"),
    )
    async with witness(broker.url) as watching, serving(tmp_path, settings) as gateway:
        await gateway.until_ready()
        told = re.search(r"^sent +([\d,]+) messages", await printed(*traffic), re.MULTILINE)
        assert told
        n_sent = int(told[1].replace(",", ""))
        await watching.until(has_seen(watching, n_sent))
        truths = raw_truths(watching)
        before = await gateway.until_settled(len(truths))
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
        await watching.until(lambda: watching.n_pseudonyms >= before.outcomes["published"])
        log = gateway.program.log

    assert len(truths) > 100 * WALL_S
    assert (before.received, before.settled, before.imbalance) == (len(truths), len(truths), 0)
    assert set(before.outcomes) <= {
        "published",
        "suppressed/off_graph",
        "suppressed/superseded",
        "suppressed/too_few_devices",
        "suppressed/region_too_large",
        "suppressed/overload",
    }
    # On a busy machine ticks are late, or long: they keep the newest position of each taxi.
    older = ("suppressed/overload", "suppressed/superseded")
    n_kept = len(truths) - sum(before.outcomes.get(each, 0) for each in older)
    assert before.outcomes["published"] == watching.n_pseudonyms > 0.6 * n_kept
    assert counts(log[-1]) == before.outcomes | {"received": len(truths)}

    others = [m for m in watching.seen if not m.topic.startswith("positions/")]
    wire = [f"{message.topic} {message.payload.decode()}" for message in others]
    assert leaks(wire + [json.dumps({**line, "timestamp": ""}) for line in log], truths) == []

    # Who leaves the roads counts where it was, as if it had fallen silent.
    network = load_network(source, max_spacing_m=0)  # that of `adka`
    lat, lon = (np.array([getattr(each, name) for each in truths]) for name in ("lat", "lon"))
    on_road = NodeLocator(network, limit_m=150).locate(lat, lon) >= 0
    near = [truth for truth, is_near in zip(truths, on_road.tolist(), strict=True) if is_near]
    raw = [message for message in watching.seen if message.topic.startswith("positions/")]
    late_s = max(one.at_s - truth.ts for one, truth in zip(raw, truths, strict=True))
    cloaked = watching.on("cloaked/positions")
    still_s = float(np.diff([truths[0].ts, *sorted(each["time"] for each in cloaked)]).max())
    # For whoever sees it fail.
    print(f"the latest came {late_s:.1f} s after its time, nothing for {still_s:.1f} s")  # noqa: T201
    where = Whereabouts(network, near, delay_s=DELAY_S + late_s + still_s, ttl_s=120)
    assert groups_too_small(cloaked, where) == []
    assert pseudonyms_without_device(cloaked, where, tick_s=0.1) == 0


def counts(stopped: dict[str, Any]) -> dict[str, int]:
    """Return the numbers in the last line of the log."""
    return {key: n for key, n in stopped.items() if isinstance(n, int)}
