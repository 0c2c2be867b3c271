"""What `anonymizer serve` can do and the cluster cannot: refused before anything is connected."""

from anonymizer.errors import SettingsError
from anonymizer.pipeline.positions.decode.topics import subscription
from anonymizer.pipeline.records.topics import topic_filter
from anonymizer.settings import Settings
from anonymizer.settings.base import TopicFilters


def reads_mqtt(settings: Settings) -> bool:
    """Return whether bridges are needed: anything that is read or published is of MQTT."""
    of_positions = any(each.kafka is None for each in settings.inputs)
    return of_positions or any(each.kafka is None for each in settings.streams)


def check_cluster(settings: Settings) -> None:
    """Check that a cluster can do what the settings ask for.

    Raises `SettingsError` if it cannot; the message names the first key.
    """
    alone = {
        **{
            f'output.forms = "{form}"': form in settings.output.forms
            for form in ("density", "home_assistant")
        },
        "trips.learn_days": bool(settings.trips.learn_days),
    }
    for key, is_asked in alone.items():
        if is_asked:
            raise SettingsError(f"{key}: is not possible in a cluster; use `anonymizer serve`")
    _check_subscriptions(settings)


def _check_subscriptions(settings: Settings) -> None:
    """Check that no message comes by two subscriptions, nor to one of two that both need it."""
    by_mqtt = [each.topic for each in settings.inputs if each.kafka is None]
    before = TopicFilters[str]()
    for other in by_mqtt:
        for one in before.overlapping(other):
            raise SettingsError(
                f"inputs: topic: a message can match both {one} and {other}. In a cluster each"
                " shared subscription gets a copy, and the second one would count as a duplicate:"
                " write topics of which no message matches two, or one [[inputs]] for both"
            )
        before.add(other, other)
    of_streams = {
        topic_filter(source)
        for stream in settings.streams
        for source in stream.sources
        if source.kafka is None
    }
    for topic in by_mqtt:
        if subscription(topic) in of_streams:
            raise SettingsError(
                f"inputs: topic: {topic} is the topic of a source of records, too. In a cluster"
                " each message of it would come to one of the two: let devices publish positions"
                " and records on different topics"
            )
