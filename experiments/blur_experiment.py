"""Is my blur broken? Public schemes and our own regions, attacked as any release is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from anonymizer.app.cloak import cloak_trace
from anonymizer.audit.foreign.attack import Verdict
from anonymizer.audit.foreign.foreign_report import attacked
from anonymizer.audit.foreign.forms import road_regions
from anonymizer.audit.foreign.readers import recordings
from anonymizer.audit.foreign.release import BareRelease, ForeignCase, PointRelease
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.release_lines import read_auditor_map
from anonymizer.settings import Settings
from experiments.blur_schemes import NOISY, SCHEMES, BlurScheme, Sample

OURS = "ours: sessions"


@dataclass(frozen=True, slots=True)
class Blurred:
    """What attacks find in one way to publish."""

    scheme: str
    words: str
    """`scheme`, `words`: its name, and what it does."""
    headline: str
    """What was found, of whom, how surely."""
    share: float | None
    """Rows that were published for each position, at most 1; None of counts."""
    verdicts: tuple[Verdict, ...]
    """Of each attack."""
    not_mounted: dict[str, str]
    """Why others were not, by their name."""

    @property
    def broken(self) -> bool:
        """Whether an attack finds more than its control, beyond chance."""
        return any(each.broken for each in self.verdicts)


def run_blur(
    trace: Trace,
    network: RoadNetwork,
    *,
    tick_s: float,
    seed: int,
    progress: Callable[[float, str], None] = lambda _done, _what: None,
) -> Iterator[Blurred]:
    """Publish a trace in every way; attack each.

    Parameters
    ----------
    trace
        With coordinates, of people over days: homes are sought.
    tick_s
        Length of a tick of the gateway.
    """
    trace = replace(trace, node=None)

    def sessions(trace: Trace, _rng: np.random.Generator) -> Sample:
        return _sessions(trace, network, tick_s=tick_s, seed=seed)

    ours = BlurScheme(OURS, "this project's default: groups that share their regions", sessions)
    every = (*SCHEMES, NOISY, ours)
    for number, scheme in enumerate(every):
        progress(number / len(every), scheme.name)
        release, owner = scheme.publish(trace, np.random.default_rng([seed, number]))
        # Who publishes knows whose each id is; who attacks does not.
        if owner is None and isinstance(release, PointRelease):
            owner = np.arange(trace.n_devices)
        share = None
        if isinstance(release, PointRelease | BareRelease):
            share = min(release.trace.n_rows / trace.n_rows, 1.0)
        report = attacked(ForeignCase(release, trace, network, seed=seed, owner=owner))
        yield Blurred(
            scheme.name,
            scheme.words,
            report.headline,
            share,
            report.verdicts,
            dict(report.not_mounted),
        )


def _sessions(trace: Trace, network: RoadNetwork, *, tick_s: float, seed: int) -> Sample:
    """Publish regions of groups, as `cloak` does."""
    with TemporaryDirectory() as folder:
        out, named = Path(folder, "out.jsonl"), Path(folder, "map.jsonl")
        cloak_trace(
            trace, network, Settings(), tick_s=tick_s, seed=seed, out=out, auditor_map=named
        )
        frame = recordings.READER.read(out)
        found = road_regions.FORM.read(out, frame, {}, network)
        if not isinstance(found, PointRelease):
            raise InputError("there are no regions")
        names = found.trace.device_id
        return found, read_auditor_map(named, pseudonym=names, device_id=trace.device_id)
