"""Audit of a stream: all attacks on a release, checked against the promises of its mode."""

from collections.abc import Callable

import numpy as np

from anonymizer.algorithms.releases.observed import Observed, extent_m
from anonymizer.audit.attack import Subject
from anonymizer.audit.case import Case
from anonymizer.audit.findings import AuditReport, Finding, Mode, RegionStatistics
from anonymizer.audit.registry import attacks_on
from anonymizer.audit.stream_case import case_of
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.errors import fault_of
from anonymizer.files.release_lines import Released
from anonymizer.settings import Settings


def audit_release(
    trace: Trace,
    released: Released,
    network: RoadNetwork,
    settings: Settings,
    *,
    device_of: IntArray | None,
    mode: Mode,
    tick_s: float,
    sample: int,
    seed: int,
    earlier: Observed | None = None,
    placebo: Released | None = None,
    every_attack: bool = True,
    progress: Callable[[str], None] = lambda _step: None,
    so_far: Callable[[AuditReport], None] = lambda _report: None,
) -> AuditReport:
    """Audit a release against the true positions.

    `settings` are those of the gateway that published; zones are attacked if there are any. Without
    `device_of` (as `read_auditor_map` returns it) the attacks that need it are left out, and silent
    devices are not known to be published. `mode`: whose promises are required. `tick_s`: the
    adversary searches for successors within a few ticks. `sample`: number of random pseudonyms that
    the centre, prefix and velocity attacks use; 0: all. `earlier`: a release from before the zones
    were declared. `placebo`: one of other devices on the same network, as long as this one.
    `every_attack`: otherwise only what a summary tells of, a fifth of the time.
    `progress` is called with the name of each step before it begins, and `so_far` after it with the
    report in which those that follow are not reached. An attack that ends with an error costs no
    other one. InputError if the trace cannot be located on the network.

    Notes
    -----
    10,000 devices over 300 ticks, 3 million records of 5 to 30 nodes, take about 8 s and 1 GB
    on one core, and about as long to read; tracking comes on top. At most 100 devices are tracked,
    for five minutes each.
    """
    progress("following the devices")
    case = case_of(
        trace,
        released,
        network,
        settings,
        device_of=device_of,
        tick_s=tick_s,
        sample=sample,
        seed=seed,
        earlier=earlier,
        placebo=placebo,
    )
    attacks = attacks_on(Subject.POSITIONS)
    asked = [each for each in attacks if every_attack or each.mount_in_short is not None]
    steps = [each for each in asked if case.has_map or not each.needs_map]
    not_asked = tuple(each.name for each in attacks if each not in asked)
    report = _nothing_found(trace, released, case, mode).model_copy(update={"not_asked": not_asked})
    if not case.observed.n_records:
        nothing = tuple(f"{step} (nothing was published)" for step in (each.name for each in steps))
        return report.model_copy(update={"left_out": report.left_out + nothing})
    promised, findings = promised_by(mode), list[Finding]()
    failed: list[str] = []
    for i, attack in enumerate(steps):
        progress(attack.name)
        mount = attack.mount if every_attack else attack.mount_in_short or attack.mount
        try:
            findings += mount(case)
        except Exception as error:  # noqa: BLE001  one attack must not cost what others find
            failed.append(f"{attack.name}: {fault_of(error)}")
        marked = tuple(
            each.model_copy(update={"required": each.attack in promised}) for each in findings
        )
        to_come = [f"{each.name}: not reached" for each in steps[i + 1 :]]
        report = report.model_copy(
            update={
                "holds": not any(finding.fails for finding in marked),
                "findings": marked,
                "failed": (*failed, *to_come),
            }
        )
        so_far(report)
    return report


def _nothing_found(trace: Trace, released: Released, case: Case, mode: Mode) -> AuditReport:
    """Return a report without findings."""
    observed = case.observed
    n_lines = observed.n_records + released.n_suppressed
    return AuditReport(
        mode=mode,
        holds=True,
        n_records=observed.n_records,
        n_suppressed=released.n_suppressed,
        suppressed_share=released.n_suppressed / max(n_lines, 1),
        n_pseudonyms=observed.n_pseudonyms,
        n_devices=trace.n_devices,
        n_ticks=len(observed.time),
        n_sampled=len(case.sampled),
        regions=_region_statistics(observed, case.network),
        findings=(),
        left_out=(*_need_map(case), *_unmeasured(released, case)),
    )


def promised_by(mode: Mode) -> set[str]:
    """Return the names of findings that a mode promises to resist."""
    each = (question for attack in attacks_on(Subject.POSITIONS) for question in attack.questions)
    return {question.name for question in each if mode in question.promised_by}


def _need_map(case: Case) -> tuple[str, ...]:
    """Return what is not asked, since the devices of the pseudonyms are not known."""
    if case.has_map:
        return ()
    names = [
        question.name
        for attack in attacks_on(Subject.POSITIONS)
        for question in attack.questions
        if attack.applies(case) and (attack.needs_map or question.needs_map)
    ]
    return tuple(dict.fromkeys(names))


def _unmeasured(released: Released, case: Case) -> tuple[str, ...]:
    measured = {each.attribute.name for each in case.values}
    return tuple(f"values of {name}" for name in released.values if name not in measured)


def _region_statistics(observed: Observed, network: RoadNetwork) -> RegionStatistics:
    if not observed.n_records:
        return RegionStatistics(
            nodes_mean=0.0,
            nodes_median=0.0,
            nodes_max=0,
            extent_m_mean=None,
            extent_m_median=None,
            extent_m_max=None,
        )
    size = observed.region_size[observed.region_of]
    metres = None
    if network.has_coordinates:
        metres = extent_m(observed, network)[observed.region_of]
    return RegionStatistics(
        nodes_mean=float(size.mean()),
        nodes_median=float(np.median(size)),
        nodes_max=int(size.max()),
        extent_m_mean=None if metres is None else float(metres.mean()),
        extent_m_median=None if metres is None else float(np.median(metres)),
        extent_m_max=None if metres is None else float(metres.max()),
    )
