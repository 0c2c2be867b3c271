"""Programs beside the gateway: `python -m benchmarks.relays NAME URL QOS`, until SIGTERM.

They receive what the gateway receives, publish each message under another topic, and hide nobody.
On SIGUSR1 they print how many messages they have received. `bare` does nothing else, so it shows
what the broker and the machine can carry. `reads` drops all but the probes: the least that any
receiver costs. `paho` and `aiomqtt` are what a user would write without a gateway: they replace the
ids of devices by keyed hashes.
"""

import asyncio
import secrets
import signal
import sys
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import numpy as np
from aiomqtt import Client as AiomqttClient
from numpy.typing import NDArray
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from anonymizer.algorithms.kernels import inner_kernel, kernel

PREFIX = "r/"
"""What relays publish under: this, and the topic with or without the id of the device."""
BATCHES = "positions/batch"
"""Topic on which the simulator sends messages with many positions."""
SUBSCRIBED = ("positions/+", "probes/+")
READY = "ready"

Bytes: TypeAlias = NDArray[np.uint8]

_PUBLISH = 3
_CONNACK, _SUBACK = 0x20, 0x90
_MOST_MIDS = 0xFFFF
_HASH_BYTES = 9


@inner_kernel
def _remaining_length(stream: Bytes, at: int, n_bytes: int) -> tuple[int, int]:
    """Return the remaining length of a packet and where it begins; -1 if it is cut off."""
    length, shift, head = 0, 0, at + 1
    while head < n_bytes:
        byte = int(stream[head])
        head += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return length, head
    return 0, -1


@inner_kernel
def _copy(source: Bytes, start: int, end: int, out: Bytes, to: int) -> int:
    for i in range(start, end):
        out[to + i - start] = source[i]
    return to + end - start


@inner_kernel
def _begin(out: Bytes, to: int, first: int, rest: int, n_topic: int) -> int:
    """Write a PUBLISH up to its topic, of which `PREFIX` is the beginning."""
    out[to] = first
    to += 1
    while rest > 0x7F:
        out[to] = rest & 0x7F | 0x80
        rest >>= 7
        to += 1
    out[to] = rest
    out[to + 1] = n_topic >> 8
    out[to + 2] = n_topic & 0xFF
    out[to + 3] = 114  # r
    out[to + 4] = 47  # /
    return to + 5


@kernel
def relayed(  # noqa: PLR0917  numba knows no keyword-only parameters
    stream: Bytes,
    n_bytes: int,
    out: Bytes,
    mid: int,
    qos: int,
    probes_only: bool,  # noqa: FBT001  likewise
) -> tuple[int, int, int, int]:
    """Write PUBLISH packets anew with `PREFIX` before their topics, and acknowledge them.

    Parameters
    ----------
    stream, n_bytes
        MQTT 3.1.1 packets, the last one perhaps not whole. Others than PUBLISH are skipped.
    out
        Room for the answer, three times the size of the stream.
    mid
        The last used packet identifier.
    qos
        Of all messages, 0 or 1.
    probes_only
        Whether only probes are written. All messages are counted and acknowledged.

    Returns
    -------
    n_read, n_written, n_messages, mid
        Bytes of whole packets, bytes of the answer, messages, and the last used identifier.
    """
    at, to, n = 0, 0, 0
    while at < n_bytes:
        length, head = _remaining_length(stream, at, n_bytes)
        if head < 0 or head + length > n_bytes:
            break
        if stream[at] >> 4 == _PUBLISH:
            topic = head + 2
            body = topic + (int(stream[head]) << 8 | int(stream[head + 1]))
            n += 1
            if not probes_only or stream[topic + 1] == 114:  # the r of probes
                to = _begin(out, to, _PUBLISH << 4 | qos << 1, length + 2, body - topic + 2)
                to = _copy(stream, topic, body, out, to)
                if qos:
                    mid = mid % _MOST_MIDS + 1
                    out[to] = mid >> 8
                    out[to + 1] = mid & 0xFF
                    to += 2
                to = _copy(stream, body + 2 * qos, head + length, out, to)
            if qos:
                out[to] = 0x40  # PUBACK
                out[to + 1] = 2
                to = _copy(stream, body, body + 2, out, to + 2)
        at = head + length
    return at, to, n, mid


class _BareRelay(asyncio.Protocol):
    """The kernel on a socket."""

    def __init__(self, qos: int, *, probes_only: bool) -> None:
        self.n_messages = 0
        self._probes_only = probes_only
        self._expected = [_SUBACK, _CONNACK]
        self._qos = qos
        self._mid = 0
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        client_id = b"bare-relay"
        self._transport.write(
            _packet(0x10, b"\0\x04MQTT\x04\x02\0\0" + len(client_id).to_bytes(2, "big") + client_id)
        )

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        if self._expected and data[0] == self._expected[-1] == _CONNACK:
            filters = b"".join(
                len(topic).to_bytes(2, "big") + topic.encode() + bytes([self._qos])
                for topic in SUBSCRIBED
            )
            self._transport.write(_packet(0x82, b"\0\1" + filters))
            self._expected.pop()
        elif self._expected and data[0] == self._expected[-1]:
            self._expected.pop()
            print(READY, flush=True)
        stream = np.frombuffer(self._rest + data, np.uint8)
        out = np.empty(3 * len(stream) + 16, np.uint8)
        read, n_out, n, self._mid = relayed(
            stream, len(stream), out, self._mid, self._qos, self._probes_only
        )
        self._rest = stream[read:].tobytes()
        self.n_messages += n
        if n_out:
            self._transport.write(out[:n_out].tobytes())
        # As the gateway does: few large reads cost less than many small ones.
        self._transport.pause_reading()
        asyncio.get_running_loop().call_later(0.005, self._transport.resume_reading)


def _packet(kind: int, body: bytes) -> bytes:
    return bytes([kind, len(body)]) + body  # shorter than 128 bytes


async def reads(host: str, port: int, qos: int) -> None:
    """Receive with a compiled loop until SIGTERM, and relay probes alone."""
    await bare(host, port, qos, probes_only=True)


async def bare(host: str, port: int, qos: int, *, probes_only: bool = False) -> None:
    """Relay with a compiled loop until SIGTERM."""
    relayed(np.zeros(2, np.uint8), 0, np.zeros(2, np.uint8), 0, qos, probes_only)  # compile
    relay = _BareRelay(qos, probes_only=probes_only)
    ended = _until_told(lambda: relay.n_messages)
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: relay, host, port)
    await ended.wait()
    transport.close()


async def paho(host: str, port: int, qos: int) -> None:
    """Hash the ids of devices in the loop of a paho client until SIGTERM."""
    key, n_messages = secrets.token_bytes(32), 0
    client = Client(CallbackAPIVersion.VERSION2)

    def on_message(_client: Client, _data: Any, message: MQTTMessage) -> None:  # noqa: ANN401
        nonlocal n_messages
        n_messages += 1
        level, _, device = message.topic.partition("/")
        name = blake2b(device.encode(), digest_size=_HASH_BYTES, key=key).hexdigest()
        client.publish(f"{PREFIX}{level}/{name}", message.payload, qos)

    def on_connect(*_: object) -> None:
        client.subscribe([(topic, qos) for topic in SUBSCRIBED])

    client.on_message = on_message
    client.on_connect = on_connect
    client.on_subscribe = lambda *_: print(READY, flush=True)
    client.max_inflight_messages_set(_MOST_MIDS)
    ended = _until_told(lambda: n_messages)
    client.connect(host, port)
    client.loop_start()
    await ended.wait()
    client.disconnect()
    client.loop_stop()


async def aiomqtt(host: str, port: int, qos: int) -> None:
    """Hash the ids of devices in the loop of an aiomqtt client until SIGTERM."""
    key, n_messages = secrets.token_bytes(32), 0
    ended = _until_told(lambda: n_messages)
    async with AiomqttClient(host, port, max_inflight_messages=_MOST_MIDS) as client:

        async def relay() -> None:
            nonlocal n_messages
            async for message in client.messages:
                n_messages += 1
                level, _, device = message.topic.value.partition("/")
                name = blake2b(device.encode(), digest_size=_HASH_BYTES, key=key).hexdigest()
                await client.publish(f"{PREFIX}{level}/{name}", message.payload, qos)

        for topic in SUBSCRIBED:
            await client.subscribe(topic, qos)
        print(READY, flush=True)
        relaying = asyncio.create_task(relay(), name="relay")
        await ended.wait()
        relaying.cancel()


def _until_told(n_messages: Callable[[], int]) -> asyncio.Event:
    """Return an event that SIGTERM sets, and print the number of messages on SIGUSR1."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: print(n_messages(), flush=True))
    return ended


RELAYS = {"bare": bare, "reads": reads, "paho": paho, "aiomqtt": aiomqtt}


def main(name: str, url: str, qos: str) -> None:
    """Run a relay; print `READY` when it receives."""
    address = urlsplit(url)
    asyncio.run(RELAYS[name](address.hostname or "", address.port or 1883, int(qos)))


if __name__ == "__main__":
    main(*sys.argv[1:])
