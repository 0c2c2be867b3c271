"""`anonymizer connect kafka`: from a Kafka with logins to a region, with Kafka's own tools."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from anonymizer.app.connect.kafka_files import read_properties
from anonymizer.networks import load_network
from tests.cli.support import anonymizer
from tests.cluster.kafka import JARS, Kafka, free_ports
from tests.cluster.processes import processes, wait_until

pytestmark = pytest.mark.kafka
NETWORK = "grid:10x10"
N_DEVICES = 60
CLASS_OF = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
"""Kafka's own programs, and what each starts."""
RAW, REGIONS = "positions", "cloaked-positions"


class Secured(NamedTuple):
    """A Kafka that lets nobody do anything without a rule; `login` is where users come in."""

    kafka: Kafka
    login: str
    folder: Path

    def set_up(self) -> None:
        """Do what an administrator does with the script that was written."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        for name, entry in CLASS_OF.items():
            program = programs / name
            program.write_text(
                f"#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp '{JARS}/*' {entry} \"$@\"\n"
            )
            program.chmod(0o700)
        admin = self.folder / "admin.properties"
        admin.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
            ' username="admin" password="x";\n'
        )
        done = subprocess.run(
            ["sh", self.folder / "it" / "setup.sh", admin],
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.kafka.address})

    def connect(self, *more: str) -> subprocess.CompletedProcess[str]:
        told = anonymizer(
            "connect", "kafka", "--out", self.folder / "it", "--network", NETWORK,
            "--broker", self.login, *more,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        return told

    def tried(self) -> subprocess.CompletedProcess[str]:
        return anonymizer("connect", "kafka", "--out", self.folder / "it", "--try")


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    folder = tmp_path / "secured"
    folder.mkdir()
    plain, controller, login = free_ports(3)
    settings: dict[str, Any] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},"
        f"LOGIN://127.0.0.1:{login}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},LOGIN://127.0.0.1:{login}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "LOGIN:SASL_PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "listener.name.login.scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security"
        ".scram.ScramLoginModule required;",
        "listener.name.login.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain"
        '.PlainLoginModule required user_admin="x";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",
    }
    kafka = Kafka(folder, **settings)
    kafka.address = f"127.0.0.1:{plain}"
    try:
        kafka.start()
        yield Secured(kafka, f"127.0.0.1:{login}", tmp_path)
    finally:
        kafka.kill()


def report(secured: Secured, until: float) -> None:
    """Publish all devices each second, as the fleet."""
    network = load_network(NETWORK)
    options = read_properties(secured.folder / "it" / "fleet.properties")
    producer: Any = Producer(options)
    while time.monotonic() < until:
        for n in range(N_DEVICES):
            body = {"lat": float(network.lat[n]), "lon": float(network.lon[n]), "ts": time.time()}
            producer.produce(RAW, json.dumps(body).encode(), f"car{n}")
        producer.flush()
        time.sleep(0.5)


def test_four_commands_lead_from_a_kafka_with_logins_to_a_region(secured: Secured) -> None:
    """Connect, set up, try and serve."""
    told = secured.connect()
    assert "here: anonymizer connect kafka --out" in told.stdout
    secured.set_up()
    told = secured.tried()
    assert told.returncode == 0, told.stderr
    assert "fleet writes, gateway receives; analyst reads" in told.stdout
    config = secured.folder / "it" / "gateway.toml"
    analyst = read_properties(secured.folder / "it" / "analyst.properties")
    with processes(secured.folder) as gateways:
        os.environ["ANONYMIZER__HTTP__PORT"] = "0"
        try:
            gateways.start("one", "anonymizer", "serve", "-c", str(config))
        finally:
            del os.environ["ANONYMIZER__HTTP__PORT"]
        wait_until(lambda: "broker connected" in gateways.said("one"), "connected")
        reader: Any = Consumer({**analyst, "group.id": "analyst", "auto.offset.reset": "earliest"})
        reader.subscribe([REGIONS])
        found: list[Any] = []

        def is_there() -> bool:
            report(secured, time.monotonic() + 0.6)
            found.extend(each for each in reader.consume(10, 0.2) if each.error() is None)
            return bool(found)

        wait_until(is_there, "region")
        reader.close()
    said = json.loads(found[0].value())
    assert len(said["region"]) > 1
    assert len(said["pseudonyms"]) >= 5


WRITES, READS = AclOperation.WRITE, AclOperation.READ
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def rule(kind: ResourceType, name: str, user: str, *what: Any) -> AclBinding:  # noqa: ANN401  stubs
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", *what)


def add(admin: AdminClient, more: AclBinding) -> None:
    [made] = admin.create_acls([more]).values()
    made.result()


def remove(admin: AdminClient, one: AclBinding) -> None:
    same = AclBindingFilter(
        one.restype, one.name, one.resource_pattern_type, one.principal, "*", one.operation,
        one.permission_type,
    )  # fmt: skip
    [gone] = admin.delete_acls([same]).values()
    assert len(gone.result()) == 1


def says(secured: Secured, why: str) -> bool:
    return why in secured.tried().stderr


def test_what_the_rules_lack_or_allow_too_much_is_said_in_a_sentence(secured: Secured) -> None:
    secured.connect("--codec", "owntracks")
    nobody = secured.tried()
    assert (nobody.returncode, nobody.stderr.count("\n")) == (2, 1)
    assert "Kafka does not let gateway in" in nobody.stderr
    secured.set_up()
    assert secured.tried().returncode == 0
    admin = secured.admin()
    topic = ResourceType.TOPIC
    for more, why in (
        (rule(topic, RAW, "fleet", WRITES, DENY), f"does not let fleet write to {RAW}"),
        (rule(topic, RAW, "gateway", READS, DENY), f"does not let gateway read {RAW}"),
        (rule(topic, REGIONS, "gateway", WRITES, DENY), f"let gateway write to {REGIONS}"),
        (rule(topic, REGIONS, "analyst", READS, DENY), f"let analyst read {REGIONS}"),
        (rule(ResourceType.GROUP, "anonymizer", "gateway", READS, DENY), "of group anonymizer"),
        (rule(topic, REGIONS, "fleet", WRITES, ALLOW), f"fleet can write to {REGIONS}"),
        (rule(topic, REGIONS, "analyst", WRITES, ALLOW), f"analyst can write to {REGIONS}"),
    ):
        add(admin, more)
        wait_until(partial(says, secured, why), why)
        assert secured.tried().stderr.count("\n") == 1
        remove(admin, more)
        wait_until(lambda: secured.tried().returncode == 0, "as before")
    remove(admin, rule(topic, RAW, "analyst", READS, DENY))
    add(admin, rule(topic, RAW, "*", READS, ALLOW))
    wait_until(lambda: "analyst can read what the fleet" in secured.tried().stderr, "raw")


def test_a_kafka_without_logins_keeps_nothing_from_analysts_and_that_is_said(
    own_kafka: Kafka, tmp_path: Path
) -> None:
    folder = tmp_path / "it"
    told = anonymizer(
        "connect", "kafka", "--out", folder, "--network", NETWORK, "--broker", own_kafka.address
    )
    assert told.returncode == 0, told.stderr
    config = folder / "gateway.toml"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(each for each in lines if not each.startswith("options")))
    for user in ("fleet", "analyst"):
        (folder / f"{user}.properties").write_text(f"bootstrap.servers={own_kafka.address}\n")
    missing = anonymizer("connect", "kafka", "--out", folder, "--try")
    assert "has no such topic: setup.sh makes topics and rules" in missing.stderr
    script = (folder / "setup.sh").read_text()
    assert f"--bootstrap-server {own_kafka.address}" in script
