"""`anonymizer network export`."""

import json
from pathlib import Path

from anonymizer.networks import load_network
from anonymizer.networks.publication import geojson
from tests.cli.support import anonymizer


def test_a_network_is_written_as_geojson_with_the_version_that_is_printed(tmp_path: Path) -> None:
    out = tmp_path / "grid.geojson"
    done = anonymizer("network", "export", "grid:3x4", "--out", out)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == geojson(load_network("grid:3x4"))
    assert json.loads(out.read_text())["network"] in done.stdout


def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    out = tmp_path / "grid.kml"
    done = anonymizer("network", "export", "grid:3x4", "--out", out)
    assert done.returncode == 2
    assert "must end in .geojson or .parquet" in done.stderr
    assert not out.exists()
