"""Small files that unpack to gigabytes are refused before they are read."""

import bz2
import gzip
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import osmium
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.errors import InputError
from anonymizer.files.tables import read_table
from anonymizer.files.traces import read_trace, trace_of
from anonymizer.networks import load_network
from anonymizer.unfolding import (
    MAX_BYTES,
    UnfoldingError,
    check_frame,
    check_texts,
    check_unfolding,
)

TOO_LARGE = "unpacks to more than 2 GiB"
N_ROWS = 20_000_000


def gzipped(path: Path) -> None:
    """Write a file that unpacks to somewhat more than the limit."""
    part = gzip.compress(bytes(1 << 24))
    path.write_bytes(part * (MAX_BYTES // (1 << 24) + 1))


def repeated(path: Path) -> None:
    """Write a table of one row, many times."""
    zeros = pl.select(lat=pl.repeat(0.0, N_ROWS)).lazy()
    zeros.with_columns(pl.col("lat").alias(f"x{i}") for i in range(14)).sink_parquet(path)


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bombs")
    gzipped(folder / "bomb.csv.gz")
    (folder / "bomb.graphml.gz").symlink_to(folder / "bomb.csv.gz")
    return folder


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (read_trace, "bomb.csv.gz"),
        # Both readers ask one function, which unpacks two gigabytes before it refuses them.
        pytest.param(load_network, "bomb.graphml.gz", marks=pytest.mark.soak),
    ],
)
def test_a_gzip_file_that_unpacks_to_gigabytes_is_refused_by_name(
    read: Callable[[str], object], name: str, bombs: Path
) -> None:
    path = str(bombs / name)
    assert (bombs / name).stat().st_size < 3_000_000
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: {TOO_LARGE}"


def test_a_parquet_table_of_one_value_a_billion_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x_edges.parquet"
    repeated(path)
    assert path.stat().st_size < 5_000_000
    with pytest.raises(InputError, match=TOO_LARGE):
        read_table(path)
    # The columns that are read count alone.
    check_unfolding(path, ["lat", "x1"])
    with pytest.raises(UnfoldingError):
        check_unfolding(path, ["lat", "x1"], max_bytes=16 * N_ROWS - 1)


def test_the_size_of_a_parquet_file_is_at_least_that_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    frame = pl.DataFrame(
        {
            "f": np.random.default_rng(1).random(10_000),
            "i": np.arange(10_000, dtype=np.int32),
            "s": [f"device {i}" for i in range(10_000)],
            "b": [True, False] * 5_000,
        }
    )
    for compression in ("zstd", "snappy", "uncompressed"):
        frame.write_parquet(path, compression=compression, row_group_size=3_000)
        for columns in (None, ["f"], ["i", "s"]):
            size = int(frame.select(columns or pl.all()).estimated_size())
            check_unfolding(path, columns, max_bytes=3 * size)
            with pytest.raises(UnfoldingError):
                check_unfolding(path, columns, max_bytes=size - 1)


def test_a_text_that_many_rows_share_is_counted_for_each_of_them(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.select(text=pl.repeat("x" * 100_000, 100)).write_parquet(path)
    check_unfolding(path, max_bytes=1_000_000)
    with pytest.raises(UnfoldingError):
        check_frame(pl.read_parquet(path), max_bytes=1_000_000)


def test_one_giant_id_does_not_make_all_ids_giant() -> None:
    nodes = [*map(str, range(1000)), "x" * 1_000_000]
    with pytest.raises(UnfoldingError):
        check_texts(nodes)
    n = len(nodes)
    frame = pl.DataFrame({"device_id": ["a"] * n, "ts": np.zeros(n), "node": nodes})
    with pytest.raises(InputError, match=TOO_LARGE):
        trace_of(frame)


def test_an_osm_file_that_states_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.osm.pbf"
    with osmium.SimpleWriter(str(path)) as writer:
        for i in range(20_000):
            writer.add_node(osmium.osm.mutable.Node(id=i + 1, location=(0.0, 0.0)))
    packed = path.stat().st_size
    check_unfolding(path, max_bytes=500_000)
    with pytest.raises(UnfoldingError):
        check_unfolding(path, max_bytes=3 * packed)


@pytest.mark.parametrize("name", ["x.parquet", "x.osm.pbf", "x.csv.gz", "x.osm.bz2"])
@given(content=st.binary(max_size=60), footer=st.binary(max_size=60))
def test_no_content_raises_anything_else(
    name: str, content: bytes, footer: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    try:
        check_unfolding(path)
    except UnfoldingError as error:
        assert "well-formed" in str(error)  # noqa: PT017  most are refused


def test_bzip2_and_plain_files_are_known_by_their_endings(tmp_path: Path) -> None:
    packed, plain = tmp_path / "x.osm.bz2", tmp_path / "x.osm"
    packed.write_bytes(bz2.compress(bytes(1_000_000)))
    plain.write_bytes(bytes(1_000_000))
    check_unfolding(plain, max_bytes=1)
    check_unfolding(packed, max_bytes=1_000_000)
    with pytest.raises(UnfoldingError):
        check_unfolding(packed, max_bytes=999_999)


def test_a_graph_whose_entities_unfold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.graphml"
    entities = '<!ENTITY a0 "0123456789">' + "".join(
        f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)
    )
    path.write_text(f'<!DOCTYPE graphml [{entities}]><graphml id="&a11;"/>')
    with pytest.raises(InputError, match="is not readable GraphML"):
        load_network(str(path))


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["x" * 10_000, "y"])])
def test_a_text_that_all_rows_of_a_category_share_counts_for_each_of_them(
    kind: Any,  # noqa: ANN401  a type of polars
    tmp_path: Path,
) -> None:
    path = tmp_path / "bomb.parquet"
    frame = pl.DataFrame({"a": pl.Series(["x" * 10_000] * 500, dtype=kind)})
    frame.write_parquet(path)
    for most, is_refused in ((4_000_000, True), (6_000_000, False)):
        with pytest.raises(UnfoldingError) if is_refused else nullcontext():
            check_unfolding(path, max_bytes=most)
        with pytest.raises(UnfoldingError) if is_refused else nullcontext():
            check_frame(frame, max_bytes=most)
    few = pl.DataFrame({"a": pl.Series(["y"] * 500 + ["x" * 10_000], dtype=pl.String).cast(kind)})
    few.write_parquet(path)
    check_unfolding(path, max_bytes=200_000)
