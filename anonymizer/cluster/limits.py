"""What `anonymizer serve` can do and the cluster cannot: refused before anything is connected."""

from anonymizer.cluster.records.window_ranges import check_streams
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings


def check_cluster(settings: Settings) -> None:
    """Check that a cluster can do what the settings ask for.

    Raises
    ------
    SettingsError
        If it cannot; the message names the first key.
    """
    mobile = [each for each in settings.inputs if each.kind == "mobile"]
    alone = "use `anonymizer serve`"
    beside = "run `anonymizer serve` with these inputs alone beside the cluster"
    refused = {
        'counts.privacy = "dp"': (
            settings.counts.enabled and settings.counts.privacy == "dp",
            'use counts.privacy = "k", or `anonymizer serve`',
        ),
        "forms.cloudevents": (settings.forms.cloudevents, alone),
        "forms.ngsi_ld_topic": (settings.forms.ngsi_ld_topic is not None, alone),
        "forms.home_assistant": (settings.forms.home_assistant is not None, alone),
        "current.every_s": (settings.current.every_s > 0, alone),
        "inputs.payload.join_s": (
            any(each.payload and each.payload.join_s for each in settings.inputs),
            alone,
        ),
        "output.kafka and streams.kafka": (
            settings.in_kafka or any(each.kafka for each in settings.streams),
            "bridges read MQTT: " + alone,
        ),
        'inputs: kind = "fixed", unless publish = "public"': (
            any(each.kind == "fixed" and each.publish == "cloaked" for each in settings.inputs),
            beside,
        ),
    }
    for key, (is_asked, instead) in refused.items():
        if is_asked:
            raise SettingsError(f"{key}: is not possible in a cluster; {instead}")
    check_streams(settings.streams)
    if len(mobile) > 1:
        raise SettingsError(
            "inputs: a cluster has at most one input of mobile devices, so that all positions of a"
            " device have one topic"
        )
    # The topic of a message decides which source locates its device.
    if any({"+", "#"} & set(each.topic.split("/")) for each in settings.inputs):
        raise SettingsError(
            "inputs.topic: in a cluster + and # could give a device several topics; name the level,"
            " {device} or another name in braces"
        )
