"""Settings of the inputs of positions: mobile devices, and devices that stand still."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from anonymizer import plugins
from anonymizer.codecs import FORMATS, Codec, Encoder, Format, encoders, guard
from anonymizer.settings.base import (
    EchoTopic,
    FieldName,
    Group,
    NonEmpty,
    NotNegative,
    Positive,
    Qos,
    check_filter,
    id_levels,
    like,
    nearest,
)
from anonymizer.settings.kafka import check_kafka_topic, topic_below, topic_of_kafka
from anonymizer.settings.payloads import PayloadSettings

ANY_JSON = "json"
"""The codec whose format is declared in the settings."""
_EPOCHS_OF_A_TTL = 6
_UNSAID = Format(decode=lambda _: ())
"""What is known of a format that settings declare, or of a plug-in."""
_SOURCE_OF_IDS = r"^(topic|payload|key|header:.+)$"
_NO_SOURCE_OF_IDS = 'must be "topic" or "payload"; for Kafka "key", "header:NAME" or "payload"'


_PACKING = like(
    r"^(gzip|zlib|deflate|base64|lines|cbor|in \S+"
    r"|struct [<>!][0-9a-zA-Z?]+( [A-Za-z_][A-Za-z0-9_]*)+)$",
    "must be gzip, zlib, deflate, base64, lines, cbor, in with a path: in Message, or struct with"
    " its form and fields: struct <ff lat lon",
)


def _as_tuple(stated: Any) -> Any:  # noqa: ANN401  whatever is in the file
    return (stated,) if isinstance(stated, str) else stated


class InputSettings(Group):
    """One subscription for raw positions."""

    topic: str = "positions/{device}"
    """MQTT topic filter. `{device}` stands for the level that names the device; `+` and a final `#`
    match anything. Several such levels, `fleets/{operator}/{vehicle}`, together are the id, joined
    by `/`: what only `+` matches does not tell devices apart. `kafka:NAME`: a topic of Kafka, see
    `[kafka]`; `output.topic` must be one, too."""
    codec: str = "native"
    """Format of the payloads: a name of the manual's list, `json` for any JSON (see `payload`), or
    the name of an installed plug-in (entry point `anonymizer.codecs`)."""
    payload: PayloadSettings | None = None
    """Where a position is in the payloads, for `codec = "json"`."""
    unpack: (
        Annotated[
            tuple[Annotated[str, _PACKING], ...],
            BeforeValidator(_as_tuple),
            Field(min_length=1, max_length=3),
        ]
        | None
    ) = None
    """How payloads are packed: `gzip`, `zlib`, `deflate` (without a header), `base64`; `in
    Message`: the text, or the object, at a path; `lines`: a message on each line; or, in place of
    JSON, `cbor` or fields as of Python's `struct`, `struct <iiI lat lon time`; or several, the
    outermost first: `["in body", "base64"]`. None: they are not, and compressed ones are counted
    as `compressed`."""
    max_unpacked_bytes: Annotated[int, Field(ge=16)] = 1_048_576
    """A payload that unpacks to more is refused as too large."""
    key_file: Path | None = None
    """A file of the secrets with which OwnTracks encrypts, one on each line; each is tried. Not
    set: encrypted messages are refused."""
    qos: Qos = 0
    device_from: Annotated[str, like(_SOURCE_OF_IDS, _NO_SOURCE_OF_IDS)] = "topic"
    """Where the device id is taken from: `topic` or `payload`. A broker's ACL can enforce a topic;
    nothing can enforce a payload. Messages of Kafka have it as their `key`, which is the default,
    or in a header, `header:NAME`: text in UTF-8, in which `%` and `/` become `%25` and `%2F`."""
    within: dict[FieldName, tuple[float, float]] = Field(default={})
    """Least and greatest values of readings, by the names of the codec or of `payload.readings`:
    `{ speed_mps = [2.235, 35.763] }`. Positions that state others, or none, are counted as
    `not_selected`. A reading needs no `[[readings]]` for this."""
    max_speed_mps: Positive = 70.0
    """Fastest speed of these devices, m/s. A position that cannot be reached from the device's last
    one at this speed, give or take a kilometre, is refused as `implausible_jump`. A device that
    stays there is believed once it has been silent for `presence.ttl_s` and its group has ended.
    70 (252 km/h) holds for roads and most trains; aeroplanes need 300."""
    max_accuracy_m: Positive = 200.0
    """Positions that may be farther than this from where their device is, as they state themselves,
    are refused as `inaccurate`: a place by radio masts can be kilometres away. Receivers on roads
    are within 50. Those that state no accuracy pass."""
    max_behind_s: Positive | None = None
    """How old a position may be when it arrives, at most `presence.ttl_s`. None: 90 for feeds of
    GTFS-realtime, whose rules allow that, else `presence.max_behind_s`."""
    ids_change_s: NotNegative | None = None
    """How long a vehicle keeps its id, if the ids of this input change, as temporary ids of BSM and
    CAM do. A former id is then no company for the next one, and no vehicle counts twice in a group
    or in safe counts. 0 in all inputs: ids stay. None: 300 for the codecs `j2735` and `etsi_cam`
    with `device_from = "payload"`, else each stays that has been heard over `presence.ttl_s`."""
    kind: Literal["mobile", "fixed", "public"] = "mobile"
    """`fixed`: devices that stand still, such as sensors, and are hidden among those of all inputs.
    They never count towards k of mobile devices, and share no group with them. `public`: devices
    that stand still, too, whose id, exact position and declared readings are published as they are,
    on `public/fixed`."""
    network: NonEmpty | None = None
    """On which of several networks these devices move: one of the sources in `network.source`, as
    written there. A device that another input names, on another network, is off the graph. None:
    there is one network."""
    registry: Path | None = None
    """A csv file with the columns `device_id`, `lat` and `lon`: where the fixed devices stand. A
    payload may then consist of readings alone, and the position of a listed device is always the
    listed one. Not set: every payload states a position."""
    echo: EchoTopic | None = None
    """Topic on which what is published is also written in the format of this input, for programs
    that read it: a message for each pseudonym, with the centre of its region as the position.
    `{pseudonym}` stands for a level that names the pseudonym. It tells of all devices of this
    `kind`, whichever input they came by, and nothing that the regions do not. It needs
    `output.qos = 1`. For an input of Kafka it is a topic of Kafka, which must exist; the pseudonym
    is the key. None: it is not written."""

    @model_validator(mode="before")
    @classmethod
    def _messages_of_kafka_have_topics(cls, stated: Any) -> Any:  # noqa: ANN401  what is stated
        """State the topic under which messages of Kafka pass the pipeline."""
        if not isinstance(stated, dict) or topic_of_kafka(stated.get("topic")) is None:
            return stated
        below = "" if stated.get("device_from") == "payload" else "/{device}"
        return {"device_from": "key"} | stated | {"topic": topic_below(stated["topic"], below)}

    @model_validator(mode="after")
    def _keys_and_headers_are_of_kafka(self) -> Self:
        if (self.kafka is None) != (self.device_from in {"topic", "payload"}):
            if self.kafka is None:
                raise ValueError('device_from: "key" and "header:NAME" are for Kafka')
            if self.device_from == "topic":
                raise ValueError('device_from: a topic of Kafka names no device; "key" does')
        if self.kafka is not None and self.echo is not None:
            try:
                check_kafka_topic(self.echo)
            except ValueError as error:
                raise ValueError(f"echo: {error}") from None
        return self

    @field_validator("codec")
    @classmethod
    def _codec_is_known(cls, codec: str) -> str:
        known = {*FORMATS, ANY_JSON, *plugins.plugin_names(plugins.CODECS)}
        if codec not in known:
            raise ValueError(f"must be one of {', '.join(sorted(known))}" + nearest(codec, known))
        return codec

    @model_validator(mode="after")
    def _topic_is_a_filter(self) -> Self:
        if not self.topic:
            raise ValueError("topic: must not be empty")
        check_filter(self.topic, "device")
        if (self.device_from != "payload") != bool(id_levels(self.topic)):
            raise ValueError('topic: {device} is needed, unless device_from = "payload"')
        return self

    @field_validator("within")
    @classmethod
    def _bounds_hold_something(
        cls, within: dict[str, tuple[float, float]]
    ) -> dict[str, tuple[float, float]]:
        for name, (lo, hi) in within.items():
            if not lo <= hi:
                raise ValueError(f"{name}: the first bound must not be above the second")
        return within

    @model_validator(mode="after")
    def _the_format_is_declared(self) -> Self:
        if self.key_file is not None and self.codec != "owntracks":
            raise ValueError('key_file: is for codec = "owntracks"')
        if self.codec != ANY_JSON:
            if self.payload is not None:
                raise ValueError(f'payload: is for codec = "{ANY_JSON}"')
            return self
        if self.payload is None:
            raise ValueError(f'payload: codec = "{ANY_JSON}" needs at least payload.lat and lon')
        if self.payload.lat is None and self.registry is None:
            raise ValueError("payload: lat and lon are needed, unless there is a registry")
        if self.payload.join_s is not None and (self.payload.lat is None or self.kind != "mobile"):
            raise ValueError("payload: join_s needs lat, lon and time, and is for mobile devices")
        if self.payload.bare and not (
            self.device_from == "topic" and self.topic.endswith(("/+", "/#")) and not self.within
        ):
            raise ValueError(
                "payload: bare needs a topic that names the device and ends in + or #, no within"
            )
        names = (self.payload.device is not None) + self.payload.paths.keyed
        if names != (self.device_from == "payload"):
            raise ValueError(
                "payload: device, or a level {device} of positions, is for device_from ="
                ' "payload", which needs one of them'
            )
        from anonymizer.codecs import any_json  # noqa: PLC0415  few inputs need it

        try:
            any_json.codec_of(self.payload.paths)
        except ValueError as error:
            raise ValueError(f"payload: {error}") from None
        return self

    @model_validator(mode="after")
    def _packed_payloads_are_read_alone(self) -> Self:
        if self.unpack is None:
            return self
        from anonymizer.codecs.unpacking import stands_for_json, unpacked  # noqa: PLC0415  few need it

        insides = [stands_for_json(each) for each in self.unpack]
        if any(insides[:-1]) or (insides[-1] and not self.format.is_json):
            raise ValueError("unpack: cbor, lines and struct are the innermost, and stand for JSON")
        try:
            unpacked(lambda _: (), self.unpack, max_bytes=self.max_unpacked_bytes)
        except ValueError as error:
            raise ValueError(f"unpack: {error}") from None
        if self.echo is not None:
            raise ValueError("echo: packed messages cannot be written")
        return self

    @model_validator(mode="after")
    def _the_format_can_be_written(self) -> Self:
        if self.echo is not None and self.payload is not None and self.payload.bare:
            raise ValueError("echo: bare numbers cannot be written")
        if self.echo is None:
            return self
        if self.kind == "public":
            raise ValueError('echo: what is published of kind = "public" is not coarse')
        if self.codec != ANY_JSON and self.format.encode is None:
            known = ", ".join(sorted({*encoders(), ANY_JSON}))
            raise ValueError(f"echo: messages of this codec cannot be written, only of {known}")
        of_topic = self.format.named_by_topic
        if self.payload is not None:
            from anonymizer.codecs import any_json  # noqa: PLC0415  few inputs need it

            of_topic = self.device_from != "payload"
            try:
                any_json.encoder_of(self.payload.paths)
            except ValueError as error:
                raise ValueError(f"echo: {error}") from None
        if of_topic and self.kafka is None and not id_levels(self.echo):
            raise ValueError("echo: {pseudonym} is needed, because the payloads name no device")
        return self

    def oldest_s(self, usual_s: float, *, ttl_s: float) -> float:
        """Return how old a position may be when it arrives, given two keys of `[presence]`."""
        if self.max_behind_s is not None:
            return self.max_behind_s
        return max(usual_s, min(self.format.oldest_s, ttl_s))

    @property
    def format(self) -> Format:
        """What is known of the codec's format."""
        return FORMATS.get(self.codec, _UNSAID)

    @property
    def kafka(self) -> str | None:
        """The topic of Kafka that is read; None: one of MQTT is."""
        return topic_of_kafka(self.topic)

    @property
    def header(self) -> str | None:
        """Name of the header of Kafka's messages that has the device id; None: none has."""
        return self.device_from.partition(":")[2] or None

    def make_encoder(self) -> Encoder:
        """Return what writes coarse points for `echo`."""
        if self.payload is not None:
            from anonymizer.codecs import any_json  # noqa: PLC0415  few inputs need it

            return any_json.encoder_of(self.payload.paths)
        assert self.format.encode is not None  # noqa: S101  whoever has an echo was checked
        return self.format.encode

    @property
    def ids_live_s(self) -> float:
        """How long ids live, seconds; 0: they do not change."""
        if self.ids_change_s is not None:
            return self.ids_change_s
        of_payload = self.kind == "mobile" and self.device_from == "payload"
        return self.format.ids_live_s if of_payload else 0.0

    def make_codec(self, secrets: Sequence[bytes] = ()) -> Codec:
        """Return the codec, compiled for these settings.

        `secrets`: those of the key file.

        Raises `SettingsError` if the codec is a plug-in that cannot be loaded, or needs an extra
        that is not installed.
        """
        codec = self._unpacking(self._whole_codec(secrets))
        return guard.only_within(codec, self.within) if self.within else codec

    def make_bare_codecs(self) -> Mapping[str, Codec] | None:
        """Return the codecs by the last level of topics, None if no level says what is read."""
        if self.payload is None or not self.payload.bare:
            return None
        from anonymizer.codecs import bare_numbers  # noqa: PLC0415  few inputs need it

        return {
            level: self._unpacking(codec)
            for level, codec in bare_numbers.codecs_of(self.payload.paths).items()
        }

    def _unpacking(self, codec: Codec) -> Codec:
        if self.unpack is None:
            return codec
        from anonymizer.codecs.unpacking import unpacked  # noqa: PLC0415  few inputs need it

        return unpacked(codec, self.unpack, max_bytes=self.max_unpacked_bytes)

    def _whole_codec(self, secrets: Sequence[bytes]) -> Codec:
        if self.payload is not None:
            from anonymizer.codecs import any_json  # noqa: PLC0415  few inputs need it

            return any_json.codec_of(self.payload.paths)
        if secrets:
            from anonymizer.codecs import owntracks  # noqa: PLC0415  few inputs need it

            codec = owntracks.decrypting(secrets)
        elif self.codec in FORMATS:
            codec = self.format.decode
        else:
            codec = guard.guarded(plugins.load_plugin(plugins.CODECS, self.codec))
        if self.registry is None:
            return codec
        from anonymizer.codecs.placeless import or_placeless  # noqa: PLC0415  few inputs need it

        return or_placeless(self.codec, codec)

    @model_validator(mode="after")
    def _mobile_devices_are_cloaked_where_they_are(self) -> Self:
        if self.kind == "mobile" and self.registry is not None:
            raise ValueError('registry: only devices of kind = "fixed" or "public" have one')
        if self.kind != "mobile" and self.ids_change_s:
            raise ValueError('ids_change_s: only ids of kind = "mobile" change')
        return self


class FixedSettings(Group):
    """Fixed devices, of the inputs with `kind = "fixed"`, and readings of public ones."""

    ttl_s: Positive = 3600.0
    """As `presence.ttl_s`, for fixed devices: the company of a cloaked device consists of those
    that have reported within this time. It also limits the age of their readings. A sixth of it is
    to them what `session.epoch_s` is to mobile devices: how long a new one waits at most, in
    `session` mode."""

    @property
    def epoch_s(self) -> float:
        """Longest lifetime of a group of fixed devices."""
        return self.ttl_s / _EPOCHS_OF_A_TTL
