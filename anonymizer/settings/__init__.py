"""Settings: everything an operator may set, and the file and environment it is read from."""

from anonymizer.settings.analysts import (
    CountSettings,
    CurrentSettings,
    PublicNetworkSettings,
    ShapeSettings,
)
from anonymizer.settings.base import PSEUDONYM
from anonymizer.settings.broker import BrokerSettings
from anonymizer.settings.cluster import ClusterSettings
from anonymizer.settings.inputs import FixedSettings, InputSettings
from anonymizer.settings.kafka import KafkaSettings
from anonymizer.settings.model import (
    LimitSettings,
    LogSettings,
    NetworkSettings,
    OutputSettings,
    PresenceSettings,
    Settings,
    TickSettings,
    WatchSettings,
)
from anonymizer.settings.protection import (
    DeviceZoneSettings,
    TripSettings,
    ZoneSettings,
    zones_of,
)
from anonymizer.settings.readings import ReadingSettings
from anonymizer.settings.regions import (
    AdkaSettings,
    PseudonymSettings,
    RegionSettings,
    SessionSettings,
)
from anonymizer.settings.stream_attributes import AttributeSettings
from anonymizer.settings.streams import (
    PromiseSettings,
    SourceSettings,
    StoreSettings,
    StreamSettings,
)
from anonymizer.settings.toml_file import load_settings
from anonymizer.settings.web import HttpSettings

__all__ = [
    "PSEUDONYM",
    "AdkaSettings",
    "AttributeSettings",
    "BrokerSettings",
    "ClusterSettings",
    "CountSettings",
    "CurrentSettings",
    "DeviceZoneSettings",
    "FixedSettings",
    "HttpSettings",
    "InputSettings",
    "KafkaSettings",
    "LimitSettings",
    "LogSettings",
    "NetworkSettings",
    "OutputSettings",
    "PresenceSettings",
    "PromiseSettings",
    "PseudonymSettings",
    "PublicNetworkSettings",
    "ReadingSettings",
    "RegionSettings",
    "SessionSettings",
    "Settings",
    "ShapeSettings",
    "SourceSettings",
    "StoreSettings",
    "StreamSettings",
    "TickSettings",
    "TripSettings",
    "WatchSettings",
    "ZoneSettings",
    "load_settings",
    "zones_of",
]
