"""The shipped Mosquitto files on Debian's package, by the commands in their own header.

In namespaces of their own: the package's files are copies, and the ports are nobody else's.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY

PACKAGED = Path("/etc/mosquitto/mosquitto.conf")
PROBE = """
import asyncio, pathlib, sys, aiomqtt

async def main():
    secrets = pathlib.Path(sys.argv[1])
    tls = aiomqtt.TLSParameters(ca_certs=secrets / "ca.crt")
    password = (secrets / "gateway.password").read_text().strip()
    async with aiomqtt.Client(
        "localhost", 8884, username="gateway", password=password, tls_params=tls, timeout=60
    ) as client:
        await client.subscribe("positions/#")
        await client.publish("cloaked/positions", b"x", qos=1)
    print("reached")

async def until_reached():
    for _ in range(2000):
        try:
            return await main()
        except (OSError, aiomqtt.MqttError):
            await asyncio.sleep(0.05)

asyncio.run(until_reached())
"""


def header_commands() -> list[str]:
    """Return the commands at the top of the file."""
    text = (DEPLOY / "mosquitto.conf").read_text()
    return re.findall(r"^#   (\S.*)$", text.partition("\nlistener")[0], re.MULTILINE)


def can_have_namespaces() -> bool:
    made = subprocess.run(["unshare", "-mn", "ip", "link", "set", "lo", "up"], check=False)
    return made.returncode == 0


@pytest.mark.skipif(
    os.geteuid() != 0
    or not PACKAGED.exists()
    or "include_dir /etc/mosquitto/conf.d" not in PACKAGED.read_text()
    or not shutil.which("unshare")
    or not shutil.which("ip")
    or not can_have_namespaces(),
    # A user namespace of an ordinary user has no second user, and the package's broker runs as
    # `mosquitto`: without root this cannot be tried.
    reason="needs Debian's mosquitto, and root for namespaces",
)
def test_the_files_start_on_debians_package_by_the_commands_in_their_header(tmp_path: Path) -> None:
    shutil.copytree(PACKAGED.parent, tmp_path / "etc")
    for folder in ("lib", "log", "run"):
        (tmp_path / folder).mkdir()
        shutil.chown(tmp_path / folder, "mosquitto")
    tmp_path.chmod(0o755)
    commands = header_commands()
    assert commands[-1] == "systemctl restart mosquitto"
    steps = "\n".join(commands[:-1]).replace("/etc/anonymizer-secrets", f"{tmp_path}/secrets")
    script = f"""
        set -e
        ip link set lo up
        mount -t tmpfs none /run
        mkdir /run/mosquitto
        mount --bind {tmp_path}/etc /etc/mosquitto
        mount --bind {tmp_path}/lib /var/lib/mosquitto
        mount --bind {tmp_path}/log /var/log/mosquitto
        mount --bind {tmp_path}/run /run/mosquitto
        cd {DEPLOY}
        {steps}
        cd /
        mosquitto -c /etc/mosquitto/mosquitto.conf >&2 &
        broker=$!
        "$1" -c "$2" {tmp_path}/secrets
        kill $broker
        wait $broker || true
        ls /var/lib/mosquitto
        """
    python = Path(sys.executable)
    ran = subprocess.run(
        ["unshare", "-mnp", "--fork", "--kill-child", "sh", "-c", script, "sh", python, PROBE],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    log = tmp_path / "log" / "mosquitto.log"
    told = ran.stderr + (log.read_text() if log.exists() else "")
    assert "reached" in ran.stdout, told
    assert "mosquitto.db" in ran.stdout  # what the broker keeps is where the package has it
    assert "Error" not in told
