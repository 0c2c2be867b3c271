"""Classes of records, published while a backlog of records is read, on a Mosquitto."""

from pathlib import Path

from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import LAST, counted, publish, seen_classes, serving_records
from tests.app.gateway.records import compiled
from tests.end_to_end import eventually, witness
from tests.pipeline.records.made import traffic

__all__ = ["compiled"]


async def test_no_class_is_published_twice_while_a_backlog_of_records_is_read_slowly(
    broker: LocalBroker, tmp_path: Path
) -> None:
    parts = list(traffic(n_vehicles=120, n_windows=12, seed=3))
    slowly = {"idle_s": 600, "method": "best", "budget_s": 0.2}
    async with (
        witness(broker.url) as watching,
        serving_records(
            # More waits than is in flight at a time; acknowledgements would be read after it.
            tmp_path, broker.url, fleet=slowly, tick={"interval_s": 0.001},
        ) as gateway,
    ):  # fmt: skip
        await publish(broker.url, [*parts, *LAST])
        await gateway.program.logged("window closed", times=12)
        n_classes = sum(line["classes"] for line in gateway.program.events("window closed"))
        await watching.until(lambda: len(seen_classes(watching)) >= n_classes)
        await eventually(
            lambda: counted(gateway),
            lambda now: (
                now["anonymizer_record_parts_total", "fleet", "published", ""] == len(parts)
            ),
        )
    assert len(seen_classes(watching)) == len(set(seen_classes(watching))) == n_classes
