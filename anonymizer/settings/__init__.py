"""Settings: everything an operator may set, and the file and environment it is read from.

A name is imported when it is first used: who connects to a broker needs no codecs.
"""

from typing import TYPE_CHECKING

from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.settings.analysts import CountSettings as CountSettings
    from anonymizer.settings.analysts import CurrentSettings as CurrentSettings
    from anonymizer.settings.analysts import PublicNetworkSettings as PublicNetworkSettings
    from anonymizer.settings.analysts import ShapeSettings as ShapeSettings
    from anonymizer.settings.analysts import TripsOutSettings as TripsOutSettings
    from anonymizer.settings.base import PSEUDONYM as PSEUDONYM
    from anonymizer.settings.broker import BrokerSettings as BrokerSettings
    from anonymizer.settings.cluster import ClusterSettings as ClusterSettings
    from anonymizer.settings.inputs import FixedSettings as FixedSettings
    from anonymizer.settings.inputs import InputSettings as InputSettings
    from anonymizer.settings.kafka import KafkaSettings as KafkaSettings
    from anonymizer.settings.model import LimitSettings as LimitSettings
    from anonymizer.settings.model import LogSettings as LogSettings
    from anonymizer.settings.model import NetworkSettings as NetworkSettings
    from anonymizer.settings.model import OutputSettings as OutputSettings
    from anonymizer.settings.model import PresenceSettings as PresenceSettings
    from anonymizer.settings.model import Settings as Settings
    from anonymizer.settings.model import TickSettings as TickSettings
    from anonymizer.settings.model import WatchSettings as WatchSettings
    from anonymizer.settings.protection import DeviceZoneSettings as DeviceZoneSettings
    from anonymizer.settings.protection import TripSettings as TripSettings
    from anonymizer.settings.protection import ZoneSettings as ZoneSettings
    from anonymizer.settings.protection import zones_of as zones_of
    from anonymizer.settings.readings import ReadingSettings as ReadingSettings
    from anonymizer.settings.regions import AdkaSettings as AdkaSettings
    from anonymizer.settings.regions import RegionSettings as RegionSettings
    from anonymizer.settings.regions import SessionSettings as SessionSettings
    from anonymizer.settings.stream_attributes import AttributeSettings as AttributeSettings
    from anonymizer.settings.streams import PromiseSettings as PromiseSettings
    from anonymizer.settings.streams import SourceSettings as SourceSettings
    from anonymizer.settings.streams import StoreSettings as StoreSettings
    from anonymizer.settings.streams import StreamSettings as StreamSettings
    from anonymizer.settings.toml_file import load_settings as load_settings
    from anonymizer.settings.web import HttpSettings as HttpSettings

__getattr__ = on_first_use(__name__, {
    "analysts": (
        "CountSettings", "CurrentSettings", "PublicNetworkSettings", "ShapeSettings",
        "TripsOutSettings",
    ),
    "base": ("PSEUDONYM",),
    "broker": ("BrokerSettings",),
    "cluster": ("ClusterSettings",),
    "inputs": ("FixedSettings", "InputSettings"),
    "kafka": ("KafkaSettings",),
    "model": (
        "LimitSettings", "LogSettings", "NetworkSettings", "OutputSettings",
        "PresenceSettings", "Settings", "TickSettings", "WatchSettings",
    ),
    "protection": ("DeviceZoneSettings", "TripSettings", "ZoneSettings", "zones_of"),
    "readings": ("ReadingSettings",),
    "regions": ("AdkaSettings", "RegionSettings", "SessionSettings"),
    "stream_attributes": ("AttributeSettings",),
    "streams": ("PromiseSettings", "SourceSettings", "StoreSettings", "StreamSettings"),
    "toml_file": ("load_settings",),
    "web": ("HttpSettings",),
})  # fmt: skip
