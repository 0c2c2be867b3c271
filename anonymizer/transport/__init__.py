"""Transport: messages in and out over MQTT, and an in-memory broker that replaces it."""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.transport.link import MqttLink as MqttLink
    from anonymizer.transport.memory import MemoryBroker as MemoryBroker
    from anonymizer.transport.memory import MemoryLink as MemoryLink

__getattr__ = on_first_use(__name__, {
    "memory": ("MemoryBroker", "MemoryLink"),
    "link": ("MqttLink",),
})  # fmt: skip
