"""The stages of the positions flow in a gateway: started together, drained under a deadline."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import structlog

from anonymizer.app.live_map.screen import AnalystLink, See
from anonymizer.pipeline.clock import SteadyClock
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.pipeline.positions.tick.stages import Ticks, abandon, publish_stage, tick_stage
from anonymizer.settings import Settings

if TYPE_CHECKING:
    from anonymizer.pipeline.ports import Link
    from anonymizer.transport import MqttLink
    from anonymizer.transport.kafka import KafkaLink

_LATE_INTERVALS = 2.0
"""A tick that begins so many intervals after the previous one is late."""


class PositionStages:
    """Tick and publish of one flow.

    `on_late`: called when ticks begin late, and when they are on time again.
    """

    def __init__(
        self,
        settings: Settings,
        flow: PositionFlow,
        inbox: Inbox,
        ticks: Ticks,
        link: "MqttLink | KafkaLink",
        *,
        sees: Sequence[See],
        clock: SteadyClock,
        on_late: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        self._flow, self._inbox, self._ticks = flow, inbox, ticks
        self._link, self._sees = link, sees
        self._clock, self._on_late = clock, on_late
        self._ends = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, group: asyncio.TaskGroup) -> None:
        """Start the stages, as tasks of a group that waits for their ends."""
        tick, output = self._settings.tick, self._settings.output
        ticking = tick_stage(
            self._flow,
            self._inbox,
            self._ticks,
            interval_s=tick.interval_s,
            late_s=_LATE_INTERVALS * tick.interval_s,
            stop=self._ends,
            clock=self._clock,
            acknowledge=self._link.acknowledge,
            collect=self._link.collect,
            on_late=self._on_late,
        )
        publishing = publish_stage(
            self._flow,
            self._ticks,
            AnalystLink(self._with_headers(), *self._sees, topic=output.topic),
            qos=output.qos,
            timeout_s=tick.drain_s,
            whole=self._settings.splits_groups,
        )
        self._tasks = [
            group.create_task(ticking, name="tick"),
            group.create_task(publishing, name="publish"),
        ]

    async def drain(self) -> None:
        """Receive no more, publish what is queued, and give up the rest at the deadline."""
        log, deadline_s = structlog.get_logger(), self._settings.tick.drain_s
        log.info("draining", deadline_s=deadline_s)
        try:
            async with asyncio.timeout(deadline_s):
                await self._link.stop_receiving()
                self._ends.set()
                await asyncio.wait(self._tasks)
        except TimeoutError:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            log.warning("drain deadline passed")
        abandon(self._flow, self._inbox, self._ticks, self._clock)

    def _with_headers(self) -> "Link":
        """Return the link of the outputs; its messages have headers if the settings ask for it."""
        if "cloudevents" not in self._settings.output.forms:
            return self._link
        from anonymizer.outputs.cloud_events import (  # noqa: PLC0415  few gateways need it
            EventHeaders,
            EventsLink,
        )

        return EventsLink(self._link, EventHeaders(self._settings))
