"""Subscriptions of analysts: what a broker hands out, while it does or all at once."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from anonymizer.client.listening import KEEP_S, TOPICS, Subscription, broker_settings, collect
from anonymizer.client.network import Network, read_network
from anonymizer.client.releases import Releases
from anonymizer.domain.network import RoadNetwork


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
