import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.device_ids import plain_id
from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.traces import read_trace
from simulator.trace_writer import TraceWriter
from tests.lanes import some_rows

HEADER = "device_id,ts,lat,lon\n"


def write_trace(path: Path, trace: Trace) -> None:
    with TraceWriter(path, device_id=trace.device_id) as writer:
        writer.write(trace.device_of, trace.ts, trace.lat, trace.lon)


def csv(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path, *readings: str) -> str:
    with pytest.raises(InputError) as caught:
        read_trace(path, readings=readings)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_rows_come_by_time_and_rows_of_one_instant_keep_the_order_of_the_file(
    tmp_path: Path,
) -> None:
    trace = read_trace(csv(tmp_path, HEADER + "b,2,1,1\na,1,2,2\nc,2,3,3\na,2.5,4,4\n"))
    assert trace.device_id == ("a", "b", "c")
    assert trace.device_of.tolist() == [0, 1, 2, 0]
    assert trace.ts.tolist() == [1, 2, 2, 2.5]
    assert trace.lat.tolist() == [2, 1, 3, 4]
    assert trace.node is None
    assert (trace.n_rows, trace.n_devices, trace.n_unusable) == (4, 3, 0)


def test_rows_with_missing_or_endless_values_are_kept_out_and_counted(tmp_path: Path) -> None:
    rows = [
        "a,1,2,3",
        ",1,2,3",
        '"",1,2,3',
        "a,,2,3",
        "a,NaN,2,3",
        "a,1,inf,3",
        "a,1,2, ",
        "b,1,2,3",
    ]
    trace = read_trace(csv(tmp_path, HEADER + "\n".join(rows)))
    assert (trace.n_rows, trace.n_unusable) == (2, 6)
    assert trace.device_id == ("a", "b")


def test_columns_in_any_order_and_more_of_them_do_not_matter(tmp_path: Path) -> None:
    trace = read_trace(csv(tmp_path, "lon,note,lat,ts,device_id,node\n1,x,2,3,7,9\n"))
    assert (trace.device_id, trace.lon.tolist(), trace.node) == (("7",), [1], None)


@pytest.mark.parametrize(
    ("names", "dtype", "nodes"),
    [("7,3", "i", [3, 7]), ("7,x", "U", ["x", "7"]), ("7,03", "U", ["03", "7"])],
)
def test_a_trace_may_name_nodes_instead_of_coordinates(
    tmp_path: Path, names: str, dtype: str, nodes: list[object]
) -> None:
    first, second = names.split(",")
    text = f"device_id,ts,node\na,2,{first}\na,1,{second}\na,3,\n"
    trace = read_trace(csv(tmp_path, text))
    assert trace.node is not None
    assert (trace.node.dtype.kind, trace.node.tolist()) == (dtype, nodes)
    assert np.isnan(trace.lat).all()
    assert trace.n_unusable == 1


def test_what_cannot_be_read_is_said_in_one_line_without_a_value(tmp_path: Path) -> None:
    cases = {
        "": "is empty",
        "device_id,ts,lat\n": (
            "no column lon: state which of device_id, ts, lat are id, time, lat and lon, as "
            "--columns id=MMSI,time=BaseDateTime,lat=LAT,lon=LON (a trace has device_id, ts, and "
            "lat and lon, or node)"
        ),
        "device_id,node\n": (
            "no column ts: state which of device_id, node are id, time, lat and lon, as "
            "--columns id=MMSI,time=BaseDateTime,lat=LAT,lon=LON (a trace has device_id, ts, and "
            "lat and lon, or node)"
        ),
        HEADER + "a,secret,1,2\na,1,secret,2\na,2,1,2\n": "column ts: not a number in 1 of 3 rows",
        HEADER + "a,1,2,3,4,5\n": "is not well-formed csv",
    }
    for text, message in cases.items():
        assert refused(csv(tmp_path, text)) == message
    assert refused(tmp_path / "missing.csv") == "no such file"
    assert refused(tmp_path / "trace.dat") == "a trace ends in .csv, .csv.gz, .parquet, .txt, .tsv"
    (tmp_path / "folder.csv").mkdir()
    assert refused(tmp_path / "folder.csv") == "cannot be read: Is a directory"


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no parquet PAR1")
    assert refused(tmp_path / "t.parquet") == "is not well-formed parquet"
    whole = gzip.compress((HEADER + "".join(f"a,{i},{i},1\n" for i in range(9999))).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        read_trace(tmp_path / "t.csv.gz")
    (tmp_path / "t.csv").write_bytes(HEADER.encode() + b"\x81\x8d\x90\x9d,1,2,3\n")
    assert refused(tmp_path / "t.csv").startswith("is not UTF-8 text")


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("ts", pl.Series([1], dtype=pl.Date), "must hold times"),
        ("lat", pl.Series([True]), "must hold numbers"),
        ("device_id", pl.Series([1.5]), "must hold text or integers"),
    ],
)
def test_a_parquet_column_of_the_wrong_kind_is_refused(
    tmp_path: Path, column: str, values: pl.Series, said: str
) -> None:
    frame = pl.DataFrame({"device_id": ["a"], "ts": [1], "lat": [1.0], "lon": [2.0]})
    frame.with_columns(values.alias(column)).write_parquet(tmp_path / "t.parquet")
    assert refused(tmp_path / "t.parquet").startswith(f"column {column}: {said}")


def as_parquet(path: Path) -> Path:
    """Write a csv once more, with its numbers as numbers."""
    target = path.with_suffix(".parquet")
    pl.read_csv(path).write_parquet(target)
    return target


def test_declared_readings_come_with_their_rows_and_none_is_nan(tmp_path: Path) -> None:
    rows = ["b,3,0,0,7.5,1", "a,,0,0,8,2", "a,1,0,0,,3", "a,2,0,0,-1.25,"]
    table = csv(tmp_path, "device_id,ts,lat,lon,speed,battery\n" + "\n".join(rows))
    for path in (table, as_parquet(table)):
        trace = read_trace(path, readings=["battery", "speed"])
        assert (trace.ts.tolist(), trace.n_unusable) == ([1, 2, 3], 1)
        assert list(trace.readings) == ["battery", "speed"]
        assert np.array_equal(trace.readings["speed"], [np.nan, -1.25, 7.5], equal_nan=True)
        assert np.array_equal(trace.readings["battery"], [3, np.nan, 1], equal_nan=True)
        assert list(read_trace(path, readings=["speed"]).readings) == ["speed"]
        assert read_trace(path).readings == {}


@pytest.mark.parametrize("nothing", ["", " ", "NaN", "inf", "-inf", "1e999"])
def test_a_reading_without_a_finite_value_is_none_and_its_position_counts(
    tmp_path: Path, nothing: str
) -> None:
    path = csv(tmp_path, f"device_id,ts,node,speed\na,1,7,{nothing}\nb,2,7,3\n")
    trace = read_trace(path, readings=["speed"])
    assert (trace.n_rows, trace.n_unusable) == (2, 0)
    assert np.array_equal(trace.readings["speed"], [np.nan, 3], equal_nan=True)


def test_a_coordinate_may_be_declared_as_a_reading_of_itself(tmp_path: Path) -> None:
    trace = read_trace(csv(tmp_path, HEADER + "a,1,2,3\n"), readings=["lat"])
    assert trace.readings["lat"].tolist() == trace.lat.tolist() == [2]


def test_a_declared_reading_that_is_not_there_is_named_with_its_file(tmp_path: Path) -> None:
    table = csv(tmp_path, "device_id,ts,lat,lon,speed\na,1,2,3,4\n")
    for path in (table, as_parquet(table)):
        reason = "no column battery (a declared reading)"
        assert refused(path, "speed", "battery") == reason
    table = csv(tmp_path, "device_id,ts,lat,lon,speed\na,1,2,3,secret\n")
    assert refused(table, "speed") == "column speed: not a number in 1 of 1 rows"


def test_nothing_that_is_printed_tells_who_or_where(tmp_path: Path) -> None:
    trace = read_trace(csv(tmp_path, HEADER + "secret,1,12.5,13.5\n"))
    assert repr(trace) == "Trace(1 rows, 1 devices)"


finite = st.floats(allow_nan=False, allow_infinity=False)
identifiers = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
    .map(plain_id)
    .filter(bool)
)


@given(
    rows=st.lists(st.tuples(identifiers, st.integers(0, 9), finite, finite), max_size=8),
    ending=st.sampled_from([".csv", ".csv.gz", ".parquet"]),
)
def test_what_is_written_is_read_back_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int, float, float]],
    ending: str,
) -> None:
    rows.sort(key=lambda row: row[1])
    ids = tuple(dict.fromkeys(row[0] for row in rows))

    def column(i: int) -> FloatArray:
        return np.array([row[i] for row in rows], np.float64)

    device_of = np.array([ids.index(row[0]) for row in rows], np.int64)
    trace = Trace(ids, device_of, column(1), column(2), column(3))
    path = tmp_path_factory.getbasetemp() / f"round_trip{ending}"
    write_trace(path, trace)
    again = read_trace(path)
    assert again.device_id == ids
    for name in ("device_of", "ts", "lat", "lon"):
        assert np.array_equal(getattr(again, name), getattr(trace, name))
    assert again.n_unusable == 0


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_batches_make_the_same_file_as_one_piece(tmp_path: Path, ending: str) -> None:
    device, ts = np.array([1, 0, 1]), np.array([1.0, 2.0, 3.0])
    for name, cuts in (("whole", [0, 3]), ("parts", [0, 1, 1, 3])):
        with TraceWriter(tmp_path / f"{name}{ending}", device_id=["a", "b"]) as writer:
            for start, stop in pairwise(cuts):
                part = slice(start, stop)
                writer.write(device[part], ts[part], ts[part], ts[part])
            # Whatever ends the program now, it leaves nothing else.
            assert {path.stem.split(".")[0] for path in tmp_path.iterdir()} <= {"whole", "parts"}
    whole, parts = (tmp_path / f"{name}{ending}" for name in ("whole", "parts"))
    assert whole.read_bytes() == parts.read_bytes()
    assert read_trace(parts).device_id == ("b", "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"parts{ending}", f"whole{ending}"]


def test_what_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    nobody = Trace((), np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    for ending in ("csv", "csv.gz", "parquet"):
        with pytest.raises(InputError, match="cannot be written: No such file"):
            write_trace(tmp_path / "missing" / f"t.{ending}", nobody)
    with pytest.raises(InputError, match=r"ends in \.csv"):
        write_trace(tmp_path / "t.json", nobody)
    (tmp_path / "full.csv").symlink_to("/dev/full")
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write_trace(tmp_path / "full.csv", nobody)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_rows", "n_devices"),
    some_rows(
        [
            ("cabspotting_sf_2008-05-19_20.parquet", 920_645, 501),
            ("cabspotting_sf_2008-05-24_30.parquet", 3_277_153, 513),
            ("austin_bus_2015_2016.parquet", 385_780, 462),
            ("helsinki_phones_2016-08-26.csv.gz", 6_030, 8),
        ],
        [
            ("austin_bus_2015_2016.parquet", 385_780, 462),
            ("helsinki_phones_2016-08-26.csv.gz", 6_030, 8),
        ],
    ),
)
def test_each_recorded_trace_reads_with_the_counts_of_its_description(
    name: str, n_rows: int, n_devices: int
) -> None:
    trace = read_trace(Path(os.environ["ANONYMIZER_DATA"]) / "traces" / name)
    assert (trace.n_rows, trace.n_devices, trace.n_unusable) == (n_rows, n_devices, 0)
    assert (np.diff(trace.ts) >= 0).all()
    assert len(np.unique(trace.device_of)) == n_devices
