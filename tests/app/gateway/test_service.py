"""`anonymizer serve` on a Mosquitto, with good and bad traffic, watched by a stranger."""

import asyncio
import itertools
import json
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiomqtt
import numpy as np
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from anonymizer.networks import load_network
from anonymizer.pipeline.positions.counts.public_ledger import public_step
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import mosquitto
from tests.end_to_end import (
    OF_THE_MACHINE,
    Accounts,
    Gateway,
    Message,
    Seen,
    Witness,
    client,
    quick,
    send,
    serving,
    witness,
)
from tests.promises import (
    Truth,
    Whereabouts,
    groups_too_small,
    leaks,
    pseudonyms_without_device,
)

NETWORK = load_network("grid:20x20")
N_DEVICES = 150
N_ROUNDS = 4
CROWD, CROWDED = 10_000, 37
TICK_S = 0.1
REJECTED = "anonymizer/rejected"
DELAY_S = 30.0
"""What a loaded machine may need to carry a message from its sender into a tick."""

WHYS = (
    "inputs (no. 1): nothing that arrives can be used",
    "fewer devices are present than a group needs",
    "positions could not be taken in time",
)
"""How sentences for analysts begin on a machine that is slow."""


def at(device: str, node: int, *, ts: float | None = None) -> Truth:
    """Return a device some metres beside a node, at a time (None: now)."""
    ts = time.time() if ts is None else ts
    return Truth(device, ts, float(NETWORK.lat[node]) + 7e-5, float(NETWORK.lon[node]) - 9e-5)


def told(truth: Truth) -> Message:
    """Return what a device says, as a message."""
    payload = {"lat": truth.lat, "lon": truth.lon, "ts": truth.ts}
    return f"positions/{truth.device}", json.dumps(payload).encode()


def fleet() -> list[Truth]:
    """Return a report of every device, each at a random node, always the same."""
    nodes = np.random.default_rng(3).integers(0, NETWORK.n_nodes, N_DEVICES)
    return [at(f"tram-{i:03}", int(node)) for i, node in enumerate(nodes)]


def poison(newest: Truth) -> list[tuple[Message, dict[str, int]]]:
    """Return bad messages, each with what is to become of the positions in it.

    They come from different devices: of several messages of one, a late tick keeps the newest.
    `newest`: the last report of a device, which says an older one now.
    """
    good = {"lat": float(NETWORK.lat[5]), "lon": float(NETWORK.lon[5])}
    now, numbers = time.time(), itertools.count()

    def said(*, topic: str = "", **fields: object) -> Message:
        return plain(json.dumps(good | fields).encode(), topic)

    def plain(payload: bytes, topic: str = "") -> Message:
        return topic or f"positions/rogue-{next(numbers)}", payload

    return [
        # Often enough to be in the public counts.
        *[(plain(b"not JSON at all"), {"invalid/malformed": 1}) for _ in range(10)],
        (plain(b'{"lat": NaN, "lon": 1.0}'), {"invalid/no_fix": 1}),
        (plain(b'{"lat": 1.0, "lon": Infinity}'), {"invalid/no_fix": 1}),
        (plain(b'\xff\xfe{"lat": 1.0, "lon": 1.0}'), {"invalid/malformed": 1}),
        (plain(b"[" * 9_000), {"invalid/malformed": 1}),
        (plain(b""), {"invalid/empty": 1}),
        (plain(b"[]"), {"invalid/empty": 1}),
        (said(lat="sixty"), {"invalid/schema": 1}),
        (said(lat=None), {"invalid/no_fix": 1}),
        (plain(b'{"lat": 60.1}'), {"invalid/schema": 1}),
        (said(lat=90.5), {"invalid/out_of_range": 1}),
        (said(lon=-180.5), {"invalid/out_of_range": 1}),
        (said(lat=0.0, lon=0), {"invalid/null_island": 1}),
        (said(ts=now + 3_600), {"invalid/future_time": 1}),
        (said(ts=now * 1_000), {"invalid/time_in_ms": 1}),
        (said(ts=now - 3_600), {"invalid/ancient_time": 1}),
        (said(more="x" * 2_000_000), {"invalid/too_large": 1}),
        (plain(json.dumps([good] * 10_001).encode()), {"invalid/too_large": 1}),
        (said(topic="positions/"), {"invalid/no_device": 1}),
        (said(topic=f"positions/{'x' * 300}"), {"invalid/no_device": 1}),
        (plain(b'{"_type": "lwt", "tst": 1}', "owntracks/rogue"), {"invalid/not_a_position": 1}),
        (plain(b'{"VP": {"lat": null, "long": null}}', "hfp/rogue"), {"invalid/no_fix": 1}),
        (said(lat=10.0, ts=now), {"suppressed/off_graph": 1}),
        (said(topic=f"positions/{newest.device}", ts=newest.ts - 1), {"late": 1}),
        (
            plain(json.dumps([{"lat": 1}, good | {"ts": now + 3_600}]).encode()),
            {"invalid/schema": 1, "invalid/future_time": 1},
        ),
    ]


@dataclass(frozen=True)
class Story:
    """All that was sent, seen and said."""

    truths: list[Truth]
    alone: Accounts
    healthy: Accounts
    n_healthy: int
    poisoned: Accounts
    crowded: Accounts
    seen: list[Seen]
    cloaked: list[dict[str, Any]]
    log: list[dict[str, Any]]
    exit_code: int
    retained_after: list[Seen]
    n_published_seen: int
    exposition: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def story(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Story]:
    """Tell it once: one device alone, a healthy fleet, poison, a crowd, and SIGTERM in traffic."""
    folder = tmp_path_factory.mktemp("story")
    broker = mosquitto(folder)
    await broker.start()
    settings = quick(
        broker.url,
        inputs=[
            # It jumps across the town; which jumps are believed has a proof of its own.
            # What is late must not be too old as well, however long a first tick compiles.
            {"topic": "positions/{device}", "max_speed_mps": 1e9, "max_behind_s": 120},
            {"topic": "owntracks/{device}", "codec": "owntracks"},
            {"topic": "hfp/{device}", "codec": "hfp"},
        ],
        limits={"max_payload_bytes": 1_000_000},
        public_network={"enabled": False},  # it states the coordinates of all nodes
        tick={"interval_s": TICK_S},
    )
    try:
        async with client(broker.url, "publisher", max_inflight_messages=1000) as publisher:
            ghost = told(at("ghost", 3))[1].replace(b'"ts"', b'"was"')
            await publisher.publish("positions/ghost", ghost, retain=True, qos=1)
            async with witness(broker.url) as watching, serving(folder, settings) as gateway:
                yield await tell(publisher, watching, gateway, broker.url)
    finally:
        await broker.stop()


async def tell(publisher: aiomqtt.Client, watching: Witness, gateway: Gateway, url: str) -> Story:
    await gateway.until_ready()
    n_sent = 1  # the ghost
    lonely = at("lonely", 210)
    await send(publisher, [told(lonely)])
    n_sent += 1
    alone = await gateway.until_settled(n_sent)

    truths = [lonely]
    for _ in range(N_ROUNDS):
        reports = fleet()
        await send(publisher, [told(truth) for truth in reports])
        truths += reports
        n_sent += len(reports)
        healthy = await gateway.until_settled(n_sent)
    n_healthy = n_sent

    for message, fate in poison(truths[-2]):
        await send(publisher, [message], qos=1)
        n_sent += sum(fate.values())
    duplicate = truths[-1]
    await send(publisher, [told(duplicate)])
    n_sent += 1
    poisoned = await gateway.until_settled(n_sent)

    crowd = [at(f"fan-{i}", CROWDED) for i in range(CROWD)]
    await send(publisher, [told(truth) for truth in crowd])
    n_sent += CROWD
    crowded = await gateway.until_settled(n_sent)
    exposition = (await gateway.get("/metrics")).text

    tail: list[Truth] = []
    enough = asyncio.Event()
    traffic = asyncio.create_task(report_until(enough, publisher, tail), name="traffic")
    await gateway.until(lambda now: now.received >= n_sent + 500)
    # Counts move at turns only, which a quick machine would not live to see.
    await watching.until(lambda: any(message.topic == REJECTED for message in watching.seen))
    gateway.signal(signal.SIGTERM)
    exit_code = await gateway.program.ended()
    enough.set()
    await traffic

    stopped = gateway.program.events("stopped")[-1]
    await watching.until(lambda: watching.n_pseudonyms >= stopped["published"])
    async with witness(url, "latecomer") as late:
        await late.until(lambda: len(late.seen) >= 2)
    return Story(
        truths=truths + crowd + tail,
        alone=alone,
        healthy=healthy,
        n_healthy=n_healthy,
        poisoned=poisoned,
        crowded=crowded,
        seen=watching.seen,
        cloaked=watching.on("cloaked/positions"),
        log=gateway.program.log,
        exit_code=exit_code,
        retained_after=late.seen,
        n_published_seen=watching.n_pseudonyms,
        exposition=exposition,
    )


async def report_until(
    enough: asyncio.Event, publisher: aiomqtt.Client, truths: list[Truth]
) -> None:
    """Let the fleet report on and on. Not until cancelled: aiomqtt may miss that (wait_for)."""
    while not enough.is_set():
        reports = fleet()
        truths += reports
        await send(publisher, [told(truth) for truth in reports])


def outputs(story: Story) -> list[str]:
    """Return everything but the raw topics, topics included, and the log."""
    wire = [
        f"{message.topic} {message.payload.decode()}"
        for message in story.seen
        if not message.topic.startswith(("positions/", "owntracks/", "hfp/"))
    ]
    log = [json.dumps({**line, "timestamp": ""}) for line in story.log]
    return wire + log


def test_no_topic_but_the_raw_ones_and_no_log_line_holds_a_coordinate_or_a_device(
    story: Story,
) -> None:
    assert leaks(outputs(story), story.truths) == []


def test_the_search_for_leaks_finds_a_coordinate_and_a_name(story: Story) -> None:
    truth = story.truths[7]
    for leak in (f"cloaked/{truth.device} {{}}", f"[{truth.lat:.5f}]", f"at {truth.lon:.4f}"):
        assert leaks([leak, "harmless 1.5"], story.truths) == [leak]


def test_the_analyst_hears_of_positions_on_the_output_topic_alone(story: Story) -> None:
    topics = {message.topic for message in story.seen}
    raw = {topic for topic in topics if topic.startswith(("positions/", "owntracks/", "hfp/"))}
    own = {"anonymizer/status", "anonymizer/status/why", "anonymizer/probe", REJECTED}
    assert topics - raw == {"cloaked/positions", *own}
    # One device, or poison, is all that arrives for a while: long enough to be told where a machine
    # is slow.
    whys = {m.payload.decode() for m in story.seen if m.topic == "anonymizer/status/why"}
    assert "" in whys
    assert all(why.startswith(WHYS) for why in whys - {""})
    stamp = {"v", "network", "group", "until"}
    assert all(set(m) - stamp == {"time", "k", "region", "pseudonyms"} for m in story.cloaked)


def test_every_region_held_k_distinct_devices(story: Story) -> None:
    where = Whereabouts(NETWORK, story.truths, delay_s=DELAY_S, ttl_s=120)
    assert groups_too_small(story.cloaked, where) == []


def test_every_region_covered_its_devices(story: Story) -> None:
    where = Whereabouts(NETWORK, story.truths, delay_s=DELAY_S, ttl_s=120)
    # The crowd apart, once it is one: ten thousand at one node match in too many ways.
    trams = [message for message in story.cloaked if message["region"] != [CROWDED]]
    assert sum(len(message["pseudonyms"]) for message in trams) >= N_DEVICES * N_ROUNDS
    assert pseudonyms_without_device(trams, where, tick_s=TICK_S) == 0


def test_the_checks_of_regions_find_a_false_one(story: Story) -> None:
    where = Whereabouts(NETWORK, story.truths, delay_s=DELAY_S, ttl_s=120)
    honest = story.cloaked[0]
    boast = honest | {"k": 1 + N_DEVICES}
    lie = honest | {"region": [-1]}
    assert groups_too_small([honest, boast], where) == [json.dumps(boast)]
    assert pseudonyms_without_device([lie], where, tick_s=TICK_S) == len(lie["pseudonyms"])


def test_one_device_alone_is_suppressed(story: Story) -> None:
    assert story.alone.outcomes == {"invalid/retained": 1, "suppressed/too_few_devices": 1}


def test_a_healthy_fleet_is_published_or_suppressed_to_the_last_message(story: Story) -> None:
    assert story.healthy.received == story.n_healthy
    assert story.healthy.settled == story.n_healthy
    assert story.healthy.outcomes["published"] > 0.5 * N_DEVICES * N_ROUNDS
    reasons = {reason for reason in story.healthy.outcomes if not reason.startswith("suppressed")}
    assert reasons == {"published", "invalid/retained"}


def test_every_bad_message_is_counted_with_its_reason_and_the_stream_goes_on(
    story: Story,
) -> None:
    expected: dict[str, int] = {"duplicate": 1}
    for _, fate in poison(story.truths[0]):
        for reason, n in fate.items():
            expected[reason] = expected.get(reason, 0) + n
    assert difference(story.poisoned, story.healthy) == expected


def test_ten_thousand_devices_on_one_node_are_published_to_the_last(story: Story) -> None:
    assert difference(story.crowded, story.poisoned) == {"published": CROWD}


def test_the_books_balance_at_every_look(story: Story) -> None:
    for accounts in (story.alone, story.healthy, story.poisoned, story.crowded):
        assert accounts.received == accounts.settled + accounts.held
        assert accounts.imbalance == 0


def test_sigterm_in_traffic_drains_and_every_position_is_accounted_for(story: Story) -> None:
    assert story.exit_code == 0
    stopped = story.log[-1]
    assert stopped["event"] == "stopped"
    outcomes = {key: n for key, n in stopped.items() if isinstance(n, int) and key != "received"}
    assert stopped["received"] == sum(outcomes.values())
    assert stopped["published"] > story.crowded.outcomes["published"]


def test_what_is_said_to_be_published_is_what_a_stranger_saw(story: Story) -> None:
    assert story.n_published_seen == story.log[-1]["published"]


def test_the_rejected_topic_tells_in_steps_of_k_and_of_no_place(story: Story) -> None:
    stopped = story.log[-1]
    for message in story.seen:
        if message.topic == REJECTED:
            for reason, n in json.loads(message.payload)["rejected"].items():
                assert not reason.startswith("suppressed/")
                assert n % public_step(Settings()) == 0
                assert n <= stopped[reason]


def test_the_status_topic_follows_and_is_all_that_stays(story: Story) -> None:
    status = [m.payload for m in story.seen if m.topic == "anonymizer/status"]
    assert status == [b"online", b"offline"]
    kept = {m.topic: m.payload for m in story.retained_after if m.retained}
    assert kept.pop("anonymizer/status") == b"offline"
    assert set(kept) == {"positions/ghost"}


def test_the_log_tells_of_the_life_of_the_service_and_of_nothing_else(story: Story) -> None:
    said = [line["event"] for line in story.log]
    assert [event for event in said if not event.startswith(OF_THE_MACHINE)] == [
        "network loaded",
        "region mode adka hides devices from nobody who knows the algorithm",
        "listening",
        "broker connected",
        "draining",
        "stopped",
    ]


def test_what_is_scraped_follows_prometheus_rules_for_names(story: Story) -> None:
    families = list(text_string_to_metric_families(story.exposition))
    ours = [family for family in families if family.name.startswith("anonymizer_")]
    assert len(ours) > 20
    for family in ours:
        assert family.documentation.endswith(".")
        names = {sample.name for sample in family.samples}
        if family.type == "counter":
            assert names <= {f"{family.name}_total"}
        labels = {label for sample in family.samples for label in sample.labels}
        assert family.type in {"histogram", "summary"} or not labels & {"le", "quantile"}


def difference(after: Accounts, before: Accounts) -> dict[str, int]:
    grown = {k: n - before.outcomes.get(k, 0) for k, n in after.outcomes.items()}
    return {reason: n for reason, n in grown.items() if n}
