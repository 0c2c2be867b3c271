"""Settings of streams of records: sources, attributes, windows and promise."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from anonymizer.algorithms.models.registry import MODELS, USUAL, told
from anonymizer.algorithms.models.registry import named as models_with
from anonymizer.algorithms.records.methods import AUTO
from anonymizer.algorithms.windows import WindowRule
from anonymizer.codecs.paths import JsonPath, Step
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import BY_D, FURTHER, bounds_of, criteria_of, named
from anonymizer.domain.promises import Promise, bounds_sensitive, check_numbers
from anonymizer.errors import SettingsError
from anonymizer.settings.base import (
    Group,
    Name,
    NotNegative,
    Positive,
    TopicFilters,
    check_filter,
    is_field,
    overlap,
)
from anonymizer.settings.criteria import with_criteria
from anonymizer.settings.kafka import AnyOutputTopic, topic_below, topic_of_kafka
from anonymizer.settings.payloads import PayloadPath, Where
from anonymizer.settings.stream_attributes import AttributeSettings

MOST_OF_A_VEHICLE = 100
"""Records of one vehicle in a window, where each part is a record; further ones are suppressed."""
_MAX_AHEAD_S = 5.0
"""How far a vehicle's clock may be ahead of the gateway's: clocks set by radio or network are."""
if TYPE_CHECKING:
    ModelName: TypeAlias = str
    MethodName: TypeAlias = str
else:
    ModelName = Literal[tuple(MODELS)]
    MethodName = Literal[(AUTO, *(name for each in MODELS.values() for name in each.of_streams))]


class SourceSettings(Group):
    """One topic that carries a part of each vehicle's record."""

    name: Name
    topic: str = "records/{source}/{vehicle}"
    """Topic filter. `{source}` is the name of this source; `{vehicle}` is the level with the
    vehicle's identifier; `+` and a final `#` match anything. Further such levels, `{depot}`, are
    parts of the identifier too: all are joined by `/`. `kafka:NAME`: a topic of Kafka, see
    `[kafka]`; the vehicle is the key of its messages, unless `vehicle` is set. The topic of the
    stream must be one, too."""
    vehicle: PayloadPath | None = None
    """Where the identifier of the vehicle is in the payload, `truck.plate`: text or a whole number.
    The topic then has no `{vehicle}`, and may name `limits.max_ids_per_topic` vehicles in a window.
    A broker's ACL can enforce a topic; nothing can enforce a payload. In Kafka also `header:NAME`,
    a header of the messages. None: it is in the topic, or the key."""
    time: PayloadPath = "ts"
    """Where the time is in the payload, `exit.at`: a number since 1970, in s, ms, us or ns by its
    size, or ISO 8601 text."""
    where: Where = Field(default={})
    """Only messages with these values count, by path: `{ "vehicle.type" = ["truck", "bus"] }`. The
    others are counted as `not_selected`."""
    tells: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of the attributes in the payload; each attribute has one source."""
    needed: bool = False
    """Whether a record without a part from this source is suppressed. Otherwise its attributes
    are missing from the record."""

    @model_validator(mode="before")
    @classmethod
    def _messages_of_kafka_have_topics(cls, stated: Any) -> Any:  # noqa: ANN401  what is stated
        """State the topic under which messages of Kafka pass the pipeline."""
        if not isinstance(stated, dict) or topic_of_kafka(stated.get("topic")) is None:
            return stated
        in_payload = stated.get("vehicle") is not None and _header(stated["vehicle"]) is None
        return stated | {"topic": topic_below(stated["topic"], "" if in_payload else "/{vehicle}")}

    @model_validator(mode="after")
    def _headers_are_of_kafka(self) -> Self:
        if self.header is not None and self.kafka is None:
            raise ValueError('vehicle: "header:NAME" is for Kafka')
        return self

    @model_validator(mode="after")
    def _topic_is_a_filter(self) -> Self:
        check_filter(self.filter_topic, "vehicle")
        levels = self.filter_topic.split("/")
        if self.vehicle_path is None and "{vehicle}" not in levels:
            raise ValueError("topic: {vehicle} is required, unless `vehicle` is in the payload")
        if self.vehicle_path is not None and any(map(is_field, levels)):
            raise ValueError("topic: must not name the vehicle, which is in the payload")
        return self

    @property
    def kafka(self) -> str | None:
        """The topic of Kafka that is read; None: one of MQTT is."""
        return topic_of_kafka(self.topic)

    @property
    def header(self) -> str | None:
        """Name of the header of Kafka's messages that has the identifier; None: none has."""
        return _header(self.vehicle)

    @property
    def vehicle_path(self) -> PayloadPath | None:
        """Where the identifier is in the payload; None: it is not there."""
        return None if self.header is not None else self.vehicle

    @property
    def filter_topic(self) -> str:
        """The topic with the name of the source filled in."""
        return self.topic.replace("{source}", self.name)


@with_criteria
class PromiseSettings(Group):
    """Criteria of every published class; see `anonymizer.domain.promises.Promise`."""

    k: Annotated[int, Field(ge=2)] = 10
    """Fewest distinct vehicles."""
    d: Annotated[int, Field(ge=1)] = 2
    """Fewest distinct original values of every quasi-identifier."""
    l: Annotated[int, Field(ge=1)] = 1  # noqa: E741  the field's name for it
    """Fewest distinct values of every sensitive attribute."""
    k_extra: Annotated[int, Field(ge=0)] = 0
    """Vehicles of a class beyond k, so that k are left if an adversary has made up so many of them;
    likewise values beyond d, where d is 2 or more. All other criteria hold without any so many
    vehicles of a class."""

    if TYPE_CHECKING:

        def __init__(self, **stated: Any) -> None: ...  # noqa: ANN401  criteria, too

    @property
    def bounds_sensitive(self) -> bool:
        """Whether there is a criterion on sensitive attributes."""
        return bounds_sensitive(self.promise)

    @property
    def promise(self) -> Promise:
        """The promise as the algorithms take it."""
        d = self.d + self.k_extra if self.d > 1 else 1  # each of the made up has a value
        bounds = bounds_of(dict(self), d)
        return Promise(k=self.k + self.k_extra, d=d, l=self.l, margin=self.k_extra, **bounds)


class StreamSettings(Group):
    """One `[[streams]]` table: records of vehicles, joined and published by window."""

    name: Name
    sources: Annotated[tuple[SourceSettings, ...], Field(min_length=1)]
    attributes: Annotated[tuple[AttributeSettings, ...], Field(min_length=1)]
    promise: PromiseSettings = PromiseSettings()
    topic: AnyOutputTopic = "anonymized/{stream}"
    """Where classes are published, at QoS 1. `kafka:NAME`: on a topic of Kafka, see `[kafka]`; all
    sources must be of Kafka, too."""
    per: Literal["vehicle", "record"] = "vehicle"
    """`vehicle`: the parts of a vehicle in a window are joined into one record. `record`: each
    part is a record, for example an exit from a motorway, up to 100 of a vehicle in a window; k
    still counts vehicles."""
    trucks_only: bool = False
    """Whether all vehicles of the stream are trucks, because its sources select them (`where`) or
    nobody else reports there. Classes of `kaca`, and the toll API, then state `truck_count`; else
    it is null, and `vehicle_count` counts all vehicles."""
    window_s: Positive = 300.0
    """Length of a window, in event time."""
    utc_offset_h: Annotated[float, Field(ge=-14, le=14)] = 0.0
    """How far local time is ahead of UTC, all year: in summer times without an offset would be an
    hour ahead, so let sources state one. Local time applies to texts without an offset, to the time
    of day, and to the days that windows are aligned with."""
    lateness_s: NotNegative = 30.0
    """A window closes when every active source has sent a time this long after its end."""
    idle_s: Positive | None = None
    """A source of which no part has been accepted for this long in wall-clock time is no longer
    active. When no source is active, every window closes. No window waits longer than this for a
    source whose times are behind those of another. None: `window_s + lateness_s`."""
    max_records: Annotated[int, Field(ge=1, le=50_000_000)] = 200_000
    """Most records in all open windows together; further vehicles are rejected as overload."""
    model: ModelName = Field(
        default=USUAL,
        description=" ".join(f"`{each.name}`: {each.meaning}" for each in MODELS.values())
        + f" Of {models_with(lambda each: each.d == 1, mark='`')} `d` is 1 unless set, or 2 where a"
        " quasi-identifier lasts and `cumulative` is not `report`.",
    )
    method: MethodName = Field(
        default=AUTO, description=told(lambda each: each.in_streams, mark="`")
    )
    target: Annotated[str, Field(max_length=64)] | None = None
    """The sensitive attribute or measure that a model will learn from the release; the tree of
    `cells` follows it. Empty: no target, cells are only made small. None: the first sensitive
    attribute if the promise bounds it, otherwise no target."""
    labels: Literal["representative", "range"] = "representative"
    """How `cells` generalizes the values of a class: `representative`, the median or the most
    frequent category; `range`, the values that occur, as `kd` does. Left out: `range` where a
    quasi-identifier lasts and `cumulative` is not `report`."""
    budget_s: Annotated[Positive, Field(le=28_800)] = 2.0
    """Longest search per window, in seconds."""
    cost: Literal["range", "set", "taxonomy"] = "range"
    """The information loss to minimize. `taxonomy` also publishes labels of hierarchies."""
    cumulative: Literal["report", "enforce"] | None = None
    """What is done about vehicles whose published classes, intersected over the windows, leave
    fewer than d values of a lasting quasi-identifier, or l of a lasting sensitive attribute:
    `report` counts them; `enforce`, also None, publishes vehicles in lasting cohorts, so that there
    are none, and suppresses those that it cannot protect. It needs d of 2 or more, l where a
    sensitive attribute lasts, and of `cells` the labels `range`. Its classes are those that lose
    least, as with `kd`, unless a tree learns a target."""
    language: Literal["zh", "en"] = "zh"
    """Language of the labels in messages of `kaca`."""

    @property
    def enforces(self) -> bool:
        """Whether windows together keep the promise on lasting attributes."""
        return self.cumulative != "report"

    @property
    def unprotected(self) -> bool:
        """Whether attributes last, and windows together may reveal them."""
        return any(a.lasting for a in self.attributes) and not self.enforces

    @property
    def begin_s(self) -> float:
        """Where a window begins after a multiple of `window_s`: one begins with each local day."""
        return -self.utc_offset_h * 3600 % self.window_s

    @property
    def silence_s(self) -> float:
        """`idle_s`, or its default."""
        return self.window_s + self.lateness_s if self.idle_s is None else self.idle_s

    @property
    def rule(self) -> WindowRule:
        """The windows as the algorithms take them."""
        rule = WindowRule(
            length_s=self.window_s,
            offset_s=self.begin_s,
            lateness_s=self.lateness_s,
            silence_s=self.silence_s,
            max_ahead_s=_MAX_AHEAD_S,
            n_to_leap=self.promise.k,
        )
        return replace(rule, max_open=max(rule.max_open, int(rule.least_open)))

    @property
    def kafka(self) -> str | None:
        """The topic of Kafka on which classes are published; None: it is one of MQTT."""
        return topic_of_kafka(self.topic)

    @property
    def output_topic(self) -> str:
        """The topic with the name of the stream filled in."""
        return self.topic.replace("{stream}", self.name)

    def topics_shared_with(
        self, other: "StreamSettings"
    ) -> list[tuple[SourceSettings, SourceSettings]]:
        """Return the sources of both streams that may read one message."""
        return [
            (mine, theirs)
            for mine in self.sources
            for theirs in other.sources
            if overlap(mine.filter_topic, theirs.filter_topic)
        ]

    def values_shared_with(self, other: "StreamSettings") -> list[str]:
        """Return the names of attributes whose values both streams take from one message.

        Their classes can be intersected: what is left of a value may be less than either promises.
        Measures are left out, of which a class tells the mean alone.
        """
        return [self.attributes[i].name for i, _ in self.same_values(other)]

    def same_values(self, other: "StreamSettings") -> list[tuple[int, int]]:
        """Return the attributes of `values_shared_with`, as their indices in either stream."""
        return [
            (i, j)
            for mine, theirs in self.topics_shared_with(other)
            for i, place in self._places(mine).items()
            for j, its in other._places(theirs).items()  # noqa: SLF001  of the same class
            if place == its
        ]

    def n_trucks(self, n_vehicles: int) -> int | None:
        """Return how many of the vehicles of a class are trucks, None if nobody said."""
        return n_vehicles if self.trucks_only else None

    def _places(self, source: SourceSettings) -> dict[int, tuple[Step, ...]]:
        """Return where each value that classes tell is in the payloads, by attribute."""
        return {
            i: ("the time of day",)
            if a.time_of_day and a.path is None
            else ((a.name,) if a.path is None else JsonPath.of(a.path).parts)
            for i, a in enumerate(self.attributes)
            if a.name in source.tells and a.role != "measure"
        }

    @property
    def by_representatives(self) -> bool:
        """Whether a class is told by a representative, not by what its members have."""
        return MODELS[self.model].learns and self.labels == "representative"

    @property
    def learned(self) -> str | None:
        """The attribute that the classes of a model that learns follow, or None."""
        if not MODELS[self.model].learns:
            return None
        sensitive = [a.name for a in self.attributes if a.role == "sensitive"]
        if self.target is None and sensitive and self.promise.bounds_sensitive:
            return sensitive[0]
        return self.target or None

    @model_validator(mode="before")
    @classmethod
    def _default_of_the_model(cls, said: Any) -> Any:  # noqa: ANN401  whatever is in the file
        model = MODELS.get(str(said.get("model"))) if isinstance(said, dict) else None
        promise = said.get("promise", {}) if model is not None else None
        if model is None or model.d > 1 or not isinstance(promise, dict):
            return said
        keeps = _keeps_lasting(said)
        unbounded = {each.name: each.neutral for each in BY_D} if model.counts_alone else {}
        labels = {"labels": "range"} if keeps and model.learns else {}
        return labels | said | {"promise": {"d": 2 if keeps else 1, **unbounded} | promise}

    @model_validator(mode="after")
    def _kafka_takes_all_of_a_stream(self) -> Self:
        read = {source.kafka for source in self.sources}
        if {each is not None for each in read} != {self.kafka is not None}:
            raise ValueError(
                "topic: and that of sources go together: a stream is read and published either in"
                " Kafka or by MQTT"
            )
        if self.kafka is not None and self.kafka in read:
            raise ValueError("topic: must be another topic of Kafka than those of sources")
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [attribute.name for attribute in self.attributes]
        carried = [name for source in self.sources for name in source.tells]
        _each_once("attributes", names)
        _each_once("sources", [source.name for source in self.sources])
        _each_once("sources: topic", [source.filter_topic for source in self.sources])
        _each_once("sources: tells", carried)
        by_time = {attribute.name for attribute in self.attributes if attribute.time_of_day}
        path_of = {
            a.name: (a.name,) if a.path is None else JsonPath.of(a.path).parts
            for a in self.attributes
        }
        for i, source in enumerate(self.sources, start=1):
            if not set(source.tells) <= set(names):
                raise ValueError(
                    f"sources (no. {i}).tells: contains an attribute that is not declared"
                )
            taken = {"the time of a part": source.time, "the vehicle": source.vehicle_path}
            for what, path in taken.items():
                parts = None if path is None else JsonPath.of(path).parts
                for name in set(source.tells) - by_time:
                    if path_of.get(name) == parts:
                        raise ValueError(
                            f"sources (no. {i}).tells: {name} is {what}, not an attribute"
                        )
        if set(carried) != set(names):
            raise ValueError("every attribute must have a source")
        if self.per == "record" and (
            len(self.sources) > 1 or any(a.lasting for a in self.attributes)
        ):
            raise ValueError('per: "record" requires a single source and no lasting attribute')
        return self

    @model_validator(mode="after")
    def _check_promise(self) -> Self:
        sensitive = [a for a in self.attributes if a.role == "sensitive"]
        if not any(a.role == "qi" for a in self.attributes):
            raise ValueError("attributes: at least one must be a quasi-identifier")
        p = self.promise
        if not sensitive and p.bounds_sensitive:
            of = named(criteria_of(Of.SENSITIVE), "and")
            raise ValueError(f"promise: {of} require a sensitive attribute")
        model = MODELS[self.model]
        if p.l < model.l:
            raise ValueError(f'model: "{self.model}" requires promise.l of {model.l} or more')
        numbers = [a for a in self.attributes if a.numeric and not a.bands]
        qis, secret = ([a for a in numbers if a.role == r] for r in ("qi", "sensitive"))
        try:
            model.check(p.promise)
            check_numbers(p.promise, qis, secret)
        except (ValueError, SettingsError) as wrong:
            raise ValueError(f"promise: {wrong}") from None
        if self.method not in {AUTO, *model.of_streams}:
            known = " or ".join((AUTO, *model.of_streams))
            raise ValueError(f'method: must be {known} for "{self.model}"')
        further = (each.is_asked(getattr(p.promise, each.name)) for each in FURTHER)
        if model.counts_alone and any(further):
            raise ValueError(f'promise: "{self.model}" supports k, d and l only')
        return self

    @model_validator(mode="after")
    def _check_cells(self) -> Self:
        if not MODELS[self.model].learns:
            if self.target is not None:
                raise ValueError(f'target: not available for "{self.model}"')
            if self.labels != "representative":
                raise ValueError(f'labels: not available for "{self.model}"')
            return self

        p = self.promise
        role_of = {a.name: a.role for a in self.attributes}
        if self.target and role_of.get(self.target, "qi") == "qi":
            raise ValueError("target: must be a sensitive attribute or a measure")
        if self.target and role_of[self.target] == "sensitive" and not p.bounds_sensitive:
            _, *others = criteria_of(Of.SENSITIVE)
            raise ValueError(
                f"target: is sensitive: requires promise.l of 2 or more, {named(others, 'or')}"
            )
        if any(a.is_open and a.name == self.learned for a in self.attributes):
            raise ValueError('target: must not have values = "any"')
        return self

    @model_validator(mode="after")
    def _check_windows_together(self) -> Self:
        p, roles = self.promise, {a.role for a in self.attributes if a.lasting}
        if not self.enforces or not roles:
            return self
        lacks = {
            "promise.d of 2 or more for a lasting quasi-identifier": "qi" in roles
            and p.promise.d < 2,
            "promise.l of 2 or more for a lasting sensitive attribute": "sensitive" in roles
            and p.l < 2,
            'labels = "range": a representative does not hold what others have': "qi" in roles
            and self.by_representatives,
        }
        for needed in (needed for needed, is_lacking in lacks.items() if is_lacking):
            raise ValueError(
                f'cumulative: "enforce", the default, requires {needed}; "report" lets windows'
                " together reveal lasting attributes"
            )
        return self


class StoreSettings(Group):
    """Store of the records of streams, from arrival to publication."""

    path: Path = Path("anonymizer-records.sqlite")
    """A file that only the service's user may read; created if it does not exist. The budget of
    `[counts]` is kept beside it. While less than 100 MB of its disk are free, records wait at the
    broker and positions go on."""
    keep_published_s: NotNegative = 2_592_000.0
    """How long published classes are kept for queries."""

    @property
    def budget_path(self) -> Path:
        """Where the spent budget of counts is kept."""
        return self.path.with_name("anonymizer-budget.sqlite")


def _keeps_lasting(said: dict[str, Any]) -> bool:
    """Return whether a stream keeps a lasting quasi-identifier over windows."""
    attributes = said.get("attributes")
    each = [a for a in attributes if isinstance(a, dict)] if isinstance(attributes, list) else []
    lasts = any(a.get("lasting") is True and a.get("role", "qi") == "qi" for a in each)
    return lasts and said.get("cumulative") != "report"


def _header(vehicle: object) -> str | None:
    """Return the name of a header in `header:NAME`; None for a path."""
    is_one = isinstance(vehicle, str) and vehicle.startswith("header:")
    return str(vehicle).partition(":")[2] if is_one else None


def _each_once(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: names must be unique")


def _check_together(streams: tuple[StreamSettings, ...]) -> tuple[StreamSettings, ...]:
    _each_once("streams", [stream.name for stream in streams])
    if len({stream.kafka is None for stream in streams}) > 1:
        raise ValueError("topic: all streams are read either in Kafka or by MQTT")
    read = {source.kafka for stream in streams for source in stream.sources} - {None}
    if any(stream.kafka in read for stream in streams):
        raise ValueError("topic: must be another topic of Kafka than those of sources")
    for one, other in sharing(streams):
        for mine, theirs in one.topics_shared_with(other):
            if _reads(mine) != _reads(theirs):
                raise ValueError(
                    f"sources: topic: {one.name} and {other.name} may read one message: both must"
                    " name its topic, and the vehicle in it, alike"
                )
        values = ", ".join(one.values_shared_with(other))
        if values and (one.enforces or other.enforces):
            raise ValueError(
                f"sources: tells: {one.name} and {other.name} publish {values} of the same vehicles"
                " from one topic, so their classes can be intersected: leave each to one of them,"
                ' or set cumulative = "report" in both'
            )
    return streams


def sharing(streams: Sequence[StreamSettings]) -> list[tuple[StreamSettings, StreamSettings]]:
    """Return the pairs of streams, the first one first, that may read one message."""
    pairs: set[tuple[int, int]] = set()
    read = TopicFilters[int]()
    for j, stream in enumerate(streams):
        for source in stream.sources:
            pairs.update((i, j) for i in read.overlapping(source.filter_topic))
        for source in stream.sources:
            read.add(source.filter_topic, j)
    return [(streams[i], streams[j]) for i, j in sorted(pairs)]


def _reads(source: SourceSettings) -> tuple[str, ...]:
    levels = source.filter_topic.split("/")
    path = source.vehicle_path
    vehicle = () if path is None else map(str, JsonPath.of(path).parts)
    of_key = () if source.header is None else (source.header,)
    return ("/".join("{}" if is_field(each) else each for each in levels), *of_key, *vehicle)


DeclaredStreams = Annotated[tuple[StreamSettings, ...], AfterValidator(_check_together)]
"""All `[[streams]]` tables."""
