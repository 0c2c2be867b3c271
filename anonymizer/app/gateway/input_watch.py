"""What is wrong with the input, or why none of it is published: for the log and for readiness.

Each trouble is logged once, with numbers, and again only after it was over. Readiness, the status
topic and the map get sentences without numbers of devices, as late as public counts are.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from anonymizer.app.gateway.input_troubles import (
    IDS_CHANGE,
    TOO_LARGE,
    WHY_SILENT,
    ChangingIds,
    NoRoomWatch,
    SilentConnection,
    TooLargeWatch,
)
from anonymizer.app.gateway.sides import LOOK_S, GatewaySide, Service, again_and_again
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.lost_share import LIKELY, LostShare
from anonymizer.pipeline.misfit import Misfit, MisfitWatch
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.settings import Settings

_FIRST_S = 10.0
"""A connection on which nothing has ever arrived is logged after so long."""
_STREAMS_OF_A_LOOK = 50
"""More take their turns: the loop that looks has to answer the broker, too."""


class InputArrivals(NamedTuple):
    """An input, or a connection of several: its state, what has arrived, what it subscribes to."""

    flow: str
    connected: bool
    n_received: int
    topics: list[str]
    said: str = ""
    """What the broker said to the subscription; empty: it is not known."""

    @property
    def why(self) -> str:
        """Why nothing arrives, in words."""
        said = f"the broker said {self.said!r} to the subscription, but " if self.said else ""
        return said + WHY_SILENT


class InputWatch:
    """Watches the input of a gateway.

    Parameters
    ----------
    connections
        Returns every input of positions, and the connection of records.
    of_records
        Returns name, ledger and held parts of each stream, and of what belongs to none.
    """

    def __init__(
        self,
        settings: Settings,
        flow: PositionFlow,
        *,
        connections: Callable[[], Sequence[InputArrivals]],
        of_records: Callable[[], Sequence[tuple[str, Ledger, int]]],
    ) -> None:
        self._log = structlog.get_logger()
        self._topics = [each.topic for each in settings.inputs]
        self._flow = flow
        self._connections = connections
        self._of_records = of_records
        self._of_input = [MisfitWatch() for _ in settings.inputs]
        self._lost = [LostShare() for _ in settings.inputs]
        self._of_no_input = MisfitWatch()
        self._of_stream: defaultdict[str, MisfitWatch] = defaultdict(MisfitWatch)
        silence_s = settings.presence.silence_s
        self._quiet: defaultdict[str, SilentConnection] = defaultdict(
            lambda: SilentConnection(after_s=min(_FIRST_S, silence_s))
        )
        self._changing = ChangingIds()
        self._too_large = TooLargeWatch(look_s=settings.session.epoch_s)
        self._no_room = NoRoomWatch()
        self._next_stream = 0
        self._said: set[str] = set()
        """Kinds of reasons told of this silence."""
        self._shown = self._next = ""

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        look = again_and_again(lambda: self.look(time.monotonic()), every_s=LOOK_S)
        return GatewaySide(
            services=[Service("input watch", look)],
            problems=lambda: self.problems,
            notes=lambda: self.notes,
        )

    def look(self, at_s: float) -> None:
        """Take in the counts at a monotonic time, and log what has begun."""
        for each in self._connections():
            if self._quiet[each.flow].see(each.n_received, connected=each.connected, at_s=at_s):
                self._log.warning(
                    "nothing arrives", flow=each.flow, topics=each.topics, likely=each.why
                )
        self._look_at_inputs(at_s)
        every = self._of_records()
        here = self._next_stream if self._next_stream < len(every) else 0
        self._next_stream = here + _STREAMS_OF_A_LOOK
        for flow, ledger, n_held in every[here : self._next_stream]:
            found = self._of_stream[flow].see(ledger.counts(), n_held=n_held, at_s=at_s)
            self._say_misfit(found, flow=flow)
        counts = self._flow.ledger.counts()
        if self._too_large.see(counts, at_s=at_s):
            self._log.warning("regions are too large", problem=TOO_LARGE)
        if self._no_room.see(counts, n_late=self._flow.stats.n_late_ticks, at_s=at_s):
            [problem] = self._no_room.problems
            self._log.warning("there is no room for all that arrives", problem=problem)
        succession = self._flow.mobile.intake.succession
        if self._changing.see(succession):
            share = round(succession.share, 2)
            self._log.error("ids change undeclared", share=share, likely=IDS_CHANGE)
        reason = self._flow.view.silent
        if reason is None:
            self._said.clear()
        elif reason.kind not in self._said:
            self._log.warning("nothing is published", why=reason.text)
            self._said.add(reason.kind)

    def _look_at_inputs(self, at_s: float) -> None:
        inputs = self._flow.inputs
        for i, (watch, topic) in enumerate(zip(self._of_input, self._topics, strict=True)):
            found = watch.see(inputs.refused(i), n_held=inputs.n_usable(i), at_s=at_s)
            self._say_misfit(found, flow="positions", input=i + 1, topic=topic)
            lost = self._lost[i].see(inputs.refused(i), n_usable=inputs.n_usable(i), at_s=at_s)
            for outcome, share in lost.items():
                self._log.warning(
                    "a share of the input is refused",
                    input=i + 1,
                    reason=outcome.label[1],
                    share=round(share, 2),
                    likely=LIKELY[outcome],
                )
        n_usable = sum(map(inputs.n_usable, range(inputs.n_inputs)))
        found = self._of_no_input.see(inputs.refused(-1), n_held=n_usable, at_s=at_s)
        self._say_misfit(found, flow="positions")

    def _say_misfit(self, found: Misfit | None, **where: object) -> None:
        if found is not None:
            self._log.error("nothing that arrives can be used", **where, **found.fields)

    def turn(self) -> None:
        """Show the reason of the previous call from now on, and keep that of now for the next."""
        reason = self._flow.view.silent
        self._shown, self._next = self._next, "" if reason is None else reason.public
        if not self._next:
            self._shown = ""

    @property
    def silent(self) -> str:
        """Why nothing is published, for everybody; empty if there is nothing to say."""
        return self._shown

    @property
    def notes(self) -> list[str]:
        """Sentences about what may be as it should be: nothing has come, or a share is refused."""
        return [
            f"{each.flow}: nothing has arrived yet: {each.why}"
            for each in self._connections()
            if each.connected and not each.n_received
        ] + [
            f"inputs (no. {number}): {note}"
            for number, lost in enumerate(self._lost, start=1)
            for note in lost.notes
        ]

    @property
    def problems(self) -> list[str]:
        """Sentences for readiness."""
        problems = [f"output: nothing is published: {self.silent}"] if self.silent else []
        if not self.silent:
            problems += [
                f"inputs (no. {number}): {watch.misfit.public}"
                for number, watch in enumerate(self._of_input, start=1)
                if watch.misfit is not None and watch.misfit.public
            ]
        problems += self._too_large.problems + self._no_room.problems
        if self._flow.mobile.intake.succession.ids_change:
            problems.append(f"inputs: {IDS_CHANGE}")
        return problems
