"""Releases that hide nobody: an attack that fails on these does not work."""

from dataclasses import replace

import numpy as np

from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit import Case, case_of
from anonymizer.audit.stream_case import reports_of
from anonymizer.domain.arrays import starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import Released
from anonymizer.settings import Settings


def raw_release(
    trace: Trace, network: RoadNetwork, *, tick_s: float, name_s: float, seed: int = 0
) -> tuple[Case, Released]:
    """Publish each device at its node, under a pseudonym that lasts for `name_s` seconds.

    Regions of one node and k = 1; a record holds for two ticks, or until the next one.
    """
    settings = Settings.model_validate({"region": {"mode": "adka"}})
    reports = reports_of(trace, network, settings)
    on = reports.node >= 0
    device, node = reports.device[on], reports.node[on]
    tick = np.ceil(reports.ts[on] / tick_s).astype(np.int64)
    # Of several reports in a tick, the last one.
    life = np.floor(tick * tick_s / name_s).astype(np.int64)
    order = np.lexsort((reports.ts[on], tick, device))
    last = (np.diff(device[order], append=-1) != 0) | (np.diff(tick[order], append=-1) != 0)
    order = order[last]
    device, node, tick, life = device[order], node[order], tick[order], life[order]
    begins = (np.diff(device, prepend=-1) != 0) | (np.diff(life, prepend=-1) != 0)
    ticks, tick_of = np.unique(tick, return_inverse=True)
    nodes, region_of = np.unique(node, return_inverse=True)
    n = np.diff(np.append(np.flatnonzero(begins), len(tick)))
    observed = Observed(
        time=ticks * tick_s,
        first_record_of=starts_of(n),
        tick_of=tick_of,
        region_of=region_of,
        k=np.ones(len(tick), np.int64),
        first_node_of=np.arange(len(nodes) + 1),
        node=nodes.astype(np.int32),
    )
    names = tuple(f"p{p}" for p in range(len(n)))
    released = Released(observed, names, 0, {}, observed.time[tick_of] + 2 * tick_s, {})
    case = case_of(
        trace, released, network, settings, device_of=device[begins], tick_s=tick_s, seed=seed
    )
    return case, released


def with_history(case: Case, trace: Trace, settings: Settings) -> Case:
    """Return a case whose reports are those of a longer trace of the same devices."""
    return replace(case, reports=reports_of(trace, case.network, settings))
