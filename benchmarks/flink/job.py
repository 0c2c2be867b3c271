"""The stages as two keyed functions of PyFlink, from Kafka to Kafka, exactly once.

`flink run -py job.py -pyfs packed.py,stage_function.py SETTINGS N_PARTITIONS N_BEGUN`, in an
environment that has `apache-flink` and `anonymizer`. N_BEGUN counts the Kafkas that there were:
where the last one was read means nothing in the next. Raw messages come in `<prefix>.raw`. What
sources send goes to lanes within the job; what these and streams send goes to `<prefix>.sent`, from
which the job reads what is for a stage (a report of a lane to its sources, a window that is due),
and an analyst what is published.
"""

import sys
from pathlib import Path

from packed import FIRST, SECOND, key_of
from pyflink.common import Types, WatermarkStrategy
from pyflink.common.serialization import ByteArraySchema
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from stage_function import BYTES, StageFunction, is_for_stages

from anonymizer.settings import load_settings

_MESSAGE_BYTES = str(16 << 20)


def main(config: str, n_partitions: int, n_begun: int) -> None:
    """Submit the job."""
    kafka = load_settings(Path(config)).kafka
    raw, sent = f"{kafka.group}.raw", f"{kafka.group}.sent"
    places = [(raw, n) for n in range(n_partitions)] + [(sent, 0)]
    # Fail if Kafka does not have what comes next, rather than begin elsewhere.
    begin = KafkaOffsetsInitializer.offsets(
        {KafkaTopicPartition(*place): 0 for place in places}, KafkaOffsetResetStrategy.NONE
    )
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_group_id(f"{kafka.group}.flink")
        .set_topics(raw, sent)
        .set_starting_offsets(begin)
        .set_value_only_deserializer(ByteArraySchema())
        .set_property("isolation.level", "read_committed")
        .set_property("max.partition.fetch.bytes", _MESSAGE_BYTES)
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(
            KafkaRecordSerializationSchema.builder()
            .set_topic(sent)
            .set_value_serialization_schema(ByteArraySchema())
            .build()
        )
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"{kafka.group}-{n_begun}")
        .set_property("transaction.timeout.ms", "600000")
        .set_property("compression.type", "lz4")
        .set_property("max.request.size", _MESSAGE_BYTES)
        .build()
    )
    environment = StreamExecutionEnvironment.get_execution_environment()
    stream = environment.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").uid(
        f"kafka-{n_begun}"
    )
    wanted = stream.filter(is_for_stages).uid("wanted")
    first = (
        wanted.key_by(key_of, Types.INT()).process(StageFunction(config, FIRST), BYTES).uid("first")
    )
    second = (
        first.key_by(key_of, Types.INT())
        .process(StageFunction(config, SECOND), BYTES)
        .uid("second")
    )
    second.sink_to(sink).uid(f"sent-{n_begun}")
    environment.execute("anonymizer")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
