"""Regions of nodes of a road network, as `cloak` publishes: each is read as its middle."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from anonymizer.audit.foreign.forms.form import ReleaseForm, points
from anonymizer.audit.foreign.forms.geohashes import with_middles
from anonymizer.audit.foreign.release import AnyRelease
from anonymizer.domain.network import NodeIndex, RoadNetwork
from anonymizer.errors import InputError

_COLUMNS = {"pseudonym", "time", "region"}


def _recognizes(frame: pl.DataFrame, _stated: Mapping[str, str]) -> bool:
    return set(frame.columns) >= _COLUMNS


def _read(
    path: Path, frame: pl.DataFrame, stated: Mapping[str, str], network: RoadNetwork | None
) -> AnyRelease:
    if network is None or not network.has_coordinates:
        raise InputError(f"{path}: has regions of nodes: state their network with --network")
    node_of = NodeIndex(network.node_id)
    middle = {}
    for region in frame["region"].drop_nulls().unique().to_list():
        names = msgspec.json.decode(region)
        nodes = node_of.find(np.array(names)) if names else np.zeros(0, np.int64)
        if (nodes < 0).any():
            raise InputError(f"{path}: has regions of another network")
        if len(nodes):
            middle[region] = float(network.lat[nodes].mean()), float(network.lon[nodes].mean())
    kept = with_middles(frame.select(*_COLUMNS), "region", middle).drop_nulls()
    return points(path, kept, {**stated, "id": "pseudonym"}, "regions of a road network")


FORM = ReleaseForm("regions of a road network", _recognizes, lambda _frame, _stated: None, _read)
