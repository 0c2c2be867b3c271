"""Settings of the inputs of positions: mobile devices, and devices that stand still."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import field_validator, model_validator

from anonymizer.codecs import CODECS
from anonymizer.settings.base import Group, OutputTopic, Positive, Qos


class InputSettings(Group):
    """One subscription for raw positions."""

    topic: str = "positions/{device}"
    """Topic filter. `{device}` stands for the level that names the device (several are joined by
    `/`); `+` and a final `#` match anything."""
    codec: str = "native"
    qos: Qos = 0
    device_from: Literal["topic", "payload"] = "topic"
    """Where the device id is taken from. A broker's ACL can enforce a topic; nothing can enforce
    a payload."""
    kind: Literal["mobile", "fixed"] = "mobile"
    """`fixed`: devices that stand still, such as sensors. They never count towards k of mobile
    devices, and share no group with them."""
    publish: Literal["cloaked", "public"] = "cloaked"
    """What becomes of fixed devices. `cloaked`: they are hidden among the cloaked fixed devices of
    all inputs. `public`: id, exact position and declared readings are published as they are."""
    registry: Path | None = None
    """A csv file with the columns `device_id`, `lat` and `lon`: where the fixed devices stand. A
    payload may then consist of readings alone, and the position of a listed device is always the
    listed one. Not set: every payload states a position."""

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

    @model_validator(mode="after")
    def _mobile_devices_are_cloaked_where_they_are(self) -> Self:
        if self.kind == "mobile" and self.publish == "public":
            raise ValueError('publish: only devices of kind = "fixed" can be public')
        if self.kind == "mobile" and self.registry is not None:
            raise ValueError('registry: only devices of kind = "fixed" have one')
        return self


class FixedSettings(Group):
    """Fixed devices, of the inputs with `kind = "fixed"`."""

    topic: OutputTopic = "cloaked/fixed"
    """Where fixed devices with `publish = "cloaked"` are published, in the form of
    `output.form`."""
    public_topic: OutputTopic = "public/fixed"
    """Where fixed devices with `publish = "public"` are published."""
    ttl_s: Positive = 3600.0
    """As `presence.ttl_s`, for fixed devices: the company of a cloaked device consists of those
    that have reported within this time. It also limits the age of their readings."""
    epoch_s: Positive = 600.0
    """As `session.epoch_s`, for fixed devices: how long a new one waits at most, in `session`
    mode. It must be below `ttl_s` by more than the time between two reports of a device."""

    @model_validator(mode="after")
    def _epochs_fit_presence(self) -> Self:
        if self.epoch_s >= self.ttl_s:
            raise ValueError("epoch_s must be below ttl_s")
        return self
