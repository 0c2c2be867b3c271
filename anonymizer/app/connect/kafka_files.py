"""Files for a fleet in Kafka: logins of its users, and what an administrator runs once."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from anonymizer.app.connect.broker_files import ANALYST, GATEWAY
from anonymizer.settings import Settings

FLEET = "fleet"
"""User that writes the raw positions."""
USERS = (GATEWAY, ANALYST, FLEET)
REGIONS = "cloaked-positions"
"""Topic of what is published."""
MECHANISM = "SCRAM-SHA-512"
_N_PARTITIONS = 4
_RAW_MS = 3_600_000
"""Raw positions are of no use to a gateway for longer than they count."""
_THIS_MACHINE = {"127.0.0.1", "localhost", "[::1]"}


def login(user: str, password: str, *, servers: str, ca_file: Path | None = None) -> dict[str, str]:
    """Return the options of librdkafka with which a user logs in; unencrypted on this machine."""
    hosts = {each.rpartition(":")[0] for each in servers.split(",")}
    is_here = hosts <= _THIS_MACHINE
    said = {
        "security.protocol": "sasl_plaintext" if is_here else "sasl_ssl",
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
    }
    return said if ca_file is None else said | {"ssl.ca.location": str(ca_file.resolve())}


def properties_lines(options: Mapping[str, str], *, servers: str) -> list[str]:
    """Return a file of properties, as `kcat -F` takes it."""
    return [f"bootstrap.servers={servers}", *(f"{key}={said}" for key, said in options.items())]


def read_properties(path: Path) -> dict[str, str]:
    """Return the options in a file of properties."""
    lines = path.read_text(encoding="utf-8").splitlines()
    parts = (line.partition("=") for line in lines if line.strip() and not line.startswith("#"))
    return {key.strip(): said.strip() for key, _, said in parts}


def setup_lines(settings: Settings, password_of: Mapping[str, str]) -> Iterator[str]:
    """Yield the script that makes topics, users and rules; it can run again."""
    [raw], regions = [each.kafka or "" for each in settings.inputs], settings.output.kafka or ""
    group = settings.kafka.group
    yield "#!/bin/sh"
    yield "# Run by an administrator, with Kafka's programs in PATH: sh setup.sh ADMIN.properties"
    yield "# A topic that had no rules has some now: whoever else used it needs one as well."
    yield "set -eu"
    yield f"at={shlex.quote(f'--bootstrap-server {settings.kafka.servers}')}"
    yield 'as="--command-config ${1:?name a file with the login of an administrator}"'
    for topic, more in ((raw, f" --config retention.ms={_RAW_MS}"), (regions, "")):
        yield (
            f"kafka-topics.sh $at $as --create --if-not-exists --topic {topic}"
            f" --partitions {_N_PARTITIONS}{more}"
        )
    for user, password in password_of.items():
        secret = shlex.quote(f"{MECHANISM}=[password={password}]")
        yield (
            f"kafka-configs.sh $at $as --alter --entity-type users --entity-name {user}"
            f" --add-config {secret}"
        )
    for rule in (
        f"--allow-principal User:{FLEET} --operation Write --topic {raw}",
        f"--allow-principal User:{GATEWAY} --operation Read --topic {raw} --group {group}",
        f"--allow-principal User:{GATEWAY} --operation Write --topic {regions}",
        f"--allow-principal User:{ANALYST} --operation Read --topic {regions} --group {ANALYST}",
        f"--deny-principal User:{ANALYST} --operation Read --topic {raw}",
    ):
        yield f"kafka-acls.sh $at $as --add {rule}"
