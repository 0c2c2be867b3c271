"""Public functions for positions: cloak a recorded trace, audit a release of one.

They call what `anonymizer cloak` and `anonymizer audit stream` call, with the same defaults.
"""

import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast, get_args

import numpy as np
import polars as pl

from anonymizer.app.cloak import CloakSummary, cloak_trace
from anonymizer.app.table_options import real_number, whole_number
from anonymizer.audit import AuditReport, Finding, Mode, audit_release
from anonymizer.audit.stream_case import is_valid, public_pieces, reports_of
from anonymizer.audit.utility import UtilityFigures, utility
from anonymizer.domain.fixes import MOTION
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.region_modes import mode_named
from anonymizer.domain.trace import Trace
from anonymizer.errors import GuaranteeError, SettingsError
from anonymizer.files.frame_kinds import DataFrame, FilePath, as_polars, in_kind_of
from anonymizer.files.release_lines import Released, read_auditor_map, read_release
from anonymizer.files.trace_columns import checked_columns, wanted_of
from anonymizer.files.traces import read_trace, trace_of
from anonymizer.networks import load_network
from anonymizer.networks.as_loaded import network_for
from anonymizer.networks.graphs import AnyGraph
from anonymizer.settings import Settings
from anonymizer.settings.toml_file import validated

__all__ = [
    "AuditReport",
    "CloakReport",
    "CloakedTrace",
    "Finding",
    "UtilityFigures",
    "audit_stream",
    "cloak",
    "measure_utility",
]

Network: TypeAlias = "RoadNetwork | AnyGraph | FilePath"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloakReport:
    """The accounts of a cloaked trace.

    Attributes
    ----------
    n_received
        Positions of the trace, unusable rows included.
    outcomes
        Number of positions by outcome, such as `published` or `suppressed/never_grouped`; they
        add up to `n_received`.
    n_ticks
        Ticks that contained positions.
    region_nodes_median, region_nodes_mean
        Nodes of a published region; NaN if there is none.
    age_mean_s, age_p95_s
        Age of information: how old the newest region of each pseudonym that lives is, once a
        second; NaN if there is none.
    n_clamped, n_left_out
        By declared reading: values outside its range, and groups about which nothing was
        published because fewer than k members had a value.
    """

    n_received: int
    outcomes: Mapping[str, int]
    n_ticks: int
    region_nodes_median: float
    region_nodes_mean: float
    age_mean_s: float
    age_p95_s: float
    n_clamped: Mapping[str, int]
    n_left_out: Mapping[str, int]

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_report  # noqa: PLC0415  only notebooks ask

        return html_report(type(self).__name__, asdict(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CloakedTrace:
    """A cloaked trace.

    Attributes
    ----------
    frame
        The release, one row per pseudonym and tick: `pseudonym`, `time`, `region` (list of
        nodes), `k`, `network` (its version), `until` (when the region ceases to hold); where
        readings are declared also `readings`, statistics of the group, and `values`, those that
        are published per pseudonym. Where the position was suppressed, the pseudonym and the region
        are empty, k is 0, `network` and `until` are null.
    auditor_map
        The device of each pseudonym: `pseudonym`, `device`. For the auditor alone.
    report
        The accounts.
    """

    frame: DataFrame
    auditor_map: DataFrame
    report: CloakReport

    def __repr__(self) -> str:
        """Return counts alone."""
        report = self.report
        published = report.outcomes.get("published", 0)
        return (
            f"CloakedTrace({published} of {report.n_received} positions published in "
            f"{report.n_ticks} ticks)"
        )

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_release  # noqa: PLC0415  only notebooks ask

        return html_release(repr(self), self.frame) + self.report._repr_html_()


def cloak(
    trace: DataFrame | FilePath,
    network: Network,
    *,
    region: Mode | None = None,
    tick_s: float = 1.0,
    seed: int | None = None,
    ids_change: bool = False,
    settings: Settings | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> CloakedTrace:
    """Cloak a recorded trace with the operators of the live service.

    Parameters
    ----------
    trace
        `device_id`, `ts` (datetimes, ISO 8601, or unix time in a unit that follows from its size)
        and either `lat` and `lon` or `node`; and a column for each reading that the settings
        declare. Other columns are ignored.
    network
        The network on which the devices move: one that is loaded, or what `load_network` takes.
    region
        How regions are formed. None: as in the settings, `session` by default.
    tick_s
        Length of a tick in the trace's own time, at most `presence.ttl_s`.
    seed
        Equal input, settings and seed give equal pseudonyms. Whoever knows the seed and a device
        can compute its pseudonyms. None: a secret one.
    ids_change
        Whether vehicles change their ids in the trace; also if an input of the settings says so.
    settings
        As for the live service; brokers and clocks are not used. None: the defaults.
    columns
        Other names of columns: of `id`, `time`, `lat`, `lon`, `node`, of `latlon` or `lonlat` (both
        in one cell); and the `zone` of times without one.

    Raises
    ------
    InputError
        If the trace or the network cannot be used.
    SettingsError
        If an option is out of its range, or the extra `tables` is not installed.
    GuaranteeError
        If a region failed independent verification. None of them is published.

    Warns
    -----
    UserWarning
        If more than half of the positions are refused for one reason, with the likely cause, or if
        nothing is published.

    Examples
    --------
    >>> import anonymizer, polars
    >>> ids, nodes = [f"taxi {i}" for i in range(40)], [i % 9 for i in range(40)]
    >>> trace = polars.DataFrame({"device_id": ids, "ts": 0.5, "node": nodes})
    >>> anonymizer.cloak(trace, "grid:3x3", region="snapshot")
    CloakedTrace(40 of 40 positions published in 1 ticks)
    """
    chosen = _with_mode(settings, region)
    roads = _network(network, chosen)
    out, auditor_map = BytesIO(), BytesIO()
    summary = cloak_trace(
        _trace(trace, [each.name for each in chosen.readings], columns),
        roads,
        chosen,
        tick_s=real_number("tick_s", tick_s, 0.001),
        seed=secrets.randbits(128) if seed is None else seed,
        ids_change=ids_change,
        out=out,
        auditor_map=auditor_map,
    )
    if told := summary.warning or summary.nothing_published:
        warnings.warn(told, stacklevel=2)
    report = _cloak_report(summary)
    if report.outcomes.get("suppressed/unverified"):
        raise GuaranteeError("verification failed for some groups; they were suppressed")
    return CloakedTrace(
        in_kind_of(trace, _release_frame(out.getvalue(), roads, chosen)),
        in_kind_of(trace, _lines_frame(auditor_map.getvalue(), ("pseudonym", "device"))),
        report,
    )


def audit_stream(
    release: CloakedTrace | DataFrame | FilePath,
    trace: DataFrame | FilePath,
    network: Network,
    *,
    auditor_map: DataFrame | FilePath | None = None,
    mode: Mode = "session",
    tick_s: float = 1.0,
    sample: int = 1000,
    seed: int = 0,
    settings: Settings | None = None,
    earlier: CloakedTrace | DataFrame | FilePath | None = None,
    placebo: CloakedTrace | DataFrame | FilePath | None = None,
    every_attack: bool = True,
    progress: Callable[[str], None] = lambda _step: None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> AuditReport:
    """Attack a release of cloaked positions.

    Parameters
    ----------
    release
        What `cloak` returned, its frame, or a file that `anonymizer cloak` has written.
    trace, network
        The true positions, and the network of both.
    auditor_map
        The device of each pseudonym. None: that of `release`, if `cloak` returned it; else the
        attacks that need it are left out.
    mode
        The mode whose promises are required; the rest is reported.
    tick_s
        Length of a tick.
    sample
        Pseudonyms for the centre, prefix and velocity attacks; 0: all.
    seed
        Equal input and seed give equal reports.
    settings
        Those of the release. None: the defaults. If they do not name a mode, it is that of `mode`:
        an adversary knows how regions were made.
    earlier
        A release from before the zones of the settings were declared, for an adversary who
        compares the two.
    placebo
        A release of other devices on the same network, as long as this one and with the same
        settings: whatever the tracking attack tells from it is chance.
    every_attack
        False: only those that the mode promises to resist, and a short tracking attack.
    progress
        Called with the name of each step before it begins.
    columns
        Other names of columns of the trace, as for `cloak`.

    Returns
    -------
    report
        `report.holds` says whether the promises of the mode hold; `report.findings` has each
        attack.

    Raises
    ------
    InputError
        If the release, the trace, the network or the map cannot be used.
    SettingsError
        If an option is out of its range, or the extra `tables` is not installed.

    Examples
    --------
    >>> import anonymizer, polars
    >>> ids, nodes = [f"taxi {i}" for i in range(40)], [i % 9 for i in range(40)]
    >>> trace = polars.DataFrame({"device_id": ids, "ts": 0.5, "node": nodes})
    >>> cloaked = anonymizer.cloak(trace, "grid:3x3", region="adka")
    >>> anonymizer.audit_stream(cloaked, trace, "grid:3x3", mode="adka").holds
    True
    """
    mode = cast("Mode", mode_named(mode))
    if mode not in get_args(Mode):
        raise SettingsError(f"mode: must be one of {', '.join(get_args(Mode))}")
    told = isinstance(settings, Settings) and "mode" in settings.region.model_fields_set
    chosen = _with_mode(settings, None if told else mode)
    if isinstance(release, CloakedTrace):
        auditor_map = release.auditor_map if auditor_map is None else auditor_map
        release = release.frame
    if isinstance(earlier, CloakedTrace):
        earlier = earlier.frame
    if isinstance(placebo, CloakedTrace):
        placebo = placebo.frame
    progress("reading the network and the release")
    roads = _network(network, chosen)
    released = _released(release, roads)
    progress("reading the trace")
    recorded = _trace(
        trace, [each.name for each in chosen.readings if each.name in released.values], columns
    )
    device_of = None
    if auditor_map is not None:
        path, content = _lines(auditor_map, ("pseudonym", "device"), name="auditor_map")
        device_of = read_auditor_map(
            path, pseudonym=released.pseudonym, device_id=recorded.device_id, content=content
        )
    return audit_release(
        recorded,
        released,
        roads,
        chosen,
        device_of=device_of,
        mode=mode,
        tick_s=real_number("tick_s", tick_s, 0.001),
        sample=whole_number("sample", sample, 0),
        seed=whole_number("seed", seed, 0),
        earlier=None if earlier is None else _released(earlier, roads).observed,
        placebo=None if placebo is None else _released(placebo, roads),
        every_attack=every_attack,
        progress=progress,
    )


def measure_utility(
    release: CloakedTrace | DataFrame | FilePath,
    trace: DataFrame | FilePath,
    network: Network,
    *,
    tick_s: float = 1.0,
    seed: int = 0,
    settings: Settings | None = None,
    mode: Mode | None = None,
    speed: str | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> tuple[UtilityFigures, ...]:
    """Measure how close counts made from a release are to the true ones.

    Parameters
    ----------
    release, trace, network, tick_s, settings, columns
        As for `audit_stream`.
    seed
        Of the queries.
    mode
        The mode of the release; None: that of the settings. It says what regions are made of.
    speed
        A declared reading that is a speed in metres a second: true speeds are its values in the
        trace, published ones its group means, or the pseudonyms' own values. None: true speeds are
        the distances between positions, and the release publishes none.

    Returns
    -------
    figures
        For grids of 6x6 and 18x18 cells and for roads, of the release, and beside it of raw
        positions and of counts with a threshold.

    Raises
    ------
    InputError
        If an input cannot be used, or the release is shorter than two minutes.
    """
    chosen = _with_mode(settings, mode)
    if isinstance(release, CloakedTrace):
        release = release.frame
    roads = _network(network, chosen)
    released = _released(release, roads)
    recorded = _trace(trace, [] if speed is None else [speed], columns)
    true_mps = published_mps = None
    if speed is not None:
        true_mps = recorded.readings[speed][is_valid(recorded)]
        published_mps = released.means.get(speed, released.values.get(speed))
    return utility(
        released.observed,
        reports_of(recorded, roads, chosen),
        roads,
        present_s=chosen.presence.ttl_s,
        until=released.until,
        tick_s=real_number("tick_s", tick_s, 0.001),
        seed=whole_number("seed", seed, 0),
        piece_of=public_pieces(roads, chosen),
        true_mps=true_mps,
        published_mps=published_mps,
    )


def _network(network: Network, settings: Settings) -> RoadNetwork:
    loaded = network if isinstance(network, RoadNetwork) else load_network(network)
    return network_for(settings.region.mode, loaded)


def _with_mode(settings: Settings | None, mode: Mode | None) -> Settings:
    """Return the settings with another way of forming regions, checked again as a whole."""
    if settings is None:
        settings = Settings()
    if not isinstance(settings, Settings):
        raise SettingsError("settings: must be what load_settings returns")
    if mode is None:
        return settings
    tables = settings.model_dump(exclude_unset=True)  # what was not stated follows from others
    tables.setdefault("region", {})["mode"] = mode
    return validated(tables, "settings")


def _trace(
    trace: DataFrame | FilePath, readings: Sequence[str], columns: Mapping[str, str]
) -> Trace:
    if isinstance(trace, str | PathLike):
        return read_trace(fspath(trace), readings=readings, columns=columns)
    columns = checked_columns(columns)
    own = ("device_id", "ts", "lat", "lon", "node", *MOTION, *readings)
    all_of = list(getattr(trace, "columns", ()))
    there = [name for name in all_of if name in (*own, *wanted_of(columns))]
    frame = as_polars(trace, there, name="trace")
    return trace_of(frame, readings=readings, columns=columns, there=all_of)


def _released(release: DataFrame | FilePath, network: RoadNetwork) -> Released:
    path, content = _lines(release, ("pseudonym", "time", "region", "k"), name="release")
    return read_release(path, network, content=content)


def _lines(
    source: DataFrame | FilePath, columns: Sequence[str], *, name: str
) -> tuple[Path, bytes | None]:
    """Return the path of a file of JSON lines, or what such a file contains for a data frame."""
    if isinstance(source, str | PathLike):
        return Path(source), None
    known = {"readings", "values", "until", "network"}
    optional = [column for column in getattr(source, "columns", ()) if column in known]
    frame = as_polars(source, [*columns, *optional], name=name)
    return Path(name), frame.write_ndjson().encode()


def _release_frame(lines: bytes, network: RoadNetwork, settings: Settings) -> pl.DataFrame:
    node = pl.Int64 if network.node_id.dtype.kind == "i" else pl.String
    schema: dict[str, Any] = {
        "pseudonym": pl.String,
        "time": pl.Float64,
        "region": pl.List(node),
        "k": pl.Int64,
        "network": pl.String,
        "until": pl.Float64,
    }
    if declared := settings.readings:
        schema["readings"] = pl.Struct(
            {
                each.name: pl.Struct(dict.fromkeys(each.attribute.statistics, pl.Float64))
                for each in declared
            }
        )
    if own := [each.name for each in declared if each.per_pseudonym]:
        schema["values"] = pl.Struct(dict.fromkeys(own, pl.Float64))
    return pl.read_ndjson(lines, schema=schema) if lines else pl.DataFrame(schema=schema)


def _lines_frame(lines: bytes, columns: Sequence[str]) -> pl.DataFrame:
    schema = dict.fromkeys(columns, pl.String)
    return pl.read_ndjson(lines, schema=schema) if lines else pl.DataFrame(schema=schema)


def _cloak_report(summary: CloakSummary) -> CloakReport:
    nodes = np.concatenate([np.zeros(0, np.int64), *summary.region_nodes])
    counts = summary.ledger.counts().items()
    return CloakReport(
        n_received=summary.ledger.n_received,
        outcomes={"/".join(filter(None, outcome.label)): n for outcome, n in counts if n},
        n_ticks=summary.n_ticks,
        region_nodes_median=float(np.median(nodes)) if len(nodes) else float("nan"),
        region_nodes_mean=float(nodes.mean()) if len(nodes) else float("nan"),
        age_mean_s=summary.age_s.mean,
        age_p95_s=summary.age_s.quantile(0.95),
        n_clamped=summary.n_clamped,
        n_left_out=summary.n_left_out,
    )
