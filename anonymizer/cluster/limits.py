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
    alone = "use `anonymizer serve`"
    refused = {
        "trips.learn_days": (bool(settings.trips.learn_days), alone),
        "trips_out": (bool(settings.trips_out.every_s), alone),
        "forms.home_assistant": (settings.forms.home_assistant is not None, alone),
        "inputs.payload.join_s": (
            any(each.payload and each.payload.join_s for each in settings.inputs),
            alone,
        ),
        "output.kafka and streams.kafka": (
            settings.in_kafka or any(each.kafka for each in settings.streams),
            "bridges read MQTT: " + alone,
        ),
    }
    for key, (is_asked, instead) in refused.items():
        if is_asked:
            raise SettingsError(f"{key}: is not possible in a cluster; {instead}")
    check_streams(settings.streams)
