"""Releases of a small world, and their audits."""

from pathlib import Path

from anonymizer.audit import AuditReport, Mode, audit_release
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import Released, read_auditor_map, read_release
from anonymizer.settings import Settings
from tests.app.worlds import TTL_S, Paper, World, wandering

SETTINGS = Settings.model_validate(
    {"presence": {"ttl_s": TTL_S, "max_behind_s": 1.0}, "region": {"mode": "adka"}}
)
WORLD = wandering(n_devices=150, n_ticks=40, seed=1)


def audited(
    folder: Path,
    trace: Trace,
    network: RoadNetwork,
    *,
    mode: Mode = "session",
    with_map: bool = True,
    sample: int = 0,
    seed: int = 0,
    settings: Settings = SETTINGS,
    placebo: Released | None = None,
) -> AuditReport:
    """Audit the release and the map that lie in a folder."""
    released = read_release(folder / "PUB.jsonl", network)
    device_of = read_auditor_map(
        folder / "MAP.jsonl", pseudonym=released.pseudonym, device_id=trace.device_id
    )
    return audit_release(
        trace,
        released,
        network,
        settings,
        device_of=device_of if with_map else None,
        mode=mode,
        tick_s=1.0,
        sample=sample,
        seed=seed,
        placebo=placebo,
    )


def audit_of(
    paper: Paper, folder: Path, *, world: World = WORLD, mode: Mode = "session"
) -> AuditReport:
    paper.write(folder)
    return audited(folder, world.trace(), world.network, mode=mode)
