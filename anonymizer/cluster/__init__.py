"""The positions flow on Apache Kafka: bridges to MQTT, and workers that run its stages."""
