"""A million positions of taxis as basic safety messages, from Kafka to Kafka, through kills."""

import json
import os
import time
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import polars as pl
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.codecs.coarse import short_id
from tests.cluster.bsm import MESSAGE, bsm
from tests.cluster.gateways import Bus, accounts, all_committed, start
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Processes, wait_until

DATA = Path(os.environ.get("ANONYMIZER_DATA", ""))
TRACE = "traces/cabspotting_sf_2008-05-24_30.parquet"
N = 1_000_000
PER_ROUND = 5_000
N_KILLS = 3


class Taxis(Bus):
    """Taxis on the way from their trace into Kafka, in the order in which they reported."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path) -> None:
        self.echo = f"{prefix}.echo"
        super().__init__(kafka, prefix, folder)
        admin = AdminClient({"bootstrap.servers": kafka.address})
        [made] = admin.create_topics([NewTopic(self.echo, 2)]).values()
        made.result()
        table = pl.read_parquet(DATA / TRACE).select("device_id", "lat", "lon").head(N)
        names = {name: f"{n:08X}" for n, name in enumerate(sorted(set(table["device_id"])))}
        self._rows = [(names[name], lat, lon) for name, lat, lon in table.iter_rows()]

    def configure(self, *, session_s: int = 6, queue_limit: int = 100_000) -> None:
        """Write the settings: defaults, but for addresses, files and the wait for a dead one."""
        self.config.write_text(f"""
            [network]
            source = "{DATA}/networks/san_francisco"
            [[inputs]]
            topic = "kafka:{self.raw}"
            codec = "j2735"
            device_from = "payload"
            echo = "{self.echo}"
            [output]
            topic = "kafka:{self.out}"
            [kafka]
            servers = "{self.address}"
            group = "{self.group}"
            options = {{"session.timeout.ms" = "{1000 * session_s}"}}
            [http]
            host = ""
            [presence]
            max_devices = {10 * queue_limit}
            [tick]
        """)

    @property
    def n_left(self) -> int:
        return N - self.n_sent

    def wait_for_regions(self) -> None:
        """Report until a gateway publishes: it reads a backlog before it forms groups."""
        before = self.n_published()

        def has_more() -> bool:
            self.drive(1)
            time.sleep(0.5)
            return self.n_published() > before

        wait_until(has_more, "regions", deadline_s=60.0)

    def drive(self, n_rounds: int) -> None:
        """Send rounds of messages, each as if it were now."""
        for _ in range(min(n_rounds, self.n_left // PER_ROUND)):
            for name, lat, lon in self._rows[self.n_sent : self.n_sent + PER_ROUND]:
                body = bsm(name, lat, lon, at=time.time(), speed_mps=10.0)
                self._producer.produce(self.raw, body, name)
                self._producer.poll(0)
            self._producer.flush()
            self.n_sent += PER_ROUND


@pytest.mark.soak
@pytest.mark.data
@pytest.mark.timeout(3600)
def test_a_million_positions_pass_three_kills_and_two_rebalances_with_exact_accounts(
    kafka: Kafka, prefix: str, gateways: Processes, tmp_path: Path
) -> None:
    taxis = Taxis(kafka, prefix, tmp_path)
    n_accounted = 0
    for kill in range(N_KILLS):
        before = taxis.n_committed() if kill else 0
        start(gateways, taxis)
        taxis.drive(40)
        taxis.wait_for_regions()
        wait_until(lambda: taxis.n_committed() > before, "some")  # noqa: B023  awaited here
        gateways.kill("one")
        taxis.drive(5)  # wait in Kafka until the next one has the partitions
        n_accounted += taxis.n_committed() - before
    before = taxis.n_committed()
    start(gateways, taxis)
    start(gateways, taxis, "two")  # one rebalance
    wait_until(taxis.is_divided, "a share for both")
    taxis.drive(30)
    first = accounts(gateways)  # and another
    taxis.drive(taxis.n_left // PER_ROUND)
    assert taxis.n_sent == N
    wait_until(all_committed(taxis), "committed")
    second = accounts(gateways, "two")
    # What a killed one had settled was committed, or came again: nothing is lost or miscounted.
    n_accounted += first["received"] + second["received"]
    assert n_accounted == N
    print("\n", {"one": first, "two": second})  # noqa: T201  what it has shown
    check_outputs(taxis)


def check_outputs(taxis: Taxis) -> None:
    """Every member of a group has its echo, in order and in one partition, after the schema."""
    members: Counter[tuple[int, float]] = Counter()
    for message in taxis.published():
        said = json.loads(message.value())
        assert len(set(said["pseudonyms"])) >= said["k"] >= 2
        assert said["group"].encode() == message.key()
        members.update((short_id(name), said["time"]) for name in said["pseudonyms"])
    validator = jsonschema.Draft202012Validator(MESSAGE)
    echoed: Counter[tuple[int, float]] = Counter()
    times: defaultdict[bytes, list[str]] = defaultdict(list)
    part_of: dict[bytes, int] = {}
    taxis.out = taxis.echo
    echoes: list[Any] = taxis.published()
    for message in echoes:
        said = json.loads(message.value())
        validator.validate(said)
        core = said["payload"]["data"]["value"]["BasicSafetyMessage"]["coreData"]
        assert int(core["id"], 16) == short_id(message.key().decode())
        assert part_of.setdefault(message.key(), message.partition()) == message.partition()
        made = said["metadata"]["recordGeneratedAt"]
        echoed[int(core["id"], 16), datetime.fromisoformat(made).timestamp()] += 1
        times[message.key()].append(made)
    assert all(each == sorted(each) for each in times.values())
    assert members
    # A kill may come between a group and its echoes: some of one moment are missing then.
    assert not echoed - members
    assert len({time for _, time in members - echoed}) <= N_KILLS
    print({"regions": len(members), "echoes": len(echoes), "pseudonyms": len(times)})  # noqa: T201
