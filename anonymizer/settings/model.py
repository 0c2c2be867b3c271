"""The settings file, one class per table.

Units are in the names of the keys. The text below a key says what leaving it out means (None).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from anonymizer.domain.network_sources import sources_of
from anonymizer.settings.analysts import (
    CountSettings,
    CurrentSettings,
    PublicNetworkSettings,
    ShapeSettings,
    TripsOutSettings,
)
from anonymizer.settings.base import (
    MORE_IS_WEAKER,
    NEVER_WEAKER,
    AtLeastOne,
    Group,
    NotNegative,
    OwnTopics,
    Positive,
    Qos,
    TopicFilters,
    covers,
    id_names,
    is_loopback,
    overlap,
)
from anonymizer.settings.broker import BrokerSettings
from anonymizer.settings.cluster import ClusterSettings
from anonymizer.settings.inputs import FixedSettings, InputSettings
from anonymizer.settings.kafka import AnyOutputTopic, KafkaSettings, topic_of_kafka
from anonymizer.settings.protection import DeviceZoneSettings, TripSettings, ZoneSettings
from anonymizer.settings.readings import DeclaredReadings
from anonymizer.settings.regions import (
    AdkaSettings,
    RegionSettings,
    SessionSettings,
)
from anonymizer.settings.streams import DeclaredStreams, StoreSettings
from anonymizer.settings.web import HttpSettings

_DEVICES_PER_MESSAGE = 10
_TICKS_A_REPORT, _LONGEST_REPORT_S = 100, 10.0
_LONGEST_REST_S = 0.025
_LIVES_OF_SILENCE = 0.5
CLOAKED = "cloaked/positions"
_LEAST_EVIDENCE_S = 60
"""Less than that holds no life of a pseudonym."""
OPEN_TREES = frozenset({"anonymized", "anonymizer", "cloaked", "public"})
"""First levels of topics all of which analysts may read where brokers have the shipped rules."""


def _beside(topic: str, name: str) -> str:
    return "/".join([*topic.split("/")[:-1], name])


class NetworkSettings(Group):
    """The road network that positions are located on."""

    source: str = "city:10000"
    """A file (OpenStreetMap, GraphML, GeoPackage, SUMO .net.xml), a prefix PREFIX of
    PREFIX_nodes and PREFIX_edges (parquet or csv), `walk:`, `cycle:`, `streets:` or `water:` and a
    file of OpenStreetMap, `h3:RESOLUTION:AREA` (places without roads), `grid:ROWSxCOLUMNS` or
    `city:NODES`. Several, joined by ` + `, for devices of several kinds: see `inputs.network`."""
    snap_limit_m: Positive = 100.0
    """A position farther than this from every road, in metres, is off the graph and suppressed."""


class OutputSettings(Group):
    """Where cloaked positions are published."""

    topic: AnyOutputTopic = CLOAKED
    """Of mobile devices. Fixed devices (`cloaked/fixed`), current groups (`cloaked/current`),
    counts (`cloaked/counts`) and trips (`cloaked/trips`) are published beside it. `kafka:NAME`: a
    topic of Kafka, see `[kafka]`, for inputs of Kafka alone: the same messages and nothing else;
    the group, or the pseudonym (form `device`), is the key."""
    qos: Qos = 0
    forms: tuple[Literal["cloudevents", "density", "device", "home_assistant", "ngsi_ld"], ...] = ()
    """Other forms of the messages, for programs that expect them. `device`: a message for each
    device, not for all that share a region. It needs `qos = 1` (except in region mode `adka`): at
    QoS 0 nobody knows which messages of a group a lost connection has delivered. `cloudevents`:
    messages about groups, fixed devices, counts and trips are CloudEvents 1.0: MQTT 5 user
    properties state the attributes, their `source` being the path of `broker.status_topic`.
    `ngsi_ld`: groups are also published as NGSI-LD entities, on `cloaked/entities`, beside `topic`,
    with a `location` if `shapes.regions` is `roads` or `bbox`. `density`: for the public, every
    quarter of an hour, about how many mobile devices were in each cell of `counts.cells` a quarter
    of an hour before, on `public/density`. It is made of what is published, so it tells no more.
    `home_assistant`: the gateway is a device of Home Assistant, found by its prefix
    `homeassistant`, with public counts and whether it is ready (retained, `anonymizer/state`)."""
    time_step_s: NotNegative = 0.0
    """Published times are rounded down to a multiple of this, so that several releases may have
    the same time. 0: no rounding."""

    @property
    def kafka(self) -> str | None:
        """The topic of Kafka on which positions are published; None: it is one of MQTT."""
        return topic_of_kafka(self.topic)

    @property
    def form(self) -> Literal["group", "device"]:
        """Whether there is a message for all devices of a region, or one for each."""
        return "device" if "device" in self.forms else "group"


class TickSettings(Group):
    """Ticks of the positions flow."""

    interval_s: Positive = 0.1
    """Length of a tick. Every hundred ticks, but at least every 10 s, the counts of rejected
    positions are published, by reason, on `anonymizer/rejected`, beside `broker.status_topic`.
    A gateway that is stopped ends within as long."""

    @property
    def drain_s(self) -> float:
        """Deadline for finishing the current work when the gateway is stopped."""
        return self.report_every_s

    @property
    def report_every_s(self) -> float:
        """How often a gateway reports on itself, in seconds."""
        return min(_LONGEST_REPORT_S, _TICKS_A_REPORT * self.interval_s)

    @property
    def rest_s(self) -> float:
        """Pause after a read of positions, in seconds: at least four to a tick.

        Each tick ends it, so it delays no position beyond its tick, and finds little to be read.
        """
        return min(_LONGEST_REST_S, self.interval_s / 4)


class PresenceSettings(Group):
    """How long a device counts as present at its last position, and which times are accepted."""

    ttl_s: Positive = 120.0
    """A device that has not reported for this long no longer counts as present; if nothing at all
    has arrived for half as long, one line of the log says so. Unless this or
    `session.epoch_s` is set, both grow in `session` mode where most devices report less often than
    every 30 seconds, so that slow fleets are grouped too: the epoch up to the interval of nine in
    ten devices (at most 300 s), the time to live to the epoch and 1.5 intervals."""
    parked_s: Positive | None = None
    """A device that has stayed near one node for this long is parked, and shares groups only with
    parked devices, because whoever subtracts the nodes that never change from a region finds the
    others (`session`). It doubles the regions of vehicles where nine in ten are parked, and few
    vehicles among parked ones wait for company. None: parked devices are company for all."""
    max_devices: Annotated[int, Field(ge=1, le=50_000_000)] = 1_000_000
    """Most devices present at once; positions of further devices are suppressed as overload. Half
    of it is for devices on the roads, which take the other half, too, as they come: ids off the
    roads give up their places, and new ones get none, once half is used. A tenth of it are the most
    messages that wait for a tick, apart from those that are decoded before it ends. Beyond that, or
    when a tick is late, only the newest of each device is kept; the others are counted as overload.
    Positions of Kafka wait there instead."""
    max_behind_s: Annotated[Positive, MORE_IS_WEAKER] = 60.0
    """How old a position may be when it arrives; at most `ttl_s`."""

    @property
    def silence_s(self) -> float:
        """After how long without any message the log says so."""
        return _LIVES_OF_SILENCE * self.ttl_s

    @property
    def queue_limit(self) -> int:
        """Most messages that wait for a tick."""
        return max(1, self.max_devices // _DEVICES_PER_MESSAGE)

    @model_validator(mode="after")
    def _expired_devices_have_no_valid_positions(self) -> Self:
        # After a device has expired, an older position can no longer be recognized as late.
        if self.max_behind_s > self.ttl_s:
            raise ValueError("max_behind_s must not exceed ttl_s")
        return self


class LimitSettings(Group):
    """Limits of a single message."""

    max_positions: ClassVar[int] = 10_000
    """Most positions in one message."""
    max_device_id_chars: ClassVar[int] = 256
    max_payload_bytes: Annotated[int, Field(ge=16), MORE_IS_WEAKER] = 262_144
    max_ids_per_topic: AtLeastOne = 20_000
    """Most devices that the payloads of one topic may name within `presence.ttl_s`
    (`device_from = "payload"`), or vehicles within a window of a stream (`sources.vehicle`);
    messages about others are suppressed."""


class WatchSettings(Group):
    """Attacks of the gateway on its own traffic: see docs/evidence.md."""

    evidence_s: NotNegative = 0.0
    """The traffic of so many seconds is kept in memory, and attacked whenever they are over: 3600
    for every hour, 86400 for every night, at midnight UTC. Less is kept where that would be too
    much. 0: none is kept; else at least 60."""
    reports: Path | None = None
    """A directory for what the attacks found: figures alone, for 31 days, and a page for each day.
    None: only metrics and `/evidence` tell it."""

    @model_validator(mode="after")
    def _reports_are_of_something(self) -> Self:
        if self.reports is not None and not self.evidence_s:
            raise ValueError("reports needs evidence_s")
        if 0 < self.evidence_s < _LEAST_EVIDENCE_S:
            raise ValueError(f"evidence_s must be 0 or at least {_LEAST_EVIDENCE_S}")
        return self


class LogSettings(Group):
    """Logging. Logs never contain an identity or a coordinate."""

    level: Annotated[Literal["debug", "info", "warning", "error"], NEVER_WEAKER] = "info"
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
    trips_out: TripsOutSettings = TripsOutSettings()
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
    kafka: KafkaSettings = KafkaSettings()
    cluster: ClusterSettings = ClusterSettings()
    watch: WatchSettings = WatchSettings()
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()

    @model_validator(mode="after")
    def _there_is_an_input(self) -> Self:
        if not self.inputs and not self.streams:
            raise ValueError("inputs: at least one is required, or streams")
        return self

    @model_validator(mode="after")
    def _something_reaches_each_input(self) -> Self:
        before = TopicFilters[int]()
        for i, each in enumerate(self.inputs):
            for earlier in before.overlapping(each.topic):
                if covers(topic := self.inputs[earlier].topic, each.topic):
                    raise ValueError(
                        f"inputs (no. {i + 1}): no message would reach it: no. {earlier + 1}"
                        f" ({topic}) comes first and takes all of its topics; put the narrower"
                        " topic first"
                    )
            before.add(each.topic, i)
        return self

    @model_validator(mode="after")
    def _kafka_takes_all_of_positions(self) -> Self:
        of_kafka = {each.kafka is not None for each in self.inputs}
        if of_kafka and of_kafka != {self.output.kafka is not None}:
            raise ValueError(
                "inputs: topic and output.topic go together: one gateway reads and publishes"
                " positions either in Kafka or by MQTT"
            )
        if self.output.kafka is None:
            return self
        names = [*{each.kafka for each in self.inputs}, self.output.kafka, *self.echoes]
        if len(set(names)) < len(names):
            raise ValueError("output.topic, inputs: topic and echo must all be different topics")
        only_mqtt = {
            "counts": self.counts.enabled,
            "current": bool(self.current.every_s),
            "device_zones": self.device_zones.enabled,
            "output.forms": bool({*self.output.forms} - {"device"}),
            "trips_out": bool(self.trips_out.every_s),
            'inputs.kind = "fixed"': any(each.kind != "mobile" for each in self.inputs),
        }
        if refused := [key for key, is_on in only_mqtt.items() if is_on]:
            raise ValueError(
                f"output.topic: of Kafka, not with {', '.join(refused)}, which needs MQTT"
            )
        return self

    @model_validator(mode="after")
    def _a_lasting_session_has_a_lasting_id(self) -> Self:
        broker = self.broker
        if broker.session_expiry_s and broker.random_client_id and not self.streams:
            raise ValueError(
                "broker: session_expiry_s needs the same client id at every start; without streams"
                " set a client_id of 32 random characters or more, which cannot be guessed"
            )
        return self

    @model_validator(mode="after")
    def _groups_are_delivered_whole(self) -> Self:
        output = self.output
        unknown = not output.qos and output.kafka is None
        if output.form == "device" and unknown and self.region.mode != "adka":
            raise ValueError(
                'output: forms = ["device"] needs qos = 1: at QoS 0 nobody knows which messages of'
                " a group a lost connection has delivered, and k pseudonyms must share all of them"
            )
        return self

    @model_validator(mode="after")
    def _echoes_are_delivered_whole_and_apart(self) -> Self:
        if not self.echoes:
            return self
        if not self.output.qos and self.output.kafka is None and self.region.mode != "adka":
            raise ValueError(
                "inputs: echo needs output.qos = 1: it is a message for each pseudonym, and at QoS"
                " 0 nobody knows which of a group a lost connection has delivered"
            )
        others = [topic for key, topic in self._output_topics() if "echo" not in key]
        for i, echo in enumerate(self.echoes):
            for other in others + self.echoes[:i]:
                if overlap(f"{echo}/#", f"{other}/#"):
                    raise ValueError(
                        "inputs: echo must be a topic on which nothing else is published, not"
                        " another echo either: each tells of all devices"
                    )
        return self

    @property
    def topics(self) -> OwnTopics:
        """Topics that follow from those of the settings: whoever moves one moves all beside it."""
        # In Kafka nothing is published beside the positions.
        cloaked = self.output.topic if self.output.kafka is None else CLOAKED
        own = self.broker.status_topic
        return OwnTopics(
            fixed=_beside(cloaked, "fixed"),
            public="public/fixed",
            density="public/density",
            current=_beside(cloaked, "current"),
            counts=_beside(cloaked, "counts"),
            entities=_beside(cloaked, "entities"),
            network=_beside(own, "network"),
            rejected=_beside(own, "rejected"),
            probe=_beside(own, "probe"),
            state=_beside(own, "state"),
            trips=_beside(cloaked, "trips"),
        )

    @property
    def in_kafka(self) -> bool:
        """Whether the gateway's own connection, that of positions, is to Kafka."""
        of_records = bool(self.streams) and self.streams[0].kafka is not None
        return of_records if not self.inputs else self.output.kafka is not None

    @property
    def kafka_outputs(self) -> dict[str, str]:
        """The topics of Kafka for what is published of positions, by topic of the pipeline."""
        if self.output.kafka is None:
            return {}
        return {self.output.topic: self.output.kafka} | {echo: echo for echo in self.echoes}

    @property
    def splits_groups(self) -> bool:
        """Whether several messages tell of a group, so that all or none of them must arrive."""
        return self.output.form == "device" or bool(self.echoes)

    @property
    def echoes(self) -> list[str]:
        """The topics of all echoes."""
        return [each.echo for each in self.inputs if each.echo is not None]

    @model_validator(mode="after")
    def _outputs_of_positions_differ(self) -> Self:
        topics = (self.output.topic, *self.topics)
        if len(set(topics)) < len(topics):
            raise ValueError(
                "output.topic must differ from the other topics of the gateway, beside it and"
                f" beside broker.status_topic ({', '.join(self.topics)})"
            )
        return self

    @model_validator(mode="after")
    def _nothing_raw_is_where_analysts_read(self) -> Self:
        published = TopicFilters[str]()
        trees: set[str] = set()
        for output, topic in self._output_topics():
            tree = topic.split("/")[0]
            below = f"{tree if tree in OPEN_TREES else topic}/#"
            if below not in trees:
                published.add(below, output)
                trees.add(below)
        for key, stated in self._raw_topics():
            for output in published.overlapping(stated):
                raise ValueError(
                    f"{key}: topic: lies where the gateway publishes ({output}), so analysts"
                    ' could read raw data there; choose another one, such as "raw/{device}"'
                )
        return self

    def _raw_topics(self) -> Iterator[tuple[str, str]]:
        """Yield key and filter of everything that only the gateway may read."""
        for i, each in enumerate(self.inputs):
            yield f"inputs (no. {i + 1})", each.topic
        for i, stream in enumerate(self.streams):
            for j, source in enumerate(stream.sources):
                yield f"streams (no. {i + 1}).sources (no. {j + 1})", source.filter_topic
        if self.device_zones.enabled:
            yield "device_zones", self.device_zones.filter_topic

    def _output_topics(self) -> Iterator[tuple[str, str]]:
        """Yield key and topic of everything that the gateway may publish, below it too."""
        yield "broker.status_topic", self.broker.status_topic
        for topic in (self.topics.network, self.topics.rejected, self.topics.state):
            yield "broker.status_topic", topic
        own = self.topics
        beside = (own.fixed, own.current, own.counts, own.entities, own.trips)
        yield from (("output.topic", topic) for topic in (*beside, self.output.topic))
        yield "inputs.kind", own.public
        yield "output.forms", own.density
        for i, each in enumerate(self.inputs):
            if each.echo is not None:
                yield f"inputs (no. {i + 1}).echo", each.echo
        for stream in self.streams:
            yield "streams.topic", stream.topic.replace("{stream}", stream.name)

    @model_validator(mode="after")
    def _zones_name_devices_as_positions_do(self) -> Self:
        # The statement of a device under another id would be in vain, and nobody would notice.
        stated = id_names(self.device_zones.filter_topic)
        for each in self.inputs if self.device_zones.enabled else ():
            named = id_names(each.topic)
            of_topic = each.kind == "mobile" and each.device_from == "topic"
            if of_topic and named != stated and max(len(named), len(stated)) > 1:
                raise ValueError(
                    "device_zones: topic must name the levels of a device's id as the topics of"
                    " mobile inputs do, in the same order"
                )
        return self

    @model_validator(mode="after")
    def _what_a_vehicle_adds_to_counts_is_bounded(self) -> Self:
        counts = self.counts
        bounded = counts.enabled and counts.privacy == "dp" and counts.device_intervals is not None
        if bounded and any(each.ids_live_s for each in self.inputs):
            raise ValueError(
                "counts: device_intervals bounds what an id adds; leave it out where vehicles"
                " change their ids (inputs.ids_change_s), then every interval counts each once"
            )
        if counts.times_trips and any(each.ids_live_s for each in self.inputs):
            raise ValueError(
                "counts: trip_durations tells how long trips of an id take; leave it out where"
                " vehicles change their ids (inputs.ids_change_s)"
            )
        return self

    @model_validator(mode="after")
    def _trips_are_of_vehicles(self) -> Self:
        if self.counts.streets_s and not self.http.enabled:
            raise ValueError("counts: streets_s needs http.host: HTTP alone tells it")
        asked = bool(self.trips_out.every_s or self.counts.streets_s)
        if asked and any(each.ids_live_s for each in self.inputs):
            raise ValueError(
                "trips_out, counts.streets_s: not where vehicles change their ids"
                " (inputs.ids_change_s): one vehicle would be company for itself"
            )
        return self

    @model_validator(mode="after")
    def _devices_of_several_networks_are_told_apart(self) -> Self:
        sources = sources_of(self.network.source)
        for i, each in enumerate(self.inputs, 1):
            needs_none = len(sources) == 1 or each.kind == "public"
            if each.network not in sources and (each.network is not None or not needs_none):
                known = ", ".join(sources)
                raise ValueError(
                    f"inputs (no. {i}): network must be one of network.source: {known}"
                )
        figures = self.counts.enabled or self.counts.streets_s or self.trips_out.every_s
        if len(sources) > 1 and figures:
            # A cell of all networks may have few nodes of one, and tells where a device of it is.
            raise ValueError(
                "network.source: of several networks, counts, streets and trips_out would count"
                " devices of different kinds together; run a gateway for each network"
            )
        return self

    @property
    def layer_of_input(self) -> tuple[int, ...]:
        """Index of the network of each input's devices, -1 for none; empty: there is one."""
        sources = sources_of(self.network.source)
        number = {source: i for i, source in enumerate(sources) if len(sources) > 1}
        return tuple(number.get(each.network or "", -1) for each in self.inputs if number)

    @model_validator(mode="after")
    def _remote_api_has_a_token(self) -> Self:
        http = self.http
        known = http.token is not None or http.token_file is not None
        if self.streams and http.enabled and not is_loopback(http.host) and not known:
            raise ValueError(
                "http: the API of the streams needs token or token_file unless host is this machine"
            )
        return self

    @model_validator(mode="after")
    def _epochs_fit_presence(self) -> Self:
        if self.region.mode == "session" and self.session.epoch_s >= self.presence.ttl_s:
            raise ValueError("session.epoch_s must be below presence.ttl_s")
        return self

    @model_validator(mode="after")
    def _expired_devices_have_no_valid_positions(self) -> Self:
        for i, each in enumerate(self.inputs, 1):
            if each.max_behind_s is not None and each.max_behind_s > self.presence.ttl_s:
                raise ValueError(f"inputs (no. {i}).max_behind_s must not exceed presence.ttl_s")
        return self

    @property
    def oldest_s(self) -> float:
        """How old a position of any input may be when it arrives, seconds."""
        usual_s, ttl_s = self.presence.max_behind_s, self.presence.ttl_s
        return max((each.oldest_s(usual_s, ttl_s=ttl_s) for each in self.inputs), default=usual_s)

    @property
    def follows_intervals(self) -> bool:
        """Whether times follow how often devices report: see `presence.ttl_s`."""
        stated = "ttl_s" in self.presence.model_fields_set
        return self.region.mode == "session" and not (
            stated or "epoch_s" in self.session.model_fields_set
        )

    @model_validator(mode="after")
    def _evidence_can_be_had_and_seen(self) -> Self:
        watch, http = self.watch, self.http
        if watch.evidence_s and all(each.kind != "mobile" for each in self.inputs):
            raise ValueError("watch.evidence_s: needs inputs of mobile devices")
        shown = http.enabled and (http.token is not None or http.token_file is not None)
        if watch.evidence_s and watch.reports is None and not shown:
            raise ValueError(
                "watch.evidence_s: needs watch.reports, or http.token_file: metrics and `/evidence`"
                " tell what is found to the bearer of the token alone"
            )
        return self

    @model_validator(mode="after")
    def _held_positions_have_no_readings(self) -> Self:
        if self.trips.enabled and self.readings:
            raise ValueError("readings cannot be published where trips.enabled holds positions")
        return self
