"""Transport: messages in and out over MQTT, and an in-memory broker that replaces it."""

from anonymizer.transport.memory import MemoryBroker, MemoryLink
from anonymizer.transport.mqtt import MqttLink

__all__ = ["MemoryBroker", "MemoryLink", "MqttLink"]
