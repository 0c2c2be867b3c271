"""The link of positions and of the output: one connection, or two and a receiving process."""

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

from anonymizer.errors import SettingsError
from anonymizer.pipeline.ports import Deliver, LinkCounts
from anonymizer.settings import Settings
from anonymizer.transport import MqttLink
from anonymizer.transport.connecting import client_id_of
from anonymizer.transport.quarantine import OnQuarantined
from anonymizer.transport.receiving import ReceivingLink

PositionsLink: TypeAlias = MqttLink | ReceivingLink

GOODBYE_S = 2.0
"""Deadline of a clean disconnection."""
_REST_S = 0.025
"""Pause after a read of positions. Each tick ends it, so it delays no position beyond its tick."""
_RESTS_IN_A_TICK = 4
"""At least: the end of a tick then finds little to be read."""


def positions_link(
    settings: Settings,
    subscriptions: Sequence[tuple[str, int]],
    *,
    key: bytes,
    deliver: Deliver,
    on_state: Callable[[bool, str], None],
    on_input: Callable[[bool], None],
    on_quarantined: OnQuarantined,
) -> PositionsLink:
    """Return the link that the settings ask for.

    Parameters
    ----------
    settings
        The whole settings.
    subscriptions
        Of the input; without any nothing is received.
    key
        See `client_id_of`.
    deliver
        Receives the input.
    on_state, on_input
        Called when a connection changes: whether everything is connected and why not, and before
        that whether the input is.
    on_quarantined
        See `OnQuarantined`.

    Raises
    ------
    SettingsError
        If there is to be a receiving process and the system has no memory without a name: raw
        positions must not be shared in a file.
    """
    broker = settings.broker
    client_id = client_id_of(broker, key=key)
    if broker.receiving_process and subscriptions:
        if not hasattr(os, "memfd_create"):
            raise SettingsError("broker.receiving_process: only Linux can run such a process")
        return ReceivingLink(
            broker,
            client_id=client_id,
            output_client_id=client_id_of(broker, key=key, role="output"),
            subscriptions=subscriptions,
            deliver=deliver,
            on_state=on_state,
            on_input=on_input,
            announce=True,
            close_timeout_s=GOODBYE_S,
            max_payload_bytes=settings.limits.max_payload_bytes,
            on_quarantined=on_quarantined,
        )

    def on_connection(connected: bool, reason: str) -> None:  # noqa: FBT001  the link's callback
        on_input(connected)
        on_state(connected, reason)

    return MqttLink(
        broker,
        client_id=client_id,
        subscriptions=subscriptions,
        deliver=deliver,
        on_state=on_connection,
        announce=True,
        close_timeout_s=GOODBYE_S,
        max_payload_bytes=settings.limits.max_payload_bytes,
        on_quarantined=on_quarantined,
        rest_s=min(_REST_S, settings.tick.interval_s / _RESTS_IN_A_TICK),
    )


def link_counts(link: PositionsLink) -> dict[str, LinkCounts]:
    """Return the counts of its connections by their names."""
    if isinstance(link, ReceivingLink):
        return {"positions": link.counts, "output": link.output_counts}
    return {"positions": link.counts}
