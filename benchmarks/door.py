"""Benchmark of the way in: from the bytes of a socket to columns with the slots of the devices.

And what it costs to judge which of the positions are believed.
"""

import json
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np

from anonymizer.algorithms.positions.trust import Claims
from anonymizer.codecs import CODECS
from anonymizer.domain.arrays import Int32Array, UInt8Array
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.packed_deliveries import Packed, PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.decoding import Decoder, date_the_undated
from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.pipeline.positions.tick.mover_limits import MoverLimits
from anonymizer.pipeline.positions.tick.trusted_devices import TrustedDevices
from anonymizer.settings import InputSettings, LimitSettings, PresenceSettings
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
_KEPT_S = 600.0
_NOW_S = 1_800_000_001.0
"""Just after the times of the payloads."""
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
        self.expected = Outcome.SUPPRESSED__AGE_UNKNOWN if batch else Outcome.HELD
        topic, device_from = ("feed", "payload") if batch else ("positions/{device}", "topic")
        given = {"topic": topic, "codec": codec, "device_from": device_from}
        limits = LimitSettings(max_ids_per_topic=n)
        inputs = [InputSettings.model_validate(given)]
        router = TopicRouter(inputs)
        self._decoder = Decoder(router, limits, Ledger())
        self._devices = DeviceTable(secret=b"", max_devices=n)
        self._limits = MoverLimits(inputs, PresenceSettings())
        self._trust = TrustedDevices(self._devices.keys, kept_s=_KEPT_S)
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

    def columns(self) -> tuple[Decoded, Int32Array]:
        """Return the positions of all messages, and the slots of their devices."""
        batches = [Arrivals(0.0, messages) for messages in self.receive()]
        decoded = self._decoder.decode(batches).of[0]
        return decoded, decoded.slots(np.arange(len(decoded.sender)), self._devices)

    def judge(self, decoded: Decoded, slot: Int32Array) -> UInt8Array:
        """Return what the stage of trust says of each position, as `Admission` asks it."""
        n = len(slot)
        outcome = self._limits.plausible(decoded, now=_NOW_S)
        ts = date_the_undated(decoded.ts, slot, since=_NOW_S - 1.0, now=_NOW_S)
        message = np.arange(n) if decoded.message is None else decoded.message
        place, undated = (decoded.lat, decoded.lon), np.isnan(decoded.ts)
        claims = Claims(slot, ts, *place, undated, decoded.hearsay, message)
        max_mps = self._limits.max_mps(decoded.input, n)
        return outcome | self._trust.judge(claims, max_mps=max_mps, now=_NOW_S)


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
        decoded, slot = case.columns()
        agree(decoded.lat.tolist(), [fix.lat for fix in fixes if isinstance(fix, Fix)])
        loads = msgspec.msgpack.decode if case.codec == "msgpack" else json.loads
        loads_us = _us(_each(loads, case.payloads), n)
        columns_us = _us(case.columns, n)
        ratios[f"door {name}"] = columns_us / loads_us
        each_us = (_us(_each(codec, case.payloads), n), _us(case.receive, n), columns_us)
        agree(set(case.judge(decoded, slot).tolist()), {case.expected})
        trust_us = _us(partial(case.judge, decoded, slot), n)
        n_bytes = round(sum(map(len, case.payloads)) / n)
        rows.append((name, n_bytes, loads_us, *each_us, trust_us, columns_us / loads_us))
    return Table(
        f"From the socket to columns, {n:,} positions: µs of CPU a position",
        ("messages", "bytes", "loads", "codec", "packets", "columns", "trust", "columns/loads"),
        rows,
        (
            "loads: json.loads of each message; of MessagePack, msgspec to plain objects.",
            "codec: each message by its codec, which reads what the compiled reader leaves.",
            "packets: MQTT alone, with acknowledgements at QoS 1.",
            "columns: everything, to places, times and the slots of the devices.",
            "trust: besides, whether each is believed; 100 of one time are sorted as a poll.",
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
