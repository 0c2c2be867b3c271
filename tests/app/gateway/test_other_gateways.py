"""Two gateways that publish the same devices, each in groups of its own, on a Mosquitto."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.app.gateway.service import raise_known
from anonymizer.errors import GuaranteeError
from anonymizer.pipeline.ports import Delivery
from anonymizer.settings import BrokerSettings, Settings
from anonymizer.transport import other_gateways
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from anonymizer.transport.other_gateways import MARK, OtherGateways
from tests.app.gateway.started import NETWORK, running
from tests.end_to_end import DEADLINE_S, quick
from tests.pipeline.records.made import FLEET

TOPIC = "anonymizer/probe"


def gateway_of(url: str, table: dict[str, str], **tables: Any) -> Gateway:  # noqa: ANN401
    """Return a gateway with more of the table of the broker, and other tables."""
    settings = Settings.model_validate(quick(url, broker={"url": url, **table}, **tables))
    return Gateway(settings, NETWORK, declared_streams(settings))


async def ended(gateway_run: asyncio.Task[None]) -> None:
    """Wait for the end of a gateway, and raise the error that its operator reads."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            await gateway_run
    except BaseExceptionGroup as group:
        raise_known(group)
        raise


@pytest.mark.parametrize("fixed_id", [False, True])
async def test_of_two_gateways_the_younger_ends_before_it_has_taken_in_anything(
    broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, fixed_id: bool
) -> None:
    table = {"client_id": "0123456789abcdef" * 2} if fixed_id else {}
    elder, younger = (
        gateway_of(broker.url, table, streams=[FLEET], store={"path": tmp_path / name})
        for name in ("elder", "younger")
    )
    async with running(elder):
        # On a busy machine the elder answers later than the younger one would wait.
        for patience in ("_ANSWER_S", "_PATIENCE_S"):
            monkeypatch.setattr(other_gateways, patience, DEADLINE_S)
        serving = asyncio.create_task(younger.run(asyncio.Event()), name="the younger")
        with pytest.raises(GuaranteeError, match=r"^broker\.status_topic: another gateway"):
            await ended(serving)
        assert not younger._link.counts.n_connections
        assert sum(bool(re.search(r" as \S+-records", line)) for line in broker.log) == 1
        assert (elder._link.connected, elder._link.counts.n_connections) == (True, 1)


async def test_gateways_with_status_topics_of_their_own_leave_each_other_alone(
    broker: LocalBroker,
) -> None:
    tables = [{"status_topic": f"{name}/status"} for name in ("north", "south")]
    north, south = (gateway_of(broker.url, table) for table in tables)
    async with running(north), running(south):
        for others in (north._others, south._others):
            assert others is not None
            async with asyncio.timeout(DEADLINE_S):
                await others._decided.wait()
            assert (others._is_heard, others.notes) == (True, [])
            assert not others._elder.is_set() | others._due.is_set()


async def test_a_gateway_that_may_not_read_the_topic_goes_on_and_says_so(tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    rules.write_text("topic readwrite positions/#\ntopic write anonymizer/#\n")
    rules.chmod(0o600)
    broker = mosquitto(tmp_path, "allow_anonymous true", f"acl_file {rules}")
    await broker.start()
    gateway = gateway_of(broker.url, {})
    async with running(gateway):
        assert any(TOPIC in note for note in gateway._sides.notes())
    await broker.stop()


class Said(OtherGateways):
    """One without a broker: what it says goes to the others."""

    def __init__(self, started_ns: int) -> None:
        self.n_found = 0
        super().__init__(
            BrokerSettings(), topic=TOPIC, key=bytes(32), started_ns=started_ns, found=self._count
        )

    def _count(self) -> None:
        self.n_found += 1

    def hear(self, said: Sequence[bytes]) -> None:
        self._deliver([Delivery(TOPIC, each, 0) for each in said])


@given(starts=st.lists(st.integers(0, 2), min_size=1, max_size=5), data=st.data())
def test_of_any_gateways_one_stays_whatever_each_hears_first(
    starts: list[int], data: st.DataObject
) -> None:
    gateways = [Said(started) for started in starts]
    for gateway in gateways:
        others = [each._own for each in gateways if each is not gateway]
        gateway.hear(data.draw(st.permutations(others * 2)))
    [stays] = [each for each in gateways if not each._elder.is_set()]
    assert stays._own == min(each._own for each in gateways)
    assert stays.n_found == (len(gateways) > 1)


@given(st.lists(st.binary(max_size=80).map(lambda tail: MARK + tail) | st.binary(max_size=20)))
def test_what_no_gateway_says_ends_none(said: list[bytes]) -> None:
    gateway = Said(1)
    gateway.hear(said)
    assert not gateway._elder.is_set()
