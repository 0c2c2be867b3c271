"""Where what stages send goes: nothing that a topic refuses can hold up the rest."""

from anonymizer.cluster.kafka_outflow import Destinations, kafka_outputs
from anonymizer.cluster.positions.raw_batches import decode_out, encode_out
from anonymizer.cluster.resident import StageEvents
from anonymizer.cluster.runner import Addressed
from anonymizer.cluster.stage import Send
from anonymizer.cluster.topics import key_of, topic_by_kind
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings

SETTINGS = Settings.model_validate(
    {
        "inputs": [{"topic": "kafka:raw", "echo": "coarse"}],
        "output": {"topic": "kafka:cloaked"},
        "streams": [
            {
                "name": "trucks",
                "sources": [{"name": "gps", "tells": ["speed"]}],
                "attributes": [{"name": "speed", "lo": 0.0, "hi": 100.0, "step": 1.0}],
            }
        ],
    }
)


def destinations() -> tuple[Destinations, StageEvents]:
    counts = StageEvents()
    found = Destinations(topic_by_kind(SETTINGS), kafka_outputs(SETTINGS), counts)
    found.largest = {"cloaked": 2_000, "coarse": 2_000}
    return found, counts


def test_positions_go_to_the_topics_of_the_operator_and_classes_to_bridges() -> None:
    to, counts = destinations()
    classes = Outgoing("anonymized/trucks", b"of MQTT")
    messages = [
        Outgoing(SETTINGS.output.topic, b"group", key="g1"),
        classes,
        Outgoing("coarse", b"point"),
    ]
    sent = list(to.of(Send("out", 1, encode_out(messages))))
    assert sent[:2] == [Addressed("cloaked", b"g1", b"group"), Addressed("coarse", None, b"point")]
    [rest] = sent[2:]
    assert rest[:2] == ("anonymizer.out", key_of("out", 1, 4))
    assert decode_out(rest.value) == [classes]
    assert counts.n_dropped.total() == 0


def test_a_message_that_its_topic_would_refuse_is_left_out_and_counted() -> None:
    to, counts = destinations()
    messages = [Outgoing("coarse", bytes(n), key="p") for n in (976, 977)]
    assert [len(each.value) for each in to.of(Send("out", 0, encode_out(messages)))] == [976]
    assert counts.n_dropped["too_large"] == 1


def test_what_is_for_stages_is_not_touched() -> None:
    to, _ = destinations()
    assert list(to.of(Send("lane", 0, b"B"))) == [
        Addressed("anonymizer.lanes", key_of("lane", 0, 1), b"B")
    ]
