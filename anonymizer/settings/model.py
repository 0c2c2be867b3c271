"""The settings file, one class per table.

Units are in the names of the keys. The text below a key says what leaving it out means (None).
"""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from anonymizer.algorithms.positions.readings import SAFE_STATISTICS, ReadingAttribute
from anonymizer.settings.analysts import (
    CountSettings,
    CurrentSettings,
    PublicNetworkSettings,
    ShapeSettings,
)
from anonymizer.settings.base import (
    AddressRange,
    AtLeastOne,
    FieldName,
    Group,
    HostName,
    NonEmpty,
    NotNegative,
    OutputTopic,
    Positive,
    Qos,
)
from anonymizer.settings.inputs import FixedSettings, InputSettings
from anonymizer.settings.protection import DeviceZoneSettings, TripSettings, ZoneSettings
from anonymizer.settings.streams import DeclaredStreams, StoreSettings

Bound = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Statistic = Annotated[str, Field(pattern=r"^(count|mean|min|max|p[1-9][0-9]?)$")]


_STEPS_OF_A_RANGE = 100
"""Steps to which readings are rounded by default."""


class ReadingSettings(Group):
    """One `[[readings]]` table: an attribute that is published. Others never leave the gateway."""

    name: FieldName
    """Its name in the codec of the input, for example `speed_mps`; see the codecs."""
    lo: Bound
    hi: Bound
    """Values outside `lo` to `hi` are clamped, and counted."""
    step: NotNegative | None = None
    """Values, means and quantiles are rounded to this. The coarser it is, the less the difference
    of two releases of one group reveals. None: a hundredth of the range; 0: no rounding."""
    statistics: Annotated[tuple[Statistic, ...], Field(min_length=1)] = SAFE_STATISTICS
    """A choice of `count`, `mean`, `min`, `max`, and `p1` to `p99`. `min` and `max` each publish
    the value of one device."""
    per_pseudonym: bool = False
    """Whether each device's own value is published with its pseudonym. This can undo the
    anonymity; the audit measures by how much."""

    @field_validator("statistics")
    @classmethod
    def _each_once(cls, statistics: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(statistics)) < len(statistics):
            raise ValueError("must name each statistic once")
        return statistics

    @model_validator(mode="after")
    def _range_fits(self) -> Self:
        if not self.lo < self.hi:
            raise ValueError("lo must be below hi")
        if self.step is not None and self.step > self.hi - self.lo:
            raise ValueError("step must not exceed hi - lo")
        return self

    @property
    def attribute(self) -> ReadingAttribute:
        """The attribute as the algorithms take it."""
        step = (self.hi - self.lo) / _STEPS_OF_A_RANGE if self.step is None else self.step
        return ReadingAttribute(**{**self.model_dump(), "step": step or None})


def _names_differ(readings: tuple[ReadingSettings, ...]) -> tuple[ReadingSettings, ...]:
    if len({reading.name for reading in readings}) < len(readings):
        raise ValueError("must declare each name once")
    return readings


DeclaredReadings = Annotated[tuple[ReadingSettings, ...], AfterValidator(_names_differ)]
"""All `[[readings]]` tables."""


class NetworkSettings(Group):
    """The road network that positions are located on."""

    source: str = "city:10000"
    """A file (GraphML, OSM pbf or XML, SUMO .net.xml), a prefix PREFIX of PREFIX_nodes and
    PREFIX_edges (parquet or csv), `grid:ROWSxCOLUMNS` or `city:NODES`."""
    snap_limit_m: Positive = 100.0
    """A position farther than this from every road, in metres, is off the graph and suppressed."""
    max_spacing_m: NotNegative = 100.0
    """Roads that the source draws and that are longer, in metres, get nodes in between; 0: none. It
    applies to OpenStreetMap, SUMO, and to GraphML and tables with shapes of roads. Analysts and
    auditors must load the network with the same value, because regions name nodes."""


class BrokerSettings(Group):
    """The MQTT broker and the credentials for it."""

    url: str = "mqtt://127.0.0.1:1883"
    """`mqtts://host[:port]` for TLS; `mqtt://host[:port]` on this machine. Over WebSocket:
    `wss://host[:port][/path]` and `ws://`, path `/mqtt` unless stated (extra `websockets`). It must
    not contain credentials."""
    allow_plaintext: bool = False
    """Allows `mqtt://` and `ws://` to another machine: anyone on the path can read positions and
    passwords."""
    version: Literal["5", "3.1.1"] = "5"
    client_id: Annotated[str, Field(min_length=1, max_length=200)] = "anonymizer"
    """Beginning of the ids under which the broker knows the gateway's connections."""
    random_client_id: bool = True
    """Whether 32 random digits are appended to each id. A second client with an id disconnects the
    first one, so an id must not be guessed. The digits are kept in the store of records; without
    streams they are drawn at every start. False: then choose a `client_id` that cannot be guessed,
    for example with `openssl rand -hex 16`."""
    username: str | None = None
    """None: anonymous."""
    password: SecretStr | None = None
    """Prefer ANONYMIZER__BROKER__PASSWORD in the environment, or `password_file`."""
    password_file: Path | None = None
    """A file whose first line is the password. None: `password` is used."""
    ca_file: Path | None = None
    """Certificate authority of the broker (PEM). None: the system's authorities."""
    cert_file: Path | None = None
    """Client certificate (PEM). None: no client certificate."""
    key_file: Path | None = None
    """Key of the client certificate (PEM). None: it is in `cert_file`."""
    keepalive_s: Annotated[int, Field(ge=5, le=3600)] = 30
    """Time between two pings. A broker that is silent for twice as long, or leaves a message
    unacknowledged for this long, is reconnected."""
    session_expiry_s: Annotated[int, Field(ge=0, le=0xFFFFFFFE)] = 0
    """How long the broker keeps undelivered messages while the gateway is not connected.
    0: not at all, which suits live positions (MQTT 3.1.1: any other value means forever)."""
    receive_maximum: Annotated[int, Field(ge=1, le=65535)] = 2000
    """Most QoS 1 messages in flight from the broker to the gateway (MQTT 5)."""
    reconnect_min_s: Positive = 0.5
    reconnect_max_s: Positive = 30.0
    status_topic: str = "anonymizer/status"
    """Retained: `online`, `offline`, or `lost` by last will."""
    drops_topic: OutputTopic | None = None
    """Topic on which the broker publishes how many messages it has dropped; Mosquitto:
    `$SYS/broker/publish/messages/dropped`. They are exported as a metric. None: not counted."""

    @field_validator("url")
    @classmethod
    def _url_names_a_broker(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            # The library's message quotes the address, with a password if it contains one.
            raise ValueError("must be an address with a port between 0 and 65535") from None
        if parts.scheme not in {"mqtt", "mqtts", "ws", "wss"} or not parts.hostname:
            raise ValueError(
                "must be mqtt://host[:port] or mqtts://host[:port], or ws:// or wss://"
            )
        if parts.username or parts.password:
            raise ValueError("must not contain credentials; set username and password_file")
        return url

    @model_validator(mode="after")
    def _plaintext_stays_on_this_machine(self) -> Self:
        parts = urlsplit(self.url)
        plain = parts.scheme in {"mqtt", "ws"}
        if plain and not self.allow_plaintext and not _loopback(parts.hostname):
            raise ValueError(
                f"url: must be {parts.scheme}s:// off this machine, or set allow_plaintext"
            )
        return self

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        if self.password is not None and self.password_file is not None:
            raise ValueError("set password or password_file, not both")
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("key_file needs cert_file")
        if self.reconnect_max_s < self.reconnect_min_s:
            raise ValueError("reconnect_max_s must not be below reconnect_min_s")
        return self


def _loopback(host: str | None) -> bool:
    """Return whether a host name or address means this machine, without resolving it."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


class OutputSettings(Group):
    """Where cloaked positions are published."""

    topic: OutputTopic = "cloaked/positions"
    rejected_topic: OutputTopic = "anonymizer/rejected"
    """Where the counts of rejected positions are published, by reason; never a payload."""
    rejected_every_s: Positive = 10.0
    silence_s: Positive = 60.0
    """If positions arrive and none is published for longer than this, in addition to the delays of
    the settings (`trips.delay_s`, `session.settle_s`, `beat_s`), the gateway is not ready."""
    qos: Qos = 0
    form: Literal["group", "device"] = "group"
    """`group`: one message for all devices that share a region; `device`: one for each. `device`
    needs `qos = 1` (except in region mode `bfs`): at QoS 0 nobody knows which messages of a group
    a lost connection has delivered."""
    time_step_s: NotNegative = 0.0
    """Published times are rounded down to a multiple of this, so that several releases may have
    the same time. 0: no rounding."""


class TickSettings(Group):
    """Ticks of the positions flow."""

    interval_s: Positive = 0.1
    queue_limit: AtLeastOne = 100_000
    """Most messages that wait for a tick. Beyond that, or when a tick is late, only the newest of
    each device is kept; the others are counted as overload."""
    drain_s: Positive = 10.0
    """Deadline for finishing the current work when the gateway is stopped."""


class PresenceSettings(Group):
    """How long a device counts as present at its last position, and which times are accepted."""

    ttl_s: Positive = 120.0
    """A device that has not reported for this long no longer counts as present."""
    follow_intervals: bool | None = None
    """Whether `ttl_s` and `session.epoch_s` grow where most devices report less often than every
    30 seconds, so that slow fleets are grouped too: the epoch up to the interval of nine in ten
    devices (at most 300 s), the time to live to the epoch and 1.5 intervals. None: yes, unless
    one of these two keys is set (`session`)."""
    parked_s: Positive | None = None
    """A device that has stayed near one node for this long is parked, and shares groups with parked
    devices alone: a region without the nodes that never change is where the others are
    (`session`). It doubles the regions of vehicles where nine in ten are parked, and few vehicles
    among parked ones wait for company. None: parked devices are company for all."""
    max_devices: Annotated[int, Field(ge=1, le=50_000_000)] = 1_000_000
    """Most devices present at once; positions of further devices are suppressed as overload."""
    max_ahead_s: NotNegative = 5.0
    """How far a device's clock may be ahead of the gateway's."""
    max_behind_s: Positive = 60.0
    """How old a position may be when it arrives; at most `ttl_s`."""

    @model_validator(mode="after")
    def _expired_devices_have_no_valid_positions(self) -> Self:
        # After a device has expired, an older position can no longer be recognized as late.
        if self.max_behind_s > self.ttl_s:
            raise ValueError("max_behind_s must not exceed ttl_s")
        return self


class LimitSettings(Group):
    """Limits of a single message."""

    max_payload_bytes: Annotated[int, Field(ge=16)] = 262_144
    max_positions: AtLeastOne = 10_000
    """Most positions in one message."""
    max_device_id_chars: Annotated[int, Field(ge=1, le=65535)] = 256
    max_ids_per_topic: AtLeastOne = 20_000
    """Most devices that the payloads of one topic may name within `presence.ttl_s`
    (`device_from = "payload"`); positions of others are suppressed."""


class AdkaSettings(Group):
    """ADKA: k by local density, `k_values[i]` if the density is below `density_steps[i]`."""

    density_steps: tuple[AtLeastOne, ...] = (4, 10)
    k_values: tuple[AtLeastOne, ...] = (10, 5, 2)
    k_floor: Annotated[int, Field(ge=2)] = 2
    """The least k, whatever the density."""

    @model_validator(mode="after")
    def _steps_fit_values(self) -> Self:
        if len(self.k_values) != len(self.density_steps) + 1:
            raise ValueError("k_values must have one value more than density_steps")
        if list(self.density_steps) != sorted(set(self.density_steps)):
            raise ValueError("density_steps must rise")
        if list(self.k_values) != sorted(self.k_values, reverse=True):
            raise ValueError("k_values must not rise: sparse places need the larger k")
        return self


class RegionSettings(Group):
    """How cloaking regions are formed."""

    mode: Literal["bfs", "snapshot", "session"] = "session"
    """`session`: at least k devices share the whole life of a pseudonym. `snapshot`: at least k
    devices publish the identical region at each instant. `bfs`: ADKA as published; its regions
    hold k devices but reveal which of them published."""
    cloak: NonEmpty | None = None
    """Name of an installed plug-in (entry point `anonymizer.cloaks`) that forms the groups. They
    are verified by the promise of `mode`; one that breaks it is suppressed. None: by `mode`."""
    max_nodes: AtLeastOne = 1000
    """A region that would need more nodes is suppressed for all its devices."""
    min_nodes: AtLeastOne = 6
    """Least number of nodes of a region (`snapshot`, `session`)."""
    min_road_m: NotNegative = 0.0
    """Least length of road in a region, in metres (`snapshot`, `session`)."""
    place_devices: Annotated[float, Field(ge=1)] = 2.0
    """How many devices share the place as which a member is published, the member included, on
    average over its group. More make regions larger and devices harder to follow. 1: places are
    as small as `min_nodes` allows (`snapshot`, `session`)."""
    area_devices: Annotated[float, Field(ge=1)] = 3.0
    """How many devices share the area around such a place, three of the smallest places large, or
    the place itself if it is larger. This makes places large where devices are few
    (`snapshot`, `session`)."""
    k_extra: Annotated[int, Field(ge=0)] = 0
    """Members of a group beyond k: so many of its devices may belong to the adversary
    (`snapshot`, `session`)."""

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        if self.mode != "bfs" and self.max_nodes < self.min_nodes:
            raise ValueError("max_nodes must not be below min_nodes")
        return self


class SessionSettings(Group):
    """The lifetime of a group in `session` mode."""

    epoch_s: Positive = 60.0
    """Longest lifetime of a group and its pseudonyms. A longer one lets analysts follow a
    pseudonym for longer, but makes regions larger and newcomers wait longer."""
    cells: Literal[1, 2, 4, 8, 16, 32, 64] = 8
    """Number of parts of the network whose epochs begin at different times; 1: all at once."""
    settle_s: NotNegative = 5.0
    """How long to wait after the first position before forming the first groups."""
    beat_s: NotNegative = 30.0
    """How often a group publishes, whether its members report or not; positions wait until then,
    and of several of one device the newest is published. A shorter beat tells more about where
    devices drive. 0: a group publishes whenever a member reports, which also tells when."""


class PseudonymSettings(Group):
    """Lifetime of pseudonyms."""

    rotate_s: Positive = 300.0
    """After this long every device gets a new pseudonym (`bfs`, `snapshot`; in `session` a
    pseudonym lasts as long as its group)."""


class WatchSettings(Group):
    """The light audit that runs in the service."""

    sample: Annotated[int, Field(ge=0, le=10_000)] = 32
    """Number of devices followed with the intersection attack; 0: none."""


class HttpSettings(Group):
    """The HTTP side: metrics, health and the live map."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0: any free port."""
    token: SecretStr | None = None
    """Bearer token required by the live map and the API; the API must have one if `host` is not
    this machine. Prefer ANONYMIZER__HTTP__TOKEN in the environment, or `token_file`. None: no
    token is required."""
    token_file: Path | None = None
    """A file whose first line is the token. None: `token` is used."""
    requests_per_minute: AtLeastOne | None = 300
    """Requests that the API accepts from one address. None: no limit."""
    trusted_proxies: tuple[AddressRange, ...] = ()
    """Addresses (`10.0.0.7`) or networks (`10.0.0.0/24`) of reverse proxies. Only requests that
    come from them are attributed to the address in `X-Forwarded-For`."""
    allowed_hosts: tuple[HostName, ...] = ()
    """Names under which clients reach the gateway, without a port. Other names in a request are
    refused (421), except `localhost`, `host` and any IP address. `*`: every name is accepted."""
    toll_stream: str | None = None
    """Name of the stream behind the toll API. None: the first suitable one."""
    map: bool = True
    """Whether to serve the live map at `/`. It shows what is published, and counts."""
    raw_view: bool = False
    """Whether clients with the token see true positions on the map: for the auditor only."""
    tiles: str | None = None
    """Map tiles below the roads, `https://host/{z}/{x}/{y}.png`. Each viewer's browser then
    reveals to that host which places are viewed. None: no request to any other host."""
    tiles_attribution: str = ""
    """Attribution required by the owner of the tiles."""

    @field_validator("tiles")
    @classmethod
    def _tiles_are_an_address(cls, tiles: str | None) -> str | None:
        # The host becomes part of a header, so it must not contain anything that ends one.
        wanted = r"https?://[A-Za-z0-9.-]+(:\d+)?/[!-~]*"
        if tiles is not None and not (
            re.fullmatch(wanted, tiles) and all(part in tiles for part in ("{z}", "{x}", "{y}"))
        ):
            raise ValueError("must be http[s]://host[:port]/... with {z}, {x} and {y}")
        return tiles

    @model_validator(mode="after")
    def _the_raw_view_has_a_token(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("set token or token_file, not both")
        if self.token is not None and not self.token.get_secret_value().strip():
            raise ValueError("token must not be empty")
        if self.raw_view and not (self.map and (self.token or self.token_file)):
            raise ValueError("raw_view needs map, and token or token_file")
        return self


class LogSettings(Group):
    """Logging. Logs never contain an identity or a coordinate."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"


class Settings(Group):
    """The whole settings file."""

    network: NetworkSettings = NetworkSettings()
    broker: BrokerSettings = BrokerSettings()
    inputs: tuple[InputSettings, ...] = (InputSettings(),)
    """May be empty if there are streams; then no network is needed either."""
    fixed: FixedSettings = FixedSettings()
    output: OutputSettings = OutputSettings()
    shapes: ShapeSettings = ShapeSettings()
    current: CurrentSettings = CurrentSettings()
    public_network: PublicNetworkSettings = PublicNetworkSettings()
    counts: CountSettings = CountSettings()
    tick: TickSettings = TickSettings()
    presence: PresenceSettings = PresenceSettings()
    limits: LimitSettings = LimitSettings()
    adka: AdkaSettings = AdkaSettings()
    region: RegionSettings = RegionSettings()
    session: SessionSettings = SessionSettings()
    zones: tuple[ZoneSettings, ...] = ()
    device_zones: DeviceZoneSettings = DeviceZoneSettings()
    trips: TripSettings = TripSettings()
    readings: DeclaredReadings = ()
    streams: DeclaredStreams = ()
    store: StoreSettings = StoreSettings()
    pseudonym: PseudonymSettings = PseudonymSettings()
    watch: WatchSettings = WatchSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _there_is_an_input(self) -> Self:
        if not self.inputs and not self.streams:
            raise ValueError("inputs: at least one is required, or streams")
        return self

    @model_validator(mode="after")
    def _a_lasting_session_has_a_lasting_id(self) -> Self:
        broker = self.broker
        if broker.session_expiry_s and broker.random_client_id and not self.streams:
            raise ValueError(
                "broker: session_expiry_s needs the same client id at every start; without streams"
                " set random_client_id = false, and a client_id that cannot be guessed"
            )
        return self

    @model_validator(mode="after")
    def _groups_are_delivered_whole(self) -> Self:
        output = self.output
        if output.form == "device" and not output.qos and self.region.mode != "bfs":
            raise ValueError(
                'output: form = "device" needs qos = 1: at QoS 0 nobody knows which messages of a'
                " group a lost connection has delivered, and k pseudonyms must share all of them"
            )
        return self

    @model_validator(mode="after")
    def _outputs_of_positions_differ(self) -> Self:
        topics = (self.output.topic, self.fixed.topic, self.fixed.public_topic)
        if len(set(topics)) < len(topics):
            raise ValueError(
                "fixed: topic and public_topic must differ from each other and from output.topic"
            )
        return self

    @model_validator(mode="after")
    def _remote_api_has_a_token(self) -> Self:
        http = self.http
        known = http.token is not None or http.token_file is not None
        if self.streams and http.enabled and not _loopback(http.host) and not known:
            raise ValueError(
                "http: the API of the streams needs token or token_file unless host is this machine"
            )
        return self

    @model_validator(mode="after")
    def _epochs_fit_presence(self) -> Self:
        if self.region.mode == "session" and self.session.epoch_s >= self.presence.ttl_s:
            raise ValueError("session.epoch_s must be below presence.ttl_s")
        return self

    @property
    def follows_intervals(self) -> bool:
        """Whether times follow how often devices report: see `presence.follow_intervals`."""
        if self.region.mode != "session":
            return False
        if self.presence.follow_intervals is not None:
            return self.presence.follow_intervals
        return not (
            "ttl_s" in self.presence.model_fields_set or "epoch_s" in self.session.model_fields_set
        )

    @model_validator(mode="after")
    def _held_positions_have_no_readings(self) -> Self:
        if self.trips.enabled and self.readings:
            raise ValueError("readings cannot be published where trips.enabled holds positions")
        return self
