"""Encoding of releases as JSON messages, one per group or one per device."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.group_readings import GroupValues

Pseudonyms: TypeAlias = Callable[[Sequence[int], Sequence[int]], list[str]]


class GroupMessage(msgspec.Struct, frozen=True, gc=False):
    """A group: all devices that publish one region at one time."""

    time: float
    k: int
    region: Sequence[int | str]
    pseudonyms: Sequence[str]
    readings: dict[str, dict[str, float]] | msgspec.UnsetType = msgspec.UNSET
    """Statistics over all members: attribute -> statistic -> number."""
    values: dict[str, list[float | None]] | msgspec.UnsetType = msgspec.UNSET
    """Attribute -> own value of each pseudonym, for attributes with `per_pseudonym`."""


class DeviceMessage(msgspec.Struct, frozen=True, gc=False):
    """One member of a group; also a line of a release file."""

    pseudonym: str
    time: float
    region: Sequence[int | str]
    k: int
    readings: dict[str, dict[str, float]] | msgspec.UnsetType = msgspec.UNSET
    """Statistics over the whole group."""
    values: dict[str, float | None] | msgspec.UnsetType = msgspec.UNSET
    """Attribute -> the pseudonym's own value, for attributes with `per_pseudonym`."""


class ReleaseEncoder:
    """Encodes releases as JSON messages to one topic.

    Parameters
    ----------
    network
        Its `node_id` names the nodes.
    topic
        Topic of the messages.
    form
        `group` or `device`: one message per group, or one per member.
    """

    def __init__(
        self, network: RoadNetwork, *, topic: str, form: Literal["group", "device"]
    ) -> None:
        self._node_id = network.node_id
        self._topic = topic
        self._form = form
        self._json = msgspec.json.Encoder()

    def encode(
        self,
        release: Release,
        *,
        time: float,
        pseudonyms: Pseudonyms,
        values: GroupValues | None = None,
    ) -> tuple[list[Outgoing], IntArray]:
        """Return the messages, and the message that contains each member of the release.

        Parameters
        ----------
        release
            Verified groups.
        time
            Unix seconds of the tick. Times of single devices would distinguish them.
        pseudonyms
            Returns pseudonyms, given slots and versions of pseudonyms.
        values
            Published readings of the members; None: none.
        """
        names = pseudonyms(release.member.tolist(), release.version.tolist())
        n_members = np.diff(release.first_member_of)
        encoder = self._groups if self._form == "group" else self._devices
        payloads = encoder(release, round(time, 3), names, values)
        message_of = (
            np.repeat(np.arange(release.n_groups), n_members)
            if self._form == "group"
            else np.arange(len(names))
        )
        # Sorted by content: the order of slots would link a device's new pseudonym to its old one.
        order = sorted(range(len(payloads)), key=payloads.__getitem__)
        place_of = np.argsort(np.array(order, np.int64))
        return [Outgoing(self._topic, payloads[i]) for i in order], place_of[message_of]

    def _groups(
        self, release: Release, time: float, names: list[str], values: GroupValues | None
    ) -> list[bytes]:
        payloads = []
        for g, (k, region, first, last) in enumerate(self._rows(release)):
            order = sorted(range(first, last), key=names.__getitem__)
            message = GroupMessage(time, k, region, [names[i] for i in order])
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
        return payloads

    def _devices(
        self, release: Release, time: float, names: list[str], values: GroupValues | None
    ) -> list[bytes]:
        payloads = []
        for g, (k, region, first, last) in enumerate(self._rows(release)):
            for i in range(first, last):
                message = DeviceMessage(names[i], time, region, k)
                if values is not None:
                    message = msgspec.structs.replace(
                        message,
                        readings=values.groups[g] or msgspec.UNSET,
                        values={name: own[i] for name, own in values.own.items()} or msgspec.UNSET,
                    )
                payloads.append(self._json.encode(message))
        return payloads

    def _rows(self, release: Release) -> list[tuple[int, list[int | str], int, int]]:
        node = self._node_id[release.node].tolist()
        starts, members = release.first_node_of.tolist(), release.first_member_of.tolist()
        return [
            (k, node[starts[g] : starts[g + 1]], members[g], members[g + 1])
            for g, k in enumerate(release.k.tolist())
        ]
