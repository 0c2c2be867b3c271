"""Recorded releases: files of `anonymizer cloak`, and streams recorded from a broker."""

from os import PathLike
from pathlib import Path

from anonymizer.client.messages import NOT_UNDERSTOOD, Collector
from anonymizer.client.network import Network, from_parts, read_network
from anonymizer.client.releases import Releases
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError

_NO_PAYLOAD = b"(null)"
"""What mosquitto_sub prints for an empty message."""


def read(
    path: str | PathLike[str],
    *,
    network: str | PathLike[str] | RoadNetwork | Network | None = None,
) -> Releases:
    """Read recorded releases.

    Parameters
    ----------
    path
        Lines of JSON, as `anonymizer cloak` writes them or `mosquitto_sub` prints them. With the
        topic before each message (`mosquitto_sub -v`), it may have the network, too.
    network
        The network of the regions: see `read_network`. None: the one that is in the file; without
        one, nothing can be placed.

    Raises
    ------
    InputError
        If a file cannot be read, or the releases are about another network; files of `cloak`
        from before it named the network are then only refused where it lacks a node of a region.
        The message names the line, never its content.
    """
    collector, found = collected(path, None)
    if network is not None:
        found = read_network(network, named=collector.columns.network)
    if not collector.columns.time:
        raise InputError(f"{path}: publishes no region")
    try:
        return Releases(collector.columns, found, collector.left_out)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def collected(
    path: str | PathLike[str], network: Network | None
) -> tuple[Collector, Network | None]:
    """Return the messages in a file, and the given network or else the one that is in it."""
    path, collector = Path(path), Collector()
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                _take(collector, line.strip(), where=f"{path}: line {number}")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if network is None and (parts := collector.network_parts()) is not None:
        network = from_parts(*parts)
    return collector, network


def _take(collector: Collector, line: bytes, *, where: str) -> None:
    """Take in a line: a message, or a topic and its message as `mosquitto_sub -v` prints them."""
    topic, _, payload = (b"", b"", line) if line.startswith(b"{") else line.partition(b" ")
    if not payload.startswith(b"{"):
        if payload == _NO_PAYLOAD or b"/" in topic:
            collector.left_out[NOT_UNDERSTOOD] += 1
        elif line:
            raise InputError(f"{where}: is neither a message nor a topic and its message")
        return
    try:
        understood = collector.take(payload)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if not understood and not topic:
        raise InputError(f"{where}: is not a message of the contract")
