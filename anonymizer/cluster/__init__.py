"""Positions and records on Apache Kafka: bridges to MQTT, and workers that run the stages."""
