"""Tables from and to csv and parquet."""

import contextlib
import gzip
import io
import unicodedata
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from anonymizer.client.trip_files import read_trips
from anonymizer.errors import InputError
from anonymizer.files.table_writing import write_table
from anonymizer.files.tables import TextTable, read_table, without_escapes
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network

ROWS = pl.DataFrame({"age": ["30", None], "work": ["a", "b, or c"], "x": ["", "y"]})


@pytest.mark.parametrize("form", [".csv", ".csv.gz", ".parquet"])
def test_what_is_written_is_read_back_and_equal_tables_are_equal_bytes(
    form: str, tmp_path: Path
) -> None:
    files = []
    for _ in range(2):
        file = io.BytesIO()
        write_table(file, ROWS, form)
        files.append(file.getvalue())
    assert files[0] == files[1]
    path = tmp_path / f"table{form}"
    path.write_bytes(files[0])
    table = read_table(path)
    assert table.frame.select("age", "work").rows() == ROWS.select("age", "work").rows()
    assert read_table(path, ["work", "age"]).frame.columns == ["work", "age"]
    assert "30" not in repr(table).replace(str(tmp_path), "")


@pytest.mark.parametrize("form", [".csv", ".csv.gz"])
@pytest.mark.parametrize("n", [0, 1, 100_000, 200_001])
def test_a_table_is_written_as_one_piece_however_many_rows_it_has(form: str, n: int) -> None:
    rows = ROWS[[at % 2 for at in range(n)]].with_columns(n=pl.int_range(pl.len()) / 7)
    file = io.BytesIO()
    write_table(file, rows, form)
    written = gzip.decompress(file.getvalue()) if form == ".csv.gz" else file.getvalue()
    assert written == rows.write_csv().encode()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"age,work,zip\n1,a,2\n1,234,a,2\n", "row 2: has 4 cells, and the header 3"),
        (b"age,work,zip\n1,a,2\n\n1,a", "row 3: has 2 cells, and the header 3"),
        (b"age,work,zip\n" + b"1,a,2\n" * 999 + b"1,a\n", "row 1000: has 2 cells"),
        (b'age,work,zip\r\n1,"a,b",2\r\n\r\n1,"a\nb",2\r\n3,c,4', None),
        (b"age,work,zip\n1,a,2", None),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_ragged_rows_are_refused_whichever_columns_are_read(
    content: bytes, fault: str | None, *, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    refused = pytest.raises(InputError, match=fault) if fault else contextlib.nullcontext()
    with refused:
        assert set(read_table(path, ["age"]).frame["age"]) <= {"1", "3", None}


def test_cells_are_separated_by_semicolons_where_the_header_is(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(" age; work \n 30 ;a,b\n;\n")
    assert read_table(path).frame.to_dict(as_series=False) == {
        "age": ["30", None],
        "work": ["a,b", None],
    }
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(packed, ["work"]).frame["work"].to_list() == ["a,b", None]


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"age,work\n", "has no rows"),
        ("t.csv", b"name\nx\n", "no column age"),
        ("t.csv", b"age,age\n1,2\n", "column age occurs twice"),
        ("t.csv", b"age\n1,2,3\n", "row 1: has 3 cells, and the header 1"),
        ("t.csv", b"work,age\na,1\nb\n", "row 2: has 1 cells, and the header 2"),
        ("t.csv", b"work,age\rx,1\r", "ends its lines with CR alone"),
        ("t.csv", "work,age\n\u0448\u0435\u0444,1\n".encode("cp1251"), "is not UTF-8 text"),
        ("t.csv.gz", b"age\n1\n", "cannot be read"),
        ("t.parquet", b"age\n1\n", "is not well-formed parquet"),
        ("t.dat", b"age\n1\n", "a table ends in .csv, .csv.gz, .parquet"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line_that_names_the_file(
    name: str, content: bytes, fault: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=fault) as error:
        read_table(path, ["age"])
    assert str(error.value).startswith(str(path))


def test_a_row_that_is_too_short_is_refused_where_all_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("work,age\na,1\nb\n")
    with pytest.raises(InputError, match="row 2: has 1 cells, and the header 2"):
        read_table(path)


def _of_network(path: Path) -> object:
    edges = path.with_name("town_edges.csv")
    edges.write_bytes(path.read_bytes())
    return load_network(str(path.with_name("town")))


def _of_trips(path: Path) -> object:
    return read_trips(path, network="grid:3x3")


READERS = [read_table, read_trace, _of_network, _of_trips]
"""Whatever reads a csv."""


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("," * 2**14 + "\n1\n", "more than 16,384 columns"),
        ("a" * (2**24 + 1) + "\n1\n", "longer than 16 MiB"),
        ("device_id,ts,lat,lon\n" + "\n" * 2**25, "too many lines without cells"),
    ],
    ids=["columns", "endless", "blanks"],
)
def test_lines_that_take_more_than_they_say_are_refused_before_they_are_read(
    tmp_path: Path, read: Callable[[Path], object], content: str, why: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=why):
        read(path)


def test_a_thousand_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{i}" for i in range(1000)) + "\n" + "," * 999)
    assert len(read_table(path)) == 1


@pytest.mark.parametrize("read", [read_table, read_trace])
def test_blank_lines_that_are_packed_are_refused_before_they_are_read(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"device_id,ts,lat,lon\n" + b"\n" * 2**25)
    with pytest.raises(InputError, match="too many lines without cells"):
        read(path)


def test_cells_are_separated_by_tabs_where_the_header_is(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age\twork\n30\ta,b;c\n")
    assert read_table(path).frame.rows() == [("30", "a,b;c")]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_lines_above_the_heading_are_named(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "table.csv"
    rows = f'age{mark}"work"\n30{mark}a\nage{mark}work\n'
    path.write_text(f"Patients of ward 3\n{mark}\n{rows}")
    with pytest.raises(InputError, match="heading seems to be line 3: take the 2 lines above"):
        read_table(path, ["work", "age"])
    path.write_text(f"Patients of ward 3{mark}\n{rows}")
    with pytest.raises(InputError, match="heading seems to be line 2: take the line above"):
        read_table(path, ["work"])
    path.write_text(rows)
    assert read_table(path, ["work"]).frame["work"].to_list() == ["a", "work"]


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "folder.csv")


RUN = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "\tx", "'=1", "''@x"]
PLAIN = ["-3", "+4.5", "-1e-9", "a=1", "'quoted'", "", "[1-2]", "{a|-b}"]


@pytest.mark.parametrize("form", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(RUN + PLAIN)])
def test_no_spreadsheet_runs_a_cell_and_it_is_read_back_as_it_was(
    tmp_path: Path, form: str, kind: pl.DataType
) -> None:
    path = tmp_path / f"out{form}"
    text = pl.DataFrame({"a": RUN + PLAIN, "n": range(len(RUN + PLAIN))})
    frame = text.cast({"a": kind})
    with path.open("wb") as file:
        write_table(file, frame, form)
    if form == ".parquet":
        assert pl.read_parquet(path).equals(frame)
        return
    cells = pl.read_csv(path, infer_schema=False)["a"].to_list()
    assert cells[: len(RUN)] == [f"'{cell}" for cell in RUN]
    assert [cell or "" for cell in cells[len(RUN) :]] == PLAIN
    back = without_escapes(TextTable(path, pl.read_csv(path, infer_schema=False)))
    assert [cell or "" for cell in back.frame["a"]] == RUN + PLAIN
    written = io.BytesIO()
    write_table(written, frame, ".csv", formulas=True)
    assert b"\n=HYPERLINK(1),0" in written.getvalue()


@pytest.mark.parametrize("form", [".csv", ".csv.gz"])
def test_no_spreadsheet_runs_a_name_either(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"out{form}"
    frame = pl.DataFrame({name: ["x"] for name in [*RUN, "a=1", "'quoted'"]})
    with path.open("wb") as file:
        write_table(file, frame, form)
    written = pl.read_csv(path, infer_schema=False)
    assert not [name for name in written.columns if name[0] in "=+-@\t\r"]
    assert without_escapes(TextTable(path, written)).frame.columns == frame.columns


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Name", "; did you mean name?"),
        ("agee", "; did you mean age?"),
        ("x", ""),
        ("name,age", ": it takes one, so repeat it for each"),
        ("name,x", "; did you mean name?"),
    ],
)
def test_a_column_that_is_not_there_is_named_with_the_one_that_was_meant(
    tmp_path: Path, asked: str, said: str
) -> None:
    (tmp_path / "t.csv").write_text("name,age\na,1\n")
    with pytest.raises(InputError) as refused:
        read_table(tmp_path / "t.csv", [asked])
    assert str(refused.value).endswith(f"t.csv: no column {asked}{said}")


@pytest.mark.parametrize("form", [".csv", ".csv.gz", ".parquet"])
def test_a_full_disk_is_an_error_of_the_system_in_every_format(form: str) -> None:
    frame = pl.DataFrame({"age": range(10_000)})
    with (
        pytest.raises(OSError, match="No space left on device"),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        write_table(full, frame, form)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030", "cp1252"])
@pytest.mark.parametrize("first", ["", "sep=;\n", "sep=;\r\n"])
def test_what_spreadsheets_write_is_read(tmp_path: Path, encoding: str, first: str) -> None:
    words = (
        ["\u8f66\u724c", "\u6d77\u6dc0\u533a"]
        if encoding == "gb18030"
        else ["M\xfcller", "caf\xe9"]
    )
    lines = "\n".join(f"{word};{i}" for i, word in enumerate(words * 3))
    path = tmp_path / "t.csv"
    path.write_bytes(f"{first}work;age\n{lines}\n".encode(encoding))
    read = read_table(path, ["work", "age"])
    assert read.frame["work"].to_list() == words * 3
    assert (read.encoding == "") == encoding.startswith("utf-8")


def test_a_cell_has_no_blanks_around_it_whatever_sign_they_are(tmp_path: Path) -> None:
    blanks = [
        chr(code) for code in range(0x3001)
        if unicodedata.category(chr(code))[0] in "ZC" and chr(code) not in '"\r\n\0'
    ]  # fmt: skip
    cells = [f"{blank}a b{blank}" for blank in blanks]
    path = tmp_path / "some.csv"
    path.write_text("name\n" + "\n".join(cells) + "\n")
    found = read_table(path).frame["name"]
    assert found.to_list() == pl.Series(cells).str.strip_chars().replace("", None).to_list()
    assert (found == "a b").sum() > 20
