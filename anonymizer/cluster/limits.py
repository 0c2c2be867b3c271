"""What `anonymizer serve` can do and the cluster cannot: refused before anything is connected."""

from anonymizer.errors import SettingsError
from anonymizer.pipeline.records.window_ranges import check_streams
from anonymizer.settings import Settings


def check_cluster(settings: Settings) -> None:
    """Check that a cluster can do what the settings ask for.

    Raises
    ------
    SettingsError
        If it cannot; the message names the first key.
    """
    asked = {
        "readings": bool(settings.readings),
        "counts.enabled": settings.counts.enabled,
        "forms.cloudevents": settings.forms.cloudevents,
        "forms.ngsi_ld_topic": settings.forms.ngsi_ld_topic is not None,
        "home_assistant.enabled": settings.home_assistant.enabled,
        "current.every_s": settings.current.every_s > 0,
        "trips.enabled": settings.trips.enabled,
        "zones": bool(settings.zones),
        "device_zones.enabled": settings.device_zones.enabled,
        'inputs: kind = "fixed"': any(each.kind == "fixed" for each in settings.inputs),
    }
    for key, is_asked in asked.items():
        if is_asked:
            raise SettingsError(f"{key}: is not possible in a cluster; use `anonymizer serve`")
    check_streams(settings.streams)
    if not settings.inputs:
        return
    if len(settings.inputs) != 1:
        raise SettingsError(
            "inputs: a cluster has exactly one, so that all positions of a device have one topic"
        )
    # The topic of a message decides which source locates its device.
    if {"+", "#"} & set(settings.inputs[0].topic.split("/")):
        raise SettingsError(
            "inputs.topic: in a cluster + and # could give a device several topics; name the level,"
            " {device} or another name in braces"
        )
