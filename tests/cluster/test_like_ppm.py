"""The recipe in place of the privacy protection module, on a real Kafka."""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.codecs import CODECS
from anonymizer.codecs.coarse import short_id
from anonymizer.domain.fixes import Fix
from anonymizer.networks import load_network
from tests.cluster.bsm import MESSAGE, bsm
from tests.cluster.gateways import accounts
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Processes, wait_until

RECIPES = Path(__file__).parents[2] / "docs" / "recipes.md"
REGIONS = "topic.CloakedPositions"
"""As the recipe names it."""
N_PARTS = 2
N_DEVICES = 60
N_ROUNDS = 12


def read_all(address: str, topic: str) -> list[Any]:
    """Return all messages of a topic."""
    reader: Any = Consumer(
        {"bootstrap.servers": address, "group.id": "x", "enable.auto.commit": False}
    )
    parts = [TopicPartition(topic, i, 0) for i in range(N_PARTS)]
    n = sum(reader.get_watermark_offsets(part, timeout=30)[1] for part in parts)
    reader.assign(parts)
    found: list[Any] = []
    while len(found) < n:
        found += reader.consume(1000, 0.1)
    reader.close()
    return found


IDS = [f"BEA1{n:04X}" for n in range(N_DEVICES)]
REFUSED = {"slow": 1.0, "fast": 40.0, "none": None}
"""Speeds of those that are not within the band."""


def drive(address: str, topic: str, places: list[tuple[float, float]]) -> None:
    """Send rounds of messages, and in each five that the module would drop as well."""
    producer: Any = Producer({"bootstrap.servers": address})
    rng = random.Random(7)  # noqa: S311  traffic of a test
    north = max(lat for lat, _ in places) + 0.0003
    for i in range(N_ROUNDS):
        now = time.time()
        # A time that several share would be that of a poll.
        sent = {
            name: bsm(name, *rng.choice(places), at=now - j / 1000, speed_mps=20.0)
            for j, name in enumerate(IDS)
        }
        for name, speed in REFUSED.items():
            sent[name] = bsm(name, *places[0], at=now, speed_mps=speed)
        # Always another one: of two that arrive in one tick the older would count as superseded.
        sent[f"off{i}"] = bsm(f"off{i}", north, places[0][1], at=now - 0.5, speed_mps=20.0)
        sent["unreadable"] = b"no message"
        for name, message in sent.items():
            producer.produce(topic, message, name)  # so that those of a device stay in order
        producer.flush()
        time.sleep(1.0)


def test_a_drop_in_reads_and_writes_the_topics_of_the_module_with_its_filters_and_k(
    kafka: Kafka, prefix: str, gateways: Processes, tmp_path: Path
) -> None:
    raw, out = f"{prefix}.OdeBsmJson", f"{prefix}.FilteredOdeBsmJson"
    admin = AdminClient({"bootstrap.servers": kafka.address})
    made = admin.create_topics([NewTopic(topic, N_PARTS) for topic in (raw, out, REGIONS)])
    for each in made.values():
        each.result()
    network, config = load_network("grid:10x10"), tmp_path / "gateway.toml"
    places = list(zip(network.lat.tolist(), network.lon.tolist(), strict=True))
    recipe = RECIPES.read_text().split("privacy protection module", 1)[1]
    text = recipe.split("```toml\n", 1)[1].split("```", 1)[0]
    for written, here in (
        ("roads.osm.pbf", "grid:10x10"),
        ("KAFKA:9092", kafka.address),
        ("PPM_BSM", prefix),
        ("topic.OdeBsmJson", raw),
        ("topic.FilteredOdeBsmJson", out),
    ):
        assert written in text
        text = text.replace(written, here)
    # Port 8080 may be taken, and a loaded machine delays messages.
    config.write_text(text + '[http]\nhost = ""\n[presence]\nmax_behind_s = 100\n')
    gateways.start("one", "anonymizer", "serve", "-c", str(config))
    wait_until(lambda: "broker connected" in gateways.said("one"), "ready")
    drive(kafka.address, raw, places)
    wait_until(lambda: bool(read_all(kafka.address, out)), "echoes")
    counts = accounts(gateways)
    assert counts["received"] == N_ROUNDS * (N_DEVICES + 5)
    assert counts["invalid/not_selected"] == 3 * N_ROUNDS
    assert counts["suppressed/off_graph"] == N_ROUNDS
    assert counts["invalid/malformed"] == N_ROUNDS
    assert counts["published"] > 0

    regions = [json.loads(message.value()) for message in read_all(kafka.address, REGIONS)]
    members = Counter(
        (short_id(name), each["time"]) for each in regions for name in each["pseudonyms"]
    )
    part_of: dict[bytes, int] = {}
    echoed: Counter[tuple[int, float]] = Counter()
    shared: Counter[tuple[float, float, float]] = Counter()
    for message in read_all(kafka.address, out):
        said = json.loads(message.value())
        jsonschema.validate(said, MESSAGE)
        assert said["metadata"]["sanitized"] is True
        core = said["payload"]["data"]["value"]["BasicSafetyMessage"]["coreData"]
        assert core["id"] not in IDS
        assert int(core["id"], 16) == short_id(message.key().decode())
        assert part_of.setdefault(message.key(), message.partition()) == message.partition()
        [fix] = CODECS["j2735"](message.value())
        assert isinstance(fix, Fix)
        assert fix.ts is not None
        assert not fix.readings
        echoed[int(core["id"], 16), fix.ts] += 1
        shared[fix.lat, fix.lon, fix.ts] += 1
    assert echoed == members  # all of them and nothing else, each once
    assert min(shared.values()) >= 5
    said = gateways.said("one")
    assert not any(name in said for name in (*IDS, *REFUSED))
