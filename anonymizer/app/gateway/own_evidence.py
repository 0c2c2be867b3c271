"""Continuous evidence: a gateway attacks its own traffic, and reports what it found.

Whenever a period is over, and on demand, the newest traffic goes to a process of low priority that
mounts all attacks of `anonymizer audit stream`. What comes back are figures: they become metrics, a
page, and files if the settings name a directory. A file of a day is written when the day is over.
"""

import asyncio
import math
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from anonymizer.app.gateway.daemon_thread import in_daemon_thread
from anonymizer.app.gateway.sides import GatewaySide, Service
from anonymizer.audit.attack import Criterion
from anonymizer.audit.evidence.attack_process import NICE, AttackJob, AttackProcess
from anonymizer.audit.evidence.audit_files import audits_in, name_of_audit, names_of_day
from anonymizer.audit.evidence.evidence import EvidenceReport, Result, evidence_from, evidence_of
from anonymizer.audit.evidence.evidence_page import page
from anonymizer.audit.evidence.evidence_words import best_of
from anonymizer.audit.evidence.live_sample import for_attacks
from anonymizer.audit.findings import AuditReport
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import of_content, write_whole
from anonymizer.observe.evidence_metrics import FIGURES, EvidenceCollector, EvidenceFigures
from anonymizer.pipeline.positions.tick.traffic_sample import TrafficSample
from anonymizer.settings import Settings

_CRITERIA = (Criterion.SINGLING_OUT, Criterion.LINKABILITY, Criterion.INFERENCE)
_KEPT = timedelta(days=31)
"""Of the files of each attack; the pages of days stay."""
_DEADLINE = 0.75
"""Of a run, in periods: it has failed before the next one is due."""
_OVERDUE = 2.0
"""Periods after which a run must have ended."""
_LOOK_S = 60.0
"""Longest time between two looks at the clock, which may be set."""


class OwnEvidence:
    """Attacks of a gateway on its own traffic.

    Parameters
    ----------
    wall, monotonic
        Return unix seconds, by which periods end, and seconds of a clock that nobody sets.
    niceness
        Of the process of the attacks.
    """

    def __init__(
        self,
        settings: Settings,
        network: RoadNetwork,
        sample: TrafficSample,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        niceness: int = NICE,
    ) -> None:
        self._settings, self._network, self._sample = settings, network, sample
        self._wall, self._monotonic, self._niceness = wall, monotonic, niceness
        self._period_s = settings.watch.evidence_s
        self._due_s = monotonic() + _OVERDUE * self._period_s
        self._log = structlog.get_logger()
        self._asked = asyncio.Event()
        self._newest: EvidenceReport | None = None
        self.figures = EvidenceFigures({each: _figures(None) for each in _CRITERIA})
        """For metrics."""

    def ask(self) -> None:
        """Attack the newest traffic soon, whether or not a period is over."""
        self._asked.set()

    def side(self) -> GatewaySide:
        """Return what it is to a gateway."""
        return GatewaySide(
            services=[Service("evidence", self.run)], exact=[EvidenceCollector(self._now)]
        )

    def _now(self) -> EvidenceFigures:
        self.figures.is_overdue = self._monotonic() > self._due_s
        return self.figures

    def page(self) -> str | None:
        """Return what the last attacks found as HTML; None: none has ended yet."""
        return None if self._newest is None else page(self._newest)

    async def run(self) -> None:
        """Attack at the end of each period and on demand, until it is cancelled."""
        ends_s = self._next_end()
        while True:
            rest_s = min(max(ends_s - self._wall(), 0.0), _LOOK_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._asked.wait()
            is_over = self._wall() >= ends_s
            if not is_over and not self._asked.is_set():
                continue
            self._asked.clear()
            try:
                await self._attack()
            except Exception as error:  # noqa: BLE001  whatever it is: the watch goes on, and positions
                self._log.error("attacks on the traffic failed", why=_raised_in(error))
                self._ended("failed")
            if is_over:
                ends_s = self._next_end()

    def _next_end(self) -> float:
        return (self._wall() // self._period_s + 1) * self._period_s

    async def _attack(self) -> None:
        at_s = self._wall()
        traffic = self._sample.traffic()
        if traffic is None:
            self._log.info("no traffic to attack")
            self._ended("empty")
            return
        sample_s = traffic.released[-1].event_s - traffic.released[0].event_s
        job = AttackJob(traffic, self._network, for_attacks(self._settings))
        try:
            process = AttackProcess(niceness=self._niceness)
        except OSError as error:
            self._log.error("attacks on the traffic failed", why=error.strerror)
            self._ended("failed")
            return
        try:
            within_s = _DEADLINE * self._period_s
            report = await in_daemon_thread(lambda: process.report(job, within_s=within_s))
        finally:
            process.kill()
        failed = () if report is None else report.failed
        if failed or process.problem:
            self._log.error(
                "attacks on the traffic failed", why=process.problem, failed=list(failed)
            )
        self.figures.n_failed = len(failed)
        if report is not None:
            await self._write(report, at_s)
            self._tell(report, at_s, sample_s)
        self._ended("failed" if process.problem else "partial" if failed else "done")

    async def _write(self, report: AuditReport, at_s: float) -> None:
        if self._settings.watch.reports is not None:
            try:
                await asyncio.to_thread(_write, report, at_s, self._settings.watch.reports)
            except (InputError, OSError) as error:
                self._log.error("evidence cannot be written", problem=str(error))

    def _ended(self, how: str) -> None:
        """Count a run; one that failed is overdue at once, until another one ends by itself."""
        self.figures.n_runs[how] += 1
        now_s = self._monotonic()
        self._due_s = now_s - 1 if how == "failed" else now_s + _OVERDUE * self._period_s

    def _tell(self, report: AuditReport, at_s: float, sample_s: float) -> None:
        text = report.model_dump_json().encode()
        made = _moment(at_s).isoformat(timespec="seconds")
        found = evidence_from([(Path("newest sample"), text)], made=made)
        self._newest, figures = found, self.figures
        figures.found = {each: _figures(best_of(found, each)) for each in _CRITERIA}
        figures.n_broken = sum(each.broken for each in found.results)
        figures.at_s, figures.sample_s = at_s, sample_s
        say = self._log.error if figures.n_broken else self._log.info
        say("traffic attacked", sample_s=round(sample_s), broken=figures.n_broken)


def _raised_in(error: Exception) -> str:
    """Return the class of an error and the innermost module of ours, and nothing that it says."""
    frames = [
        frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    ours = [name for name in frames if name.startswith("anonymizer")]
    return f"{type(error).__name__} in {ours[-1]}"


def _figures(best: Result | None) -> dict[str, float]:
    """Return the figures of an attack, NaN for what is not known."""
    known = {name: getattr(best, name, None) for name in FIGURES}
    return {name: math.nan if value is None else float(value) for name, value in known.items()}


def _moment(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def _write(report: AuditReport, at_s: float, folder: Path) -> None:
    """Write a report, and the page of the day before if that is missing; erase what is old."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = _moment(at_s)
    text = report.model_dump_json(indent=2) + "\n"
    _write_private({folder / name_of_audit(now): text})
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = midnight - timedelta(days=1)
    as_page, as_json = (folder / name for name in names_of_day(day))
    # What ended at midnight is of the day before.
    if not as_page.exists() and (audits := audits_in(folder, since=day, until=midnight)):
        made = now.isoformat(timespec="seconds")
        found = evidence_of(audits, made=made, pooled=True)
        _write_private({as_page: page(found), as_json: found.model_dump_json(indent=2) + "\n"})
    for old in audits_in(folder, until=now - _KEPT):
        old.unlink()


def _write_private(texts: dict[Path, str]) -> None:
    write_whole({path: of_content(text, private=True) for path, text in texts.items()})
