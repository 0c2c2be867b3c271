"""The settings, grouped by concern. Units are in the names; what None means is said beside it.

What of the devices' readings is published, and how coarsely.
"""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from anonymizer.algorithms.positions.readings import SAFE_STATISTICS, Attribute
from anonymizer.codecs import CODECS
from anonymizer.settings.group import Group
from anonymizer.settings.protection import TripSettings, ZoneSettings
from anonymizer.settings.streams import DeclaredStreams, StoreSettings

Bound = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
Statistic = Annotated[str, Field(pattern=r"^(count|mean|min|max|p[1-9][0-9]?)$")]


class ReadingSettings(Group):
    """One `[[readings]]` table: an attribute that may leave the gateway. No table, no reading."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """As the codec of the input names it, for example `speed_mps`; see each codec."""
    lo: Bound
    hi: Bound
    """Values outside `lo` to `hi` are clamped, and counted."""
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Values, means and quantiles are rounded to this. The coarser, the less two releases
    of one group tell by their difference. None: no rounding."""
    statistics: Annotated[tuple[Statistic, ...], Field(min_length=1)] = SAFE_STATISTICS
    """Of `count`, `mean`, `min`, `max`, and `p1` to `p99`. `min` and `max` are some
    device's own values, for all to see."""
    per_pseudonym: bool = False
    """Whether each device's own value is published beside its pseudonym. It can undo the
    anonymity: let the audit measure by how much."""

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
    def attribute(self) -> Attribute:
        """What the algorithms know of it."""
        return Attribute(**self.model_dump())


def _names_differ(readings: tuple[ReadingSettings, ...]) -> tuple[ReadingSettings, ...]:
    if len({reading.name for reading in readings}) < len(readings):
        raise ValueError("must declare each name once")
    return readings


DeclaredReadings = Annotated[tuple[ReadingSettings, ...], AfterValidator(_names_differ)]
"""All `[[readings]]` tables."""


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Qos = Literal[0, 1]


class NetworkSettings(Group):
    """The road network that positions are located on."""

    source: str = "city:10000"
    """A file (GraphML, OSM pbf or XML, SUMO .net.xml), a prefix PREFIX of PREFIX_nodes and
    PREFIX_edges (parquet or csv), `grid:ROWSxCOLUMNS` or `city:NODES`."""
    snap_limit_m: Positive = 150.0
    """A position further than this from every node is off the graph and suppressed."""


class BrokerSettings(Group):
    """The MQTT broker, and how to be let in."""

    url: str = "mqtt://127.0.0.1:1883"
    """`mqtts://host[:port]` for TLS; `mqtt://host[:port]` on this machine. No credentials in
    here."""
    allow_plaintext: bool = False
    """Lets `mqtt://` leave this machine: whoever is on the way reads positions and passwords."""
    version: Literal["5", "3.1.1"] = "5"
    client_id: Annotated[str, Field(min_length=1, max_length=200)] = "anonymizer"
    username: str | None = None
    """None: anonymous."""
    password: SecretStr | None = None
    """Better given as ANONYMIZER__BROKER__PASSWORD, or in `password_file`."""
    password_file: Path | None = None
    """A file whose first line is the password. None: `password` is used."""
    ca_file: Path | None = None
    """Certificate authority of the broker. None: the system's."""
    cert_file: Path | None = None
    """Client certificate (PEM). None: none is shown."""
    key_file: Path | None = None
    """Key of the client certificate (PEM). None: it is in `cert_file`."""
    keepalive_s: Annotated[int, Field(ge=5, le=3600)] = 30
    session_expiry_s: Annotated[int, Field(ge=0, le=0xFFFFFFFE)] = 0
    """How long the broker keeps what it could not deliver while the gateway was away.
    0: nothing is kept, as suits live positions (MQTT 3.1.1: any other value means for ever)."""
    receive_maximum: Annotated[int, Field(ge=1, le=65535)] = 2000
    """QoS 1 messages the broker may have under way to the gateway at once (MQTT 5)."""
    reconnect_min_s: Positive = 0.5
    reconnect_max_s: Positive = 30.0
    status_topic: str = "anonymizer/status"
    """Retained: `online`, `offline`, or `lost` by last will."""

    @field_validator("url")
    @classmethod
    def _url_names_a_broker(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            # The library's own words quote the address, and a password if one was put there.
            raise ValueError("must be an address with a port between 0 and 65535") from None
        if parts.scheme not in {"mqtt", "mqtts"} or not parts.hostname:
            raise ValueError("must be mqtt://host[:port] or mqtts://host[:port]")
        if parts.username or parts.password:
            raise ValueError("must hold no credentials; set username and password_file")
        return url

    @model_validator(mode="after")
    def _nothing_travels_in_the_clear(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme == "mqtt" and not self.allow_plaintext and not _loopback(parts.hostname):
            raise ValueError("url: must be mqtts:// off this machine, or set allow_plaintext")
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
    """Return whether a host is this machine by its very name: nothing is resolved."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


class InputSettings(Group):
    """One subscription for raw positions."""

    topic: str = "positions/{device}"
    """Topic filter; `{device}` stands for the level that names the device (several are joined
    by `/`), `+` and a last `#` for anything."""
    codec: str = "native"
    qos: Qos = 0
    device_from: Literal["topic", "payload"] = "topic"
    """Whom to believe about who is speaking. A broker's ACL can enforce a topic; nobody can
    enforce a payload."""

    @field_validator("codec")
    @classmethod
    def _codec_is_known(cls, codec: str) -> str:
        if codec not in CODECS:
            raise ValueError(f"must be one of {', '.join(sorted(CODECS))}")
        return codec

    @model_validator(mode="after")
    def _topic_is_a_filter(self) -> Self:
        levels = self.topic.split("/")
        for i, level in enumerate(levels):
            whole = level in {"+", "{device}"} or (level == "#" and i == len(levels) - 1)
            if not whole and re.search(r"[+#{}\x00]", level):
                raise ValueError(f"topic: level {i + 1} is neither plain, +, {{device}} nor last #")
        if not self.topic:
            raise ValueError("topic: must not be empty")
        if (self.device_from == "topic") != ("{device}" in levels):
            raise ValueError('topic: {device} is needed, unless device_from = "payload"')
        return self


class OutputSettings(Group):
    """Where cloaked positions go."""

    topic: Annotated[str, Field(min_length=1, pattern=r"^[^+#\x00]+$")] = "cloaked/positions"
    rejected_topic: Annotated[str, Field(min_length=1, pattern=r"^[^+#\x00]+$")] = (
        "anonymizer/rejected"
    )
    """Reasons and counts, never a payload."""
    rejected_every_s: Positive = 10.0
    qos: Qos = 0
    form: Literal["group", "device"] = "group"
    """`group`: one message for all devices that share a region; `device`: one for each."""
    time_step_s: NotNegative = 0.0
    """Published times are rounded down to a multiple of this; 0: they are not. Several releases
    may then state one time."""


class TickSettings(Group):
    """The beat of the positions flow."""

    interval_s: Positive = 0.1
    queue_limit: Annotated[int, Field(ge=1)] = 100_000
    """Messages waiting for a tick; beyond it the oldest yield, counted as overload."""
    drain_s: Positive = 10.0
    """Deadline for what is in hand when the gateway is told to stop."""


class PresenceSettings(Group):
    """When a device counts as being where it last said it was."""

    ttl_s: Positive = 120.0
    """A device not heard of for this long is no longer counted."""
    max_devices: Annotated[int, Field(ge=1, le=50_000_000)] = 1_000_000
    """Devices present at once; positions of further ones are suppressed as overload."""
    max_ahead_s: NotNegative = 5.0
    """How far a device's clock may run ahead of the gateway's."""
    max_behind_s: Positive = 60.0
    """How old a position may be when it arrives; at most `ttl_s`."""

    @model_validator(mode="after")
    def _the_forgotten_stay_forgotten(self) -> Self:
        # Once a device has expired, nothing is left to tell that an older position is stale.
        if self.max_behind_s > self.ttl_s:
            raise ValueError("max_behind_s must not exceed ttl_s")
        return self


class LimitSettings(Group):
    """What one message may be at most."""

    max_payload_bytes: Annotated[int, Field(ge=16)] = 262_144
    max_positions: Annotated[int, Field(ge=1)] = 10_000
    """Positions in one message."""
    max_device_id_chars: Annotated[int, Field(ge=1, le=65535)] = 256


class AdkaSettings(Group):
    """k by local density: `k_values[i]` where the density is below `density_steps[i]`."""

    density_steps: tuple[Annotated[int, Field(ge=1)], ...] = (4, 10)
    k_values: tuple[Annotated[int, Field(ge=1)], ...] = (10, 5, 2)
    k_floor: Annotated[int, Field(ge=2)] = 2
    """No region is grown for fewer devices than this, whatever the density."""

    @model_validator(mode="after")
    def _steps_fit_values(self) -> Self:
        if len(self.k_values) != len(self.density_steps) + 1:
            raise ValueError("k_values must hold one value more than density_steps")
        if list(self.density_steps) != sorted(set(self.density_steps)):
            raise ValueError("density_steps must rise")
        if list(self.k_values) != sorted(self.k_values, reverse=True):
            raise ValueError("k_values must not rise: sparse places need the larger k")
        return self


class RegionSettings(Group):
    """How cloaking regions are formed."""

    mode: Literal["bfs", "snapshot", "session"] = "session"
    """`session`: at least k devices share the whole life of a pseudonym. `snapshot`: at least k
    devices publish the identical region at each instant. `bfs`: the published ADKA; its regions
    hold k devices and give away which."""
    max_nodes: Annotated[int, Field(ge=1)] = 1000
    """A region that would need more nodes is suppressed instead, for all its devices."""
    min_nodes: Annotated[int, Field(ge=1)] = 6
    """Nodes of a region at the least (`snapshot`, `session`)."""
    min_road_m: NotNegative = 0.0
    """Metres of road that a region covers at the least (`snapshot`, `session`)."""
    k_extra: Annotated[int, Field(ge=0)] = 0
    """Members of a group beyond k: so many devices may be the adversary's own
    (`snapshot`, `session`)."""

    @model_validator(mode="after")
    def _bounds_fit(self) -> Self:
        if self.mode != "bfs" and self.max_nodes < self.min_nodes:
            raise ValueError("max_nodes must not be below min_nodes")
        return self


class SessionSettings(Group):
    """The life of a group in `session` mode."""

    epoch_s: Positive = 60.0
    """Longest life of a group and its pseudonyms. Longer: better for those who follow a
    pseudonym, larger regions, longer waits for newcomers."""
    cells: Literal[1, 2, 4, 8, 16, 32, 64] = 8
    """Parts of the network whose epochs begin at different times; 1: all at once."""
    settle_s: NotNegative = 5.0
    """After the first position, how long to wait before the first groups are formed."""


class PseudonymSettings(Group):
    """Names under which cloaked positions are published."""

    rotate_s: Positive = 300.0
    """After this long every device gets a fresh pseudonym (`bfs`, `snapshot`; in `session` a
    pseudonym lives as long as its group)."""


class WatchSettings(Group):
    """The light audit that runs beside the service."""

    sample: Annotated[int, Field(ge=0, le=10_000)] = 32
    """Devices whose pseudonyms are followed with the intersection attack; 0: none."""


class HttpSettings(Group):
    """The HTTP side: metrics, health and the live map."""

    enabled: bool = True
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """0: any free port."""
    token: SecretStr | None = None
    """Bearer token that the live map and the API ask for; the API must have one where `host` is
    not this machine. Better given as ANONYMIZER__HTTP__TOKEN, or in
    `token_file`. None: it asks for none."""
    token_file: Path | None = None
    """A file whose first line is the token. None: `token` is used."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = 300
    """Requests of one address that the API answers. None: all."""
    toll_stream: str | None = None
    """Name of the stream that the toll API answers from. None: the first that can."""
    map: bool = True
    """The live map at `/`: it shows what is published, and counts."""
    raw_view: bool = False
    """Lets whoever shows the token see true positions on the map: for the auditor alone."""
    tiles: str | None = None
    """Map pictures below the roads, `https://host/{z}/{x}/{y}.png`: every onlooker's browser then
    tells that host what is looked at. None: no request leaves for anywhere else."""
    tiles_attribution: str = ""
    """What the owner of the tiles wants to be said of them."""

    @field_validator("tiles")
    @classmethod
    def _tiles_are_somewhere(cls, tiles: str | None) -> str | None:
        # The host goes into a header: nothing that could end it there.
        wanted = r"https?://[A-Za-z0-9.-]+(:\d+)?/[!-~]*"
        if tiles is not None and not (
            re.fullmatch(wanted, tiles) and all(part in tiles for part in ("{z}", "{x}", "{y}"))
        ):
            raise ValueError("must be http[s]://host[:port]/... with {z}, {x} and {y}")
        return tiles

    @model_validator(mode="after")
    def _the_auditor_is_known(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("set token or token_file, not both")
        if self.token is not None and not self.token.get_secret_value().strip():
            raise ValueError("token must not be empty")
        if self.raw_view and not (self.map and (self.token or self.token_file)):
            raise ValueError("raw_view needs map, and token or token_file")
        return self


class LogSettings(Group):
    """What is logged; never an identity or a coordinate."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"


class Settings(Group):
    """The whole settings file."""

    network: NetworkSettings = NetworkSettings()
    broker: BrokerSettings = BrokerSettings()
    inputs: tuple[InputSettings, ...] = (InputSettings(),)
    """None is needed where there are streams; no network is, then."""
    output: OutputSettings = OutputSettings()
    tick: TickSettings = TickSettings()
    presence: PresenceSettings = PresenceSettings()
    limits: LimitSettings = LimitSettings()
    adka: AdkaSettings = AdkaSettings()
    region: RegionSettings = RegionSettings()
    session: SessionSettings = SessionSettings()
    zones: tuple[ZoneSettings, ...] = ()
    trips: TripSettings = TripSettings()
    readings: DeclaredReadings = ()
    streams: DeclaredStreams = ()
    store: StoreSettings = StoreSettings()
    pseudonym: PseudonymSettings = PseudonymSettings()
    watch: WatchSettings = WatchSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _something_comes_in(self) -> Self:
        if not self.inputs and not self.streams:
            raise ValueError("inputs: there must be some, or streams")
        return self

    @model_validator(mode="after")
    def _releases_are_not_for_everybody(self) -> Self:
        http = self.http
        known = http.token is not None or http.token_file is not None
        if self.streams and http.enabled and not _loopback(http.host) and not known:
            raise ValueError(
                "http: the API of the streams needs token or token_file off this machine"
            )
        return self

    @model_validator(mode="after")
    def _epochs_fit_presence(self) -> Self:
        if self.region.mode == "session" and self.session.epoch_s >= self.presence.ttl_s:
            raise ValueError("session.epoch_s must be below presence.ttl_s")
        return self

    @model_validator(mode="after")
    def _held_positions_have_no_readings(self) -> Self:
        if self.trips.enabled and self.readings:
            raise ValueError("readings cannot be published where trips.enabled holds positions")
        return self
