"""Messages in and out: MQTT, and its stand-in in memory."""

from anonymizer.transport.memory import MemoryBroker, MemoryLink
from anonymizer.transport.mqtt import MqttLink

__all__ = ["MemoryBroker", "MemoryLink", "MqttLink"]
