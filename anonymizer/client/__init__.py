"""The client of analysts: published releases as data frames, and counts with error bars.

>>> from anonymizer import client
>>> releases = client.listen("mqtt://127.0.0.1:1883", seconds=60)  # doctest: +SKIP
>>> heat = releases.heat_map(releases.network.grid(500))  # doctest: +SKIP
>>> heat.to_geopandas().plot("devices", legend=True)  # doctest: +SKIP

It reads what the gateway publishes, and nothing else; docs/analyst.md has examples.
"""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from anonymizer.client.cells import Cells
from anonymizer.client.listening import (
    KEEP_S,
    TOPICS,
    Subscription,
    broker_settings,
    collect,
)
from anonymizer.client.network import Network, read_network
from anonymizer.client.quality import Quality
from anonymizer.client.recordings import read_recording
from anonymizer.client.releases import Releases
from anonymizer.client.tables import Table
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.first_use import on_first_use

if TYPE_CHECKING:
    from anonymizer.client.counts import read_counts as read_counts
    from anonymizer.client.street_hours import read_street_hours as read_street_hours
    from anonymizer.client.trip_files import read_trips as read_trips

__getattr__ = on_first_use(__name__, {
    "counts": ("read_counts",),
    "trip_files": ("read_trips",),
    "street_hours": ("read_street_hours",),
})  # fmt: skip

__all__ = [
    "Cells",
    "InputError",
    "Network",
    "Quality",
    "Releases",
    "Subscription",
    "Table",
    "listen",
    "read",
    "read_counts",
    "read_network",
    "read_street_hours",
    "read_trips",
    "subscribe",
]


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
        If a file cannot be read, or the releases are about another network. The message names the
        line, never its content.
    """
    return read_recording(path, None if network is None else read_network(network))


def listen(
    url: str,
    *,
    seconds: float,
    network: str | PathLike[str] | RoadNetwork | Network | None = None,
    topics: Sequence[str] = TOPICS,
    timeout_s: float = 10.0,
    **broker: Any,  # noqa: ANN401  checked by the settings
) -> Releases:
    """Collect releases from a broker for some seconds, from the first release on.

    The other parameters are those of `subscribe`.

    Raises
    ------
    SettingsError
        If a parameter cannot be used.
    TransportError
        If the broker does not accept the connection in time, or if no network or no release is
        published for as long as it is to listen (at least `timeout_s`).
    InputError
        As for `Subscription.releases`.
    """
    subscription = subscribe(
        url,
        network=network,
        topics=topics,
        keep_s=float("inf"),
        timeout_s=timeout_s,
        **broker,
    )
    return collect(subscription, seconds)


def subscribe(
    url: str,
    *,
    network: str | PathLike[str] | RoadNetwork | Network | None = None,
    topics: Sequence[str] = TOPICS,
    keep_s: float = KEEP_S,
    timeout_s: float = 10.0,
    **broker: Any,  # noqa: ANN401  checked by the settings
) -> Subscription:
    """Return a subscription to the releases of a broker, to be used in a `with` statement.

    Parameters
    ----------
    url
        `mqtts://host[:port]`, `mqtt://` on this machine, or `wss://` and `ws://`.
    network
        See `read_network`. None: the one that the gateway publishes, which follows every change.
    topics
        Topic filters: the published network, the current groups, the releases, and trips. Mobile
        and fixed devices are on different topics, and are best counted apart.
    keep_s
        How long to keep what is over, in seconds; trips a day longer.
    timeout_s
        Deadline of the connection.
    **broker
        Further settings of `[broker]`: `username`, `password`, `ca_file`, `version` and so on.

    Raises
    ------
    SettingsError
        If one of them cannot be used.
    InputError
        If the network cannot be read.
    """
    return Subscription(
        broker_settings(url, broker),
        topics=topics,
        network=None if network is None else read_network(network),
        keep_s=keep_s,
        timeout_s=timeout_s,
    )
