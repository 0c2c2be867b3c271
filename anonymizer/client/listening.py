"""Live releases from a broker: a subscription that collects them in a thread of its own.

It uses a thread because a notebook already runs an event loop.
"""

import asyncio
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from anonymizer.client.messages import Collector, Columns
from anonymizer.client.network import Network, from_parts
from anonymizer.client.releases import Releases
from anonymizer.errors import SettingsError, TransportError
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink

if TYPE_CHECKING:
    from anonymizer.client.published_trips import PublishedTrips

TOPICS = ("anonymizer/network/#", "cloaked/current/+", "cloaked/positions", "cloaked/trips")
"""What a gateway with the default topics publishes about regions and trips."""
KEEP_S = 600.0
"""How long a subscription keeps what is over."""


class Subscription:
    """A connection to a broker, which reconnects by itself; use it in a `with` statement.

    Get one from `anonymizer.client.subscribe`.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        topics: Sequence[str],
        network: Network | None,
        keep_s: float,
        timeout_s: float,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._network = network
        self._follows = network is None
        """Whether the network is the one that the gateway publishes."""
        self._keep_s = keep_s
        self.timeout_s = timeout_s
        """Deadline of the connection."""
        self._collector = Collector()
        self._forgot_at = float("-inf")
        self._changed = threading.Condition()
        self._state = (False, "no answer in time")
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._link: MqttLink | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anonymizer client", daemon=True)

    def __enter__(self) -> Self:
        """Connect.

        Raises
        ------
        TransportError
            If the broker does not accept the connection and the subscriptions in time.
        """
        self._thread.start()
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._state[0] or self._failure is not None, self.timeout_s
            )
        if not done:
            self.close()
            raise TransportError(f"{self._settings.url}: {self._state[1]}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Disconnect."""
        self.close()

    @property
    def connected(self) -> bool:
        """Whether messages can flow now."""
        return self._state[0]

    def close(self) -> None:
        """Disconnect; what has been collected stays."""
        if self._thread.ident is None:
            return
        self._started.wait()
        if self._loop is not None and self._link is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # it has just ended by itself
                asyncio.run_coroutine_threadsafe(self._link.close(), self._loop)
        self._thread.join()

    def wait(self, devices: int = 1, *, timeout_s: float | None = None) -> Releases:
        """Wait until so many devices are published and the network has come; return the releases.

        Parameters
        ----------
        timeout_s
            How long; None: as long as it takes.

        Raises
        ------
        TransportError
            If the time is over.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._missing(devices), timeout_s):
                missing = self._missing(devices)
                raise TransportError(f"{self._settings.url}: {missing}")
        return self.releases()

    def _missing(self, devices: int) -> str:
        """Return what `wait` waits for; nothing after a failure, which `releases` raises."""
        if self._failure is not None:
            return ""
        if not self.connected:
            return f"is not connected: {self._state[1]}"
        if self._network is None and self._collector.network_parts() is None:
            return (
                f"{self._collector.network_missing()}: pass `network=`, a file of `anonymizer "
                "network export`, or see to it that the gateway publishes it "
                "(public_network.enabled)"
            )
        columns = self._collector.columns
        newest = max(columns.time, default=0.0)
        n = sum(end > newest for end in columns.end)
        return "" if n >= devices else f"{n} devices have been published, not {devices}"

    def releases(self) -> Releases:
        """Return what has been published so far.

        What was over `keep_s` before the newest message is no longer there.

        Raises
        ------
        InputError
            If a message has a version that this client does not understand, or names another
            network than the one that is given.
        """
        with self._changed:
            self._check()
            columns = self._collector.columns.since(float("-inf"))  # a copy: the lists grow
            left_out = dict(self._collector.left_out)
            parts = self._collector.network_parts()
        network = self._network_now(parts)
        if self._follows and network is not None:
            columns = _about(columns, network.version)
        return Releases(columns, network, left_out)

    def trips(self) -> "PublishedTrips":
        """Return the trips that have been published so far.

        Windows are kept for a day longer than regions.

        Raises
        ------
        InputError
            As for `releases`, and if no window of trips has been published, or no network.
        """
        from anonymizer.client.trip_files import trips_told  # noqa: PLC0415  few read trips

        with self._changed:
            self._check()
            windows = list(self._collector.trips.values())
            parts = self._collector.network_parts()
        network = self._network_now(parts)
        if self._follows and network is not None:
            windows = [each for each in windows if each.network == network.version]
        return trips_told(windows, network)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _network_now(self, parts: tuple[str, list[bytes]] | None) -> Network | None:
        """Return the given network, or the one that the gateway publishes."""
        if self._follows and parts is not None:
            version, bodies = parts
            if self._network is None or self._network.version != version:
                self._network = from_parts(version, bodies)
        return self._network

    def _run(self) -> None:
        try:
            asyncio.run(self._connect())
        except BaseException as error:  # noqa: BLE001  the caller's thread raises it
            self._fail(error)
        finally:
            self._started.set()

    async def _connect(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._link = MqttLink(
            self._settings,
            client_id=f"{self._settings.client_id}-{secrets.token_hex(16)}",
            deliver=self._deliver,
            subscriptions=[(topic, 0) for topic in self._topics],
            on_state=self._on_state,
            connect_timeout_s=self.timeout_s,
        )
        self._started.set()
        await self._link.run()

    def _deliver(self, batch: Sequence[tuple[str, bytes, int, bool]]) -> None:
        with self._changed:
            for _, payload, *_ in batch:
                if payload:
                    self._collector.take(payload)
            times = self._collector.columns.time[-len(batch) :]
            newest = max([*times, *self._collector.trips], default=float("-inf"))
            # Seldom, so that each message is copied a few times at most.
            if newest > self._forgot_at + self._keep_s:
                self._collector.forget(newest - self._keep_s)
                self._forgot_at = newest
            self._changed.notify_all()

    def _on_state(self, connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        with self._changed:
            self._state = (connected, reason)
            self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        with self._changed:
            self._failure = error
            self._changed.notify_all()


def broker_settings(url: str, options: dict[str, Any]) -> BrokerSettings:
    """Return the settings of a connection.

    Raises
    ------
    SettingsError
        If one cannot be used; the message names it.
    """
    try:
        return BrokerSettings.model_validate(
            {"client_id": "anonymizer-client", "url": url, **options}
        )
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "broker"
        raise SettingsError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None


def collect(subscription: Subscription, seconds: float) -> Releases:
    """Return what a subscription gets within some seconds after the first release.

    Raises
    ------
    TransportError
        If there is no release for as long, but at least for the deadline of the connection.
    """
    with subscription:
        subscription.wait(timeout_s=max(seconds, subscription.timeout_s))
        time.sleep(seconds)
        return subscription.releases()


def _about(columns: Columns, version: str) -> Columns:
    """Return the messages about the present network, as the gateway may have changed it."""
    return columns.only([i for i, each in enumerate(columns.network) if each in {None, version}])
