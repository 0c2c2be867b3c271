"""Encoding of releases as JSON messages, one per group or one per device."""

import math
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.domain.release import Release
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.region_shapes import (
    NO_SHAPE,
    RegionShapes,
    Shape,
    shapes_of,
)
from anonymizer.pipeline.positions.tick.group_readings import GroupValues

if TYPE_CHECKING:
    from anonymizer.settings import Settings

Pseudonyms: TypeAlias = Callable[[Sequence[int], Sequence[int]], list[str]]

FORM_VERSION = 1
"""Of the messages about regions. Fields may be added to a version, never changed or removed."""
_GROUP_ID_BYTES = 9


class _Stamp(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Fields for counting and placing a message; a line of a file has `network` and `until`."""

    v: int | msgspec.UnsetType = msgspec.UNSET
    """Version of the form of the message."""
    network: str | msgspec.UnsetType = msgspec.UNSET
    """Version of the network whose nodes the region names."""
    group: str | msgspec.UnsetType = msgspec.UNSET
    """Name of the group, which follows from the pseudonyms of its members alone."""
    until: float | msgspec.UnsetType = msgspec.UNSET
    """Unix seconds until which this is where the members are, unless a newer message names them."""
    geometry: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """GeoJSON MultiLineString: the roads between two nodes of the region."""
    cells: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    """H3 cells that hold a node of the region."""
    bbox: tuple[float, float, float, float] | msgspec.UnsetType = msgspec.UNSET
    """West, south, east and north of the region, in degrees."""


class GroupMessage(_Stamp, frozen=True, gc=False):
    """A group: all devices that publish one region at one time."""

    time: float
    k: int
    region: Sequence[int | str]
    pseudonyms: Sequence[str]
    readings: dict[str, dict[str, float]] | msgspec.UnsetType = msgspec.UNSET
    """Statistics over all members: attribute -> statistic -> number."""
    values: dict[str, list[float | None]] | msgspec.UnsetType = msgspec.UNSET
    """Attribute -> own value of each pseudonym, for attributes with `each`."""


class DeviceMessage(_Stamp, frozen=True, gc=False):
    """One member of a group; also a line of a release file."""

    pseudonym: str
    time: float
    region: Sequence[int | str]
    k: int
    readings: dict[str, dict[str, float]] | msgspec.UnsetType = msgspec.UNSET
    """Statistics over the whole group."""
    values: dict[str, float | None] | msgspec.UnsetType = msgspec.UNSET
    """Attribute -> the pseudonym's own value, for attributes with `each`."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What the messages of a live service have and the lines of a file lack."""

    network: str
    shapes: RegionShapes


def contract_of(settings: "Settings", network: RoadNetwork) -> Contract:
    """Return what the messages of a live service have."""
    return Contract(
        network_version(network),
        shapes_of(network, settings.shapes.regions),
    )


class _Row(NamedTuple):
    """One group of a release; its members are `first` to `last`, exclusive."""

    k: int
    region: list[int | str]
    first: int
    last: int
    until: float
    shape: Shape


class ReleaseEncoder:
    """Encodes releases as JSON messages to one topic.

    `form` is `group` or `device`: one message per group, or one per member. Without a `contract`
    the messages are lines of a file. Published times are rounded to a multiple of `time_step_s`; 0:
    not rounded.
    """

    def __init__(
        self,
        network: RoadNetwork,
        *,
        topic: str,
        form: Literal["group", "device"],
        contract: Contract | None = None,
        time_step_s: float = 0.0,
    ) -> None:
        self._node_id = network.node_id
        self._topic = topic
        self._form = form
        self._contract = contract
        self._network = network_version(network) if contract is None else contract.network
        self._time_step_s = time_step_s
        self._json = msgspec.json.Encoder()

    def encode(
        self,
        release: Release,
        *,
        time: float,
        pseudonyms: Pseudonyms,
        values: GroupValues | None = None,
        until: FloatArray | None = None,
    ) -> tuple[list[Outgoing], IntArray]:
        """Return the messages, and the message that contains each member of the release.

        `time`: unix seconds of the tick, to be rounded down; times of single devices would
        distinguish them. `pseudonyms` returns pseudonyms, given slots and versions. `values`:
        published readings of the members. `until`: unix seconds until which the region of each
        group holds, to be rounded up, shape (groups,); None: the messages do not say.
        """
        if not release.n_groups:
            return [], np.zeros(0, np.int64)
        names = pseudonyms(release.member.tolist(), release.version.tolist())
        n_members = np.diff(release.first_member_of)
        encoder = self._groups if self._form == "group" else self._devices
        if until is None:
            until = np.full(release.n_groups, np.nan)
        step_s = self._time_step_s
        rows = self._rows(release, round_up(until, step_s))
        payloads, keys = encoder(rows, round(round_time(time, step_s), 3), names, values)
        message_of = (
            np.repeat(np.arange(release.n_groups), n_members)
            if self._form == "group"
            else np.arange(len(names))
        )
        # Sorted by content: the order of slots would link a device's new pseudonym to its old one.
        order = sorted(range(len(payloads)), key=payloads.__getitem__)
        place_of = np.argsort(np.array(order, np.int64))
        messages = [Outgoing(self._topic, payloads[i], key=keys[i]) for i in order]
        return messages, place_of[message_of]

    def _groups(
        self, rows: Iterable[_Row], time: float, names: list[str], values: GroupValues | None
    ) -> tuple[list[bytes], list[str]]:
        """Return the message about each group, and its key."""
        payloads: list[bytes] = []
        keys: list[str] = []
        for g, row in enumerate(rows):
            order = sorted(range(row.first, row.last), key=names.__getitem__)
            members = [names[i] for i in order]
            stamp = self._stamp(row, members)
            message = GroupMessage(time, row.k, row.region, members, **stamp)
            if values is not None:
                message = msgspec.structs.replace(
                    message,
                    readings=values.groups[g] or msgspec.UNSET,
                    values={
                        name: [own[i] for i in order]
                        for name, own in values.own.items()
                        if name in values.groups[g]
                    }
                    or msgspec.UNSET,
                )
            payloads.append(self._json.encode(message))
            keys.append(stamp.get("group", ""))
        return payloads, keys

    def _devices(
        self, rows: Iterable[_Row], time: float, names: list[str], values: GroupValues | None
    ) -> tuple[list[bytes], list[str]]:
        """Return the message about each member, and its key."""
        payloads: list[bytes] = []
        for g, row in enumerate(rows):
            of_group = []
            stamp = self._stamp(row, sorted(names[row.first : row.last]))
            for i in range(row.first, row.last):
                message = DeviceMessage(names[i], time, row.region, row.k, **stamp)
                if values is not None:
                    message = msgspec.structs.replace(
                        message,
                        readings=values.groups[g] or msgspec.UNSET,
                        values={name: own[i] for name, own in values.own.items()} or msgspec.UNSET,
                    )
                of_group.append(self._json.encode(message))
            # Equally long: a broker that limits packets refuses all of a group, or none.
            length = max(map(len, of_group), default=0)
            payloads += [payload.ljust(length) for payload in of_group]
        return payloads, names

    def _stamp(self, row: _Row, members: Sequence[str]) -> dict[str, Any]:
        """Return the fields for counting and placing a group; most are of live messages alone."""
        until = msgspec.UNSET if math.isnan(row.until) else round(row.until, 3)
        if self._contract is None:
            return {"network": self._network, "until": until}
        return {
            "v": FORM_VERSION,
            "network": self._network,
            "group": group_id(members),
            "until": until,
            "geometry": row.shape.geometry,
            "cells": row.shape.cells,
            "bbox": row.shape.bbox,
        }

    def _rows(self, release: Release, until: FloatArray) -> Iterator[_Row]:
        node = self._node_id[release.node].tolist()
        starts, members = release.first_node_of.tolist(), release.first_member_of.tolist()
        for g, (k, until_s) in enumerate(zip(release.k.tolist(), until.tolist(), strict=True)):
            nodes = slice(starts[g], starts[g + 1])
            shape = self._contract.shapes.of(release.node[nodes]) if self._contract else NO_SHAPE
            yield _Row(k, node[nodes], members[g], members[g + 1], until_s, shape)


def group_id(members: Sequence[str]) -> str:
    """Return the name of a group: a hash of the sorted pseudonyms of its members.

    Anybody can compute it from a message about the group, so it tells nothing more. Messages with
    the same name are about the same pseudonyms.
    """
    digest = blake2b("\n".join(members).encode(), digest_size=_GROUP_ID_BYTES)
    return urlsafe_b64encode(digest.digest()).decode()


def round_up(ts: FloatArray, step_s: float) -> FloatArray:
    """Return times rounded up to a multiple of a step, same shape; 0 leaves them unchanged."""
    return np.ceil(ts / step_s) * step_s if step_s else ts


def round_time(ts: float, step_s: float) -> float:
    """Return a time rounded down to a multiple of a step.

    `ts`: unix seconds; `step_s` >= 0, 0 leaves the time unchanged; ValueError if it is negative.

    Notes
    -----
    Exact for steps of whole seconds. If the step exceeds the tick, several ticks have the same
    time. A pseudonym can then appear twice at one time with two regions, so a consumer must not
    use (pseudonym, time) as a key, sort by time only, or divide distances by time differences.
    Rounding keeps exact times out of stored data; a live subscriber still sees the arrival times.
    """
    if step_s < 0:
        raise ValueError("the step of a published time must not be negative")
    return ts - ts % step_s if step_s else ts
