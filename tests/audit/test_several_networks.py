"""Boats, hikers and cars of one service, attacked by who knows of which kind a device is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from anonymizer.app.cloak import cloak_trace
from anonymizer.audit import audit_release
from anonymizer.client import read
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from tests.audit.test_places_without_roads import (
    EVERY_S,
    LAKE,
    SECONDS,
    START,
    Kind,
    moving,
)

BOX = ",".join(map(str, LAKE))
KINDS = {
    "boats": Kind(f"h3:9:{BOX}", 10, (2, 6), LAKE),
    "hikers": Kind(f"h3:10:{BOX}", 30, (0.8, 1.6), LAKE),
    "cars": Kind("city:3000", 60),
}


class Service(NamedTuple):
    """A trace of devices of all kinds, and what was published of it."""

    network: RoadNetwork
    trace: Trace
    published: Path
    named: Path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    network = load_network(" + ".join(kind.source for kind in KINDS.values()))
    trace = together(
        [moving(kind, load_network(kind.source), seed=i) for i, kind in enumerate(KINDS.values())]
    )
    folder = tmp_path_factory.mktemp("several")
    published, named = folder / "PUB.jsonl", folder / "MAP.jsonl"
    summary = cloak_trace(
        trace, network, Settings(), tick_s=1.0, seed=0, out=published, auditor_map=named
    )
    assert summary.ledger.n(Outcome.SUPPRESSED__OFF_GRAPH) == 0
    return Service(network, trace, published, named)


def together(traces: list[Trace]) -> Trace:
    """Return the traces of all kinds as one, which tells the network of each row."""
    first = np.cumsum([0, *(each.n_devices for each in traces)])
    ts = np.concatenate([each.ts for each in traces])
    order = np.argsort(ts, kind="stable")
    source = np.repeat([kind.source for kind in KINDS.values()], [each.n_rows for each in traces])
    device_of = [each.device_of + at for each, at in zip(traces, first[:-1], strict=True)]
    names = [
        f"{kind}-{name}"
        for kind, each in zip(KINDS, traces, strict=True)
        for name in each.device_id
    ]
    return Trace(
        tuple(names),
        np.concatenate(device_of)[order],
        ts[order],
        np.concatenate([each.lat for each in traces])[order],
        np.concatenate([each.lon for each in traces])[order],
        network=source[order],
    )


def of_kind(service: Service, kind: str, folder: Path) -> Service:
    """Return what is left for who knows that the devices looked for are of a kind."""
    number = list(KINDS).index(kind)
    network = service.network.alone(service.network.layers[number])
    trace = service.trace
    devices = np.flatnonzero([name.startswith(f"{kind}-") for name in trace.device_id])
    rows = np.isin(trace.device_of, devices)
    alone = Trace(
        tuple(trace.device_id[i] for i in devices.tolist()),
        np.searchsorted(devices, trace.device_of[rows]),
        trace.ts[rows],
        trace.lat[rows],
        trace.lon[rows],
    )
    lines = service.published.read_text().splitlines()
    kept = [line for line in lines if f'"region":["{number + 1}/' in line.replace(": ", ":")]
    pseudonyms = {json.loads(line)["pseudonym"] for line in kept}
    named = service.named.read_text().splitlines()
    published, who = folder / "PUB.jsonl", folder / "MAP.jsonl"
    published.write_text("\n".join(kept) + "\n")
    who.write_text(
        "\n".join(line for line in named if json.loads(line)["pseudonym"] in pseudonyms) + "\n"
    )
    return Service(network, alone, published, who)


def test_a_region_is_of_one_network_and_k_of_its_devices_share_it(service: Service) -> None:
    kind_of = {
        row["pseudonym"]: row["device"].split("-")[0]
        for row in map(json.loads, service.named.read_text().splitlines())
    }
    sharing: dict[tuple[float, tuple[str, ...]], set[str]] = {}
    for row in map(json.loads, service.published.read_text().splitlines()):
        if not row["region"]:
            continue
        number = {name.split("/")[0] for name in row["region"]}
        assert number == {str(1 + list(KINDS).index(kind_of[row["pseudonym"]]))}
        sharing.setdefault((row["time"], tuple(row["region"])), set()).add(row["pseudonym"])
        least = row["k"]
    assert set(kind_of.values()) == set(KINDS)
    assert min(len(each) for each in sharing.values()) >= least >= 2


@pytest.mark.parametrize("kind", KINDS)
def test_nine_tenths_of_the_time_of_each_kind_are_covered(
    service: Service, tmp_path: Path, kind: str, record_property: Callable[[str, object], None]
) -> None:
    releases = read(of_kind(service, kind, tmp_path).published)
    moments = np.arange(START + EVERY_S, START + SECONDS, 10)
    covered = sum(releases.devices(at) for at in moments.tolist())
    share = covered / (KINDS[kind].n * len(moments))
    record_property("covered", round(share, 3))
    assert 0.9 <= share <= 1


def test_a_trace_that_does_not_tell_kinds_apart_is_refused(service: Service) -> None:
    trace = service.trace
    untold = Trace(trace.device_id, trace.device_of, trace.ts, trace.lat, trace.lon)
    with pytest.raises(InputError, match="needs a column network"):
        cloak_trace(
            untold, service.network, Settings(), tick_s=1.0, seed=0, out=Path("x"), auditor_map=None
        )


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone_withstands_every_attack(
    service: Service, tmp_path: Path, kind: str, record_property: Callable[[str, object], None]
) -> None:
    network, trace, published, named = of_kind(service, kind, tmp_path)
    released = read_release(published, network)
    report = audit_release(
        trace,
        released,
        network,
        Settings(),
        device_of=read_auditor_map(named, pseudonym=released.pseudonym, device_id=trace.device_id),
        mode="session",
        tick_s=1.0,
        sample=300,
        seed=0,
    )
    assert report.holds, [finding.attack for finding in report.failures]
    for finding in report.findings:
        record_property(finding.attack, finding.figures)
        assert finding.holds is not False, finding.attack
