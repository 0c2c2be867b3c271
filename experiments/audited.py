"""Every attack of the audit on each way to publish a fleet, and on one that hides nobody."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anonymizer.audit.attack import Subject
from anonymizer.audit.evidence.evidence import Result, results_of
from anonymizer.audit.registry import attacks_on
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.broken_releases import raw_release
from experiments.looks import SECONDS, TICK_S
from experiments.result_files import Row
from experiments.tracking_experiment import attacked, drive

MODES = ("session", "snapshot", "adka")
RAW = "raw, a name a day"


@dataclass(frozen=True, slots=True)
class AuditedScore:
    """What one attack of the audit found in one release, as a row of `Score.COLUMNS`."""

    result: Result
    release: str
    cpu_s: float

    def row(self, *, seed: int = 0) -> Row:  # noqa: ARG002  as `Score` has it
        """Return the row."""
        found = self.result
        return {
            "attack": found.attack if found.adversary is None
            else f"{found.attack}, {found.adversary.replace('_', ' ')}",
            "release": self.release,
            "success": found.success,
            "low": found.low,
            "high": found.high,
            "control": found.control,
            "tenth": found.exposed,
            "tenth_control": found.exposed_control,
            "victims": found.n,
            "cpu_s": self.cpu_s,
        }  # fmt: skip


def run_audit(
    network: RoadNetwork,
    *,
    n_devices: int,
    seed: int,
    progress: Callable[[str], None] = lambda _what: None,
) -> Iterator[AuditedScore]:
    """Mount every attack on positions."""
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    for release in (*MODES, RAW):
        progress(f"audit: {release}")
        if release == RAW:
            case, _ = raw_release(trace, network, tick_s=TICK_S, name_s=86_400.0, seed=seed)
        else:
            settings = Settings.model_validate({"region": {"mode": release}})
            case = attacked(trace, network, settings, tick_s=TICK_S, seed=seed)
        for attack in attacks_on(Subject.POSITIONS):
            began_s = time.process_time()
            findings = list(attack.mount(case))
            cpu_s = time.process_time() - began_s
            for result in results_of(release, findings):
                yield AuditedScore(result, release, cpu_s)
