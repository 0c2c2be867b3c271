"""What a clock that was ahead has left in the store, and how an operator goes on after it.

Windows that have closed and budgets that are spent stay so: what was published of a time must not
be published of it again. After a clock that was ahead, that holds back all times until then.
Nothing here knows which clock is right, so an operator has to say it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anonymizer
from anonymizer.app.gateway.sides import GatewaySide
from anonymizer.errors import SettingsError
from anonymizer.outputs.counts.private_counts import (
    held_s_of,
    plan_of,
    spent_period,
)
from anonymizer.settings import Settings

if TYPE_CHECKING:
    from anonymizer.pipeline.records.declaration import Stream
    from anonymizer.store.budget_file import BudgetFile

_DAY_S = 86_400.0
_WHY = (
    "this machine's clock is behind, or was ahead when they were stored;"
    " see `anonymizer clock --config FILE`"
)
_PUT_BACK = (
    "this machine's clock was put back, and what is published is not published again; if it is"
    " right now, and that is too late, restart the gateway"
)


class AheadOfClock:
    """Says what holds back the present because a clock was ahead.

    `wall`: returns unix seconds; `steady`: by the clock that never goes back. `budget`: of the
    counts, None: there is none. `streams`, `outputs`: return what is held back at a time, and until
    when: by what is stored, and by what this process has published.
    """

    def __init__(
        self,
        wall: Callable[[], float],
        *,
        steady: Callable[[], float],
        budget: "BudgetFile | None",
        streams: Callable[[float], Sequence[tuple[str, float]]],
        outputs: Callable[[float], Mapping[str, float]],
    ) -> None:
        self._wall, self._steady, self._budget = wall, steady, budget
        self._streams, self._outputs = streams, outputs

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        return GatewaySide(problems=lambda: self.problems)

    @property
    def problems(self) -> list[str]:
        """A sentence for each stream, and for each output that tells of intervals."""
        now = self._wall()
        found = [
            f"{name}: parts of times before {_utc(until)} are late: {_WHY}"
            for name, until in self._streams(now)
        ]
        budget = self._budget
        if budget and (until := budget.ahead_until(now, steady=self._steady())) is not None:
            found.append(f"counts: suppressed until {_utc(until)}: {_WHY}")
        return found + [
            f"{name}: suppressed until {_utc(until)}: {_PUT_BACK}"
            for name, until in self._outputs(now).items()
        ]


def told(settings: Settings, *, now: float, going_on: bool) -> Iterator[str]:
    """Yield what a clock that was ahead has left, line by line, and let it go on if asked to.

    Raises
    ------
    SettingsError
        If the clock of this machine cannot be right, or the store cannot be used, as while a
        gateway runs.
    StoreError
        If the disk fails.
    """
    installed_s = Path(anonymizer.__file__).stat().st_mtime
    if going_on and now < installed_s - _DAY_S:
        raise SettingsError(
            f"this machine's clock says {_utc(now)}, which is before this program was installed;"
            " set it first"
        )
    yield f"this machine's clock: {_utc(now)}"
    n = 0
    for line in (*_of_streams(settings, now, going_on), *_of_counts(settings, now, going_on)):
        n += 1
        yield line
    if not n:
        yield "nothing is ahead of it"
    elif not going_on:
        yield "if that is the right time, go on with --go-on; if not, set the clock"


def _of_streams(settings: Settings, now: float, going_on: bool) -> Iterator[str]:  # noqa: FBT001  of the command
    if not settings.streams or not settings.store.path.exists():
        return
    # Records take long to load.
    from anonymizer.app.gateway.declared_streams import declared_streams  # noqa: PLC0415
    from anonymizer.app.gateway.recorder import open_flow  # noqa: PLC0415
    from anonymizer.pipeline.records.stream_state import ahead_until  # noqa: PLC0415

    streams: Sequence[Stream] = declared_streams(settings)
    store, flow, _ = open_flow(settings, streams)
    try:
        for state in flow.states:
            name, windows = state.stream.settings.name, state.windows
            if (until := ahead_until(windows, now=now)) is None:
                continue
            if not going_on:
                yield f"stream {name}: parts of times before {_utc(until)} are late"
                continue
            floor = windows.rule.window_of(now) + 1
            starts = windows.rule.span(floor)[0]
            n = store.go_on(name, floor=floor, starts=starts)
            yield f"stream {name}: goes on at {_utc(starts)}; {n} parts of later times are erased"
    finally:
        store.close()


def _of_counts(settings: Settings, now: float, going_on: bool) -> Iterator[str]:  # noqa: FBT001  of the command
    if (budget := budget_of(settings)) is None:
        return
    try:
        if (until := budget.ahead_until(now)) is None:
            return
        if not going_on:
            yield f"counts: suppressed until {_utc(until)}"
            return
        starts, ends = spent_period(settings.counts, now)
        budget.go_on(starts, ends)
        yield f"counts: go on at {_utc(ends)}; until then the budget is taken for spent"
    finally:
        budget.close()


def budget_of(settings: Settings) -> "BudgetFile | None":
    """Return the budget of the counts, kept on disk; None: they need none."""
    counts = settings.counts
    if not settings.inputs or not counts.enabled or not counts.has_noise:
        return None
    from anonymizer.store.budget_file import BudgetFile  # noqa: PLC0415  few need it

    most = 1 if counts.slides else counts.intervals_of_budget
    held_s = held_s_of(counts)
    return BudgetFile(settings.store.budget_path, plan_of(counts), held_s=held_s, most=most)


def _utc(at_s: float) -> str:
    """Return a time as people write it; one beyond all calendars as a number."""
    try:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{at_s:.0f}"
