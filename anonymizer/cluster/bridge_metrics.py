"""What a bridge has passed on, and its Prometheus metrics."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass
class Passed:
    """Messages of a bridge since its start."""

    n_received: int = 0
    n_stored: int = 0
    """`n_received`, `n_stored`: from MQTT, and those of them that Kafka has."""
    n_waiting: int = 0
    n_bytes: int = 0
    """`n_waiting`, `n_bytes`: sent to Kafka, which does not have them yet, and the memory that they
    take."""
    n_published: int = 0
    """To MQTT, and the broker has them."""
    n_refused: Counter[str] = field(
        default_factory=lambda: Counter({"malformed": 0, "too_large": 0, "not_taken": 0})
    )
    """Given up on the way to MQTT, by reason."""
    is_paused: bool = False
    """Whether nothing is read from MQTT because too much waits for Kafka."""


PUBLIC_OF_BRIDGES = frozenset(
    {
        "anonymizer_broker_connected",
        "anonymizer_bridge_paused",
        "anonymizer_bridge_wait_seconds",
        "anonymizer_bridge_partitions",
        "anonymizer_bridge_lag",
        "anonymizer_bridge_releases_lag",
        "anonymizer_bridge_refused",
    }
)
"""Anybody may see whether it works, and what of the output it has still to read."""


class BridgeCollector(Collector):
    """Prometheus collector of a bridge.

    `lag` and `owned` return how many messages in `out` it has still to read, and of how many
    partitions; `waited_s` for how many seconds Kafka has taken nothing.
    """

    def __init__(
        self,
        passed: Passed,
        *,
        connected: Callable[[], bool],
        lag: Callable[[], int],
        owned: Callable[[], int],
        releases_lag: Callable[[], int],
        waited_s: Callable[[], float],
    ) -> None:
        self._passed = passed
        self._connected = connected
        self._lag = lag
        self._owned = owned
        self._releases_lag = releases_lag
        self._waited_s = waited_s

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the bridge."""
        passed = self._passed
        yield GaugeMetricFamily(
            "anonymizer_broker_connected",
            "1 while both connections to the MQTT broker are there.",
            value=self._connected(),
        )
        yield GaugeMetricFamily(
            "anonymizer_bridge_paused",
            "1 while nothing is read from MQTT because too much waits for Kafka.",
            value=passed.is_paused,
        )
        yield GaugeMetricFamily(
            "anonymizer_bridge_wait_seconds",
            "Time for which Kafka has taken nothing of what waits for it; 0: nothing waits.",
            value=self._waited_s(),
        )
        yield GaugeMetricFamily(
            "anonymizer_bridge_partitions",
            "Partitions of the topic `out` that this bridge reads.",
            value=self._owned(),
        )
        yield GaugeMetricFamily(
            "anonymizer_bridge_lag",
            "Messages in these partitions that are still to be read.",
            value=self._lag(),
        )
        yield GaugeMetricFamily(
            "anonymizer_bridge_releases_lag",
            "Messages about releases of records that queries to this bridge do not see yet.",
            value=self._releases_lag(),
        )
        refused = CounterMetricFamily(
            "anonymizer_bridge_refused",
            "Messages given up on the way to MQTT: too large, refused, or malformed.",
            labels=["reason"],
        )
        for reason, n in passed.n_refused.items():
            refused.add_metric([reason], n)
        yield refused
        yield GaugeMetricFamily(
            "anonymizer_bridge_waiting_bytes",
            "Memory of messages that Kafka does not have yet.",
            value=passed.n_bytes,
        )
        for name, text, n in (
            ("received", "Messages received from MQTT.", passed.n_received),
            ("stored", "Messages from MQTT that Kafka has.", passed.n_stored),
            ("published", "Messages published to MQTT.", passed.n_published),
        ):
            yield CounterMetricFamily(f"anonymizer_bridge_{name}", text, value=n)
