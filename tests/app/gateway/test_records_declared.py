"""The hierarchies that streams name, read before anything is connected."""

import json
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.app.gateway.preflight import check_files
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings
from tests.pipeline.records.made import FLEET

LINES = "car;small;*\nvan;small;*\ntruck;large;*\nbus;large;*\n"
TREES = {"type": {"small": ["car", "van"], "large": ["truck", "bus"]}}


def fleet(hierarchy: Path, **tables: Any) -> Settings:  # noqa: ANN401  settings of any kind
    kind = {"name": "type", "hierarchy": str(hierarchy)}
    stream = {**FLEET, "attributes": [kind, *FLEET["attributes"][1:]], "cost": "taxonomy"}
    return Settings.model_validate({"inputs": [], "streams": [stream], **tables})


def labels(settings: Settings) -> tuple[str, ...]:
    [stream] = declared_streams(settings)
    tree = stream.schema.qis[0].hierarchy
    assert tree is not None
    return tree.label


def test_a_hierarchy_is_lines_or_trees(tmp_path: Path) -> None:
    lines, trees = tmp_path / "types.csv", tmp_path / "types.json"
    lines.write_text(LINES)
    trees.write_text(json.dumps(TREES))
    assert set(labels(fleet(lines))) == set(labels(fleet(trees)))
    assert {"small", "large", "car", "bus", "?"} <= set(labels(fleet(lines)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("types.csv", None, "no such file"),
        ("types.csv", "car\n", "line 1: has no level above the leaf"),
        ("types.json", "{", "is not well-formed JSON"),
        ("types.json", json.dumps({"kind": TREES["type"]}), "has none of this name"),
    ],
)
def test_a_hierarchy_that_cannot_be_used_is_named(
    name: str, content: str | None, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError) as caught:
        declared_streams(fleet(path))
    where = f"streams: fleet: attributes: type: hierarchy: {path}: "
    assert str(caught.value).startswith(where)
    assert str(caught.value).endswith(said)


def test_a_store_needs_a_folder_and_streams_alone_need_no_network(tmp_path: Path) -> None:
    lines = tmp_path / "types.csv"
    lines.write_text(LINES)
    nowhere = {"path": str(tmp_path / "nowhere" / "records.sqlite")}
    with pytest.raises(SettingsError, match=r"store\.path: .*: there is no such folder"):
        check_files(fleet(lines, store=nowhere))
    no_network = {"source": "nowhere.osm"}
    fine = fleet(lines, network=no_network, store={"path": str(tmp_path / "records.sqlite")})
    assert [s.settings.name for s in check_files(fine).streams] == ["fleet"]
