"""Brokers that nobody here wrote, beside Mosquitto: aedes (Node), Moquette and HiveMQ (Java).

`make test-cluster` installs them in a folder from `package-lock.json`, `pom.xml` and `hivemq.xml`.
No registry has NanoMQ: where `ANONYMIZER_NANOMQ` names a program that was built from its source, it
is run as well.
"""

import os
from pathlib import Path

from anonymizer.transport.local_brokers import LocalBroker

FOLDER = os.environ.get("ANONYMIZER_BROKERS", "")
"""Where they are; empty: they are not installed."""
NANOMQ = os.environ.get("ANONYMIZER_NANOMQ", "")
_HERE = Path(__file__).parent


def aedes() -> LocalBroker:
    """Return an aedes: it hands messages on at the QoS of their sender, and keeps all in memory."""

    def command(port: int) -> list[str | Path]:
        return ["env", "-C", Path(FOLDER, "aedes"), "node", _HERE / "aedes.mjs", str(port)]

    return LocalBroker(command, ready="ready")


def moquette(folder: Path) -> LocalBroker:
    """Return a Moquette with a folder for its state; it speaks MQTT 3.1.1 alone."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    jars = Path(FOLDER, "moquette")

    def command(port: int) -> list[str | Path]:
        lines = {
            "host": "127.0.0.1",
            "port": str(port),
            "websocket_port": "disabled",
            "allow_anonymous": "true",
            "data_path": f"{folder}/",
            "persistence_enabled": "true",
            "telemetry_enabled": "false",
            "netty.mqtt.message_size": str(64 << 20),
        }
        text = "".join(f"{name} {value}\n" for name, value in lines.items())
        (folder / "config" / "moquette.conf").write_text(text)
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dmoquette.path={folder}"]
        return ["java", *options, "-cp", f"{jars}/*", "io.moquette.broker.Server"]

    return LocalBroker(command, ready="Server started", start_timeout_s=120.0)


def hivemq(folder: Path) -> LocalBroker:
    """Return a HiveMQ, the community edition, with a folder for its state."""
    for name in ("conf", "data", "extensions"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    jars = Path(FOLDER, "hivemq")

    def command(port: int) -> list[str | Path]:
        listener = f"<port>{port}</port><bind-address>127.0.0.1</bind-address>"
        (folder / "conf" / "config.xml").write_text(
            "<hivemq>"
            f"<listeners><tcp-listener>{listener}</tcp-listener></listeners>"
            "<anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics>"
            "</hivemq>"
        )
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        return ["java", *options, _HERE / "HiveMq.java", folder]

    return LocalBroker(command, ready="ready", start_timeout_s=120.0)


def nanomq(folder: Path) -> LocalBroker:
    """Return a NanoMQ with a folder for its settings; it keeps all else in memory."""
    folder.mkdir(parents=True, exist_ok=True)

    def command(port: int) -> list[str | Path]:
        config = folder / "nanomq.conf"
        config.write_text(
            "mqtt { max_packet_size = 64MB }\n"
            f'listeners.tcp {{ bind = "127.0.0.1:{port}" }}\n'
            "log { to = [console], level = warn }\n"
        )
        # It says that it is ready in a buffer, which a pipe gets when it is full or when it ends.
        return ["stdbuf", "-oL", NANOMQ, "start", "--conf", config]

    return LocalBroker(command, ready="started successfully")
