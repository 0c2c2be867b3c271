"""Benchmark of the way in: from the bytes of a socket to columns with the slots of the devices."""

import json
import time
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ports import Delivery, Outgoing, Packed, PackedDeliveries
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import InputSettings, LimitSettings
from anonymizer.transport.packets import (
    PUBACK,
    PacketReader,
    Publish,
    Publishes,
    encode_acknowledgements,
    encode_publish,
)
from benchmarks.payloads import batches, messages
from benchmarks.tables import Table
from benchmarks.timing import agree

_RUNS = 7
_READ_BYTES = 1 << 16
_BATCH = 100


class _Case:
    """Messages of one kind, and the state of a gateway that has seen their senders before.

    Parameters
    ----------
    codec, payloads
        The codec, and the payloads.
    n
        Positions in all of them.
    qos
        Of the messages.
    batch
        Whether a message has positions of many devices.
    """

    def __init__(
        self, codec: str, payloads: Sequence[bytes], *, n: int, qos: int, batch: bool
    ) -> None:
        self.codec, self.payloads, self.n, self.qos = codec, payloads, n, qos
        topic, device_from = ("feed", "payload") if batch else ("positions/{device}", "topic")
        given = {"topic": topic, "codec": codec, "device_from": device_from}
        limits = LimitSettings(max_ids_per_topic=n)
        router = TopicRouter([InputSettings.model_validate(given)])
        self._decoder = Decoder(router, limits, Ledger())
        self._devices = DeviceTable(secret=b"", max_devices=n)
        self.stream = b"".join(
            encode_publish(
                Outgoing(topic.replace("{device}", f"device-{i}"), payload),
                mid=(1 + i % 0xFFFF) * qos,
                version5=True,
            )
            for i, payload in enumerate(payloads)
        )

    def receive(self) -> list[Sequence[Delivery]]:
        """Split the stream into messages, in reads of 64 KiB; acknowledge them at QoS 1."""
        reader = PacketReader(version5=True, limit_bytes=1 << 20)
        received: list[Sequence[Delivery]] = []
        for start in range(0, len(self.stream), _READ_BYTES):
            for packet in reader.feed(self.stream[start : start + _READ_BYTES]):
                if isinstance(packet, Publishes):
                    columns = Packed(packet.bounds, packet.mid, packet.retained)
                    received.append(PackedDeliveries(packet.stream, columns))
                    encode_acknowledgements(PUBACK, packet.mid[packet.mid > 0].tolist())
                elif isinstance(packet, Publish):  # the last few of the stream
                    received.append([Delivery(packet.topic, packet.payload, packet.mid)])
        return received

    def columns(self) -> Decoded:
        """Return the positions of all messages, after their devices have got their slots."""
        batches = [Arrivals(0.0, messages) for messages in self.receive()]
        decoded = self._decoder.decode(batches).of[0]
        decoded.slots(np.arange(len(decoded.sender)), self._devices)
        return decoded


def door(n: int) -> Table:
    """Compare the way in with `json.loads` of the same payloads, for `n` positions."""
    cases = [
        ("native", _Case("native", messages("native", n), n=n, qos=0, batch=False)),
        ("native, QoS 1", _Case("native", messages("native", n), n=n, qos=1, batch=False)),
        *(
            (codec, _Case(codec, messages(codec, n), n=n, qos=0, batch=False))
            for codec in ("owntracks", "home_assistant")
        ),
        *(
            (
                f"{codec}, {_BATCH} in a message",
                _Case(codec, batches(codec, n, of=_BATCH), n=n, qos=0, batch=True),
            )
            for codec in ("native", "msgpack")
        ),
    ]
    rows: list[tuple[str | float, ...]] = []
    ratios: dict[str, float] = {}
    for name, case in cases:
        codec = CODECS[case.codec]
        fixes = [fix for payload in case.payloads for fix in codec(payload)]
        agree(case.columns().lat.tolist(), [fix.lat for fix in fixes if isinstance(fix, Fix)])
        loads = msgspec.msgpack.decode if case.codec == "msgpack" else json.loads
        loads_us = _us(_each(loads, case.payloads), n)
        columns_us = _us(case.columns, n)
        ratios[f"door {name}"] = columns_us / loads_us
        each_us = (_us(_each(codec, case.payloads), n), _us(case.receive, n), columns_us)
        n_bytes = round(sum(map(len, case.payloads)) / n)
        rows.append((name, n_bytes, loads_us, *each_us, columns_us / loads_us))
    return Table(
        f"From the socket to columns, {n:,} positions: µs of CPU a position",
        ("messages", "bytes", "loads", "codec", "packets", "columns", "columns/loads"),
        rows,
        (
            "loads: json.loads of each message; of MessagePack, msgspec to plain objects.",
            "codec: each message by its codec, which reads what the compiled reader leaves.",
            "packets: MQTT alone, with acknowledgements at QoS 1.",
            "columns: everything, to places, times and the slots of the devices.",
        ),
        ratios,
    )


def _each(read: Callable[[bytes], object], payloads: Sequence[bytes]) -> Callable[[], object]:
    return lambda: [read(payload) for payload in payloads]


def _us(work: Callable[[], object], n: int) -> float:
    """Return the least CPU time of a position over several runs, in microseconds."""
    times = []
    for _ in range(_RUNS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times) / n * 1e6
