"""A file that is written while it is read is read as a whole, or refused."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

import anonymizer
from anonymizer.errors import InputError
from anonymizer.files.tables import read_table
from anonymizer.files.traces import read_trace
from anonymizer.steady_files import steady

TABLE = "age,town\n" + "30,ulm\n" * 50_000
TRACE = "device_id,ts,lat,lon\n" + "".join(f"d{i},{i},60.17,24.94\n" for i in range(20_000))
NODES = "id,lat,lon\n" + "".join(f"{i},60.{i:05},24.9\n" for i in range(20_000))
EDGES = "u,v\n" + "".join(f"{i},{i + 1}\n" for i in range(19_999))
OSM = "<osm>" + "".join(f'<node id="{i}" lat="60.{i:05}" lon="24.9"/>' for i in range(20_000))


@contextmanager
def grows(path: Path, text: str) -> Iterator[None]:
    """A job that goes on writing."""
    path.write_text(text)
    stop = Event()

    def write() -> None:
        with path.open("a") as file:
            while not stop.is_set():
                file.write("\n")
                file.flush()

    job = Thread(target=write, name="job")
    job.start()
    try:
        yield
    finally:
        stop.set()
        job.join()


def network(prefix: Path) -> object:
    prefix.with_name("n_nodes.csv").write_text(NODES)
    return anonymizer.load_network(str(prefix.with_name("n")))


def reading(read: Callable[[Path], object], path: Path) -> Iterator[str]:
    """Read again and again, as the other thread need not write each time; yield what is said."""
    for _ in range(50):
        try:
            read(path)
        except InputError as error:
            yield str(error)


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("t.csv", TABLE, lambda path: read_table(path, ["age"])),
        ("t.csv", TRACE, read_trace),
        ("n_edges.csv", EDGES, network),
        ("n.osm", OSM, lambda path: anonymizer.load_network(str(path))),
    ],
    ids=["table", "trace", "network of tables", "network of OpenStreetMap"],
)
def test_what_is_written_while_it_is_read_is_refused(
    tmp_path: Path, name: str, text: str, read: Callable[[Path], object]
) -> None:
    with grows(tmp_path / name, text):
        assert any(
            "was changed while it was read" in each for each in reading(read, tmp_path / name)
        )


@pytest.mark.parametrize("how", ["in place", "replaced", "taken away", "same size"])
def test_however_a_file_is_changed_it_is_noticed_and_an_unchanged_one_is_not(
    tmp_path: Path, how: str
) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "other"
    path.write_text("a\n1\n")
    with steady(path):
        path.read_text()

    def change() -> None:
        match how:
            case "in place":
                path.write_text("a\n")
            case "replaced":
                other.write_text("a\n1\n")
                other.replace(path)
            case "taken away":
                path.unlink()
            case "same size":
                path.write_text("a\n2\n")
                os.utime(path, (1, 1))

    with pytest.raises(InputError, match=r"t\.csv: was changed"), steady(path):
        change()


def test_of_a_file_that_stays_the_error_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    with pytest.raises(ValueError, match="as it is"), steady(path):
        raise ValueError("as it is")
