"""Registries of fixed devices: what is read, and what is refused without revealing a place."""

from pathlib import Path

import pytest

from anonymizer.errors import InputError
from anonymizer.files.device_registry import read_registry


def registry(folder: Path, text: str, *, encoding: str = "utf-8") -> Path:
    path = folder / "sensors.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_the_place_of_each_device_is_read_whatever_the_order_of_the_columns(
    tmp_path: Path,
) -> None:
    path = registry(
        tmp_path, 'lon,name,device_id,lat\n24.9,"Kaisaniemi, park",a/1,60.2\n-0.1,,b,51.5\n'
    )
    assert read_registry(path) == {"a/1": (60.2, 24.9), "b": (51.5, -0.1)}


def test_a_file_from_a_spreadsheet_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = registry(tmp_path, "device_id,lat,lon\r\na,60,25\r\n", encoding="utf-8-sig")
    assert read_registry(path) == {"a": (60.0, 25.0)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must have one column device_id"),
        ("device_id,lat\na,1\n", "must have one column lon"),
        ("device_id,lat,lon,lat\na,1,2,3\n", "must have one column lat"),
        ("device_id,lat,lon\na,60,25\n,60,25\n", "line 3: has no device_id"),
        ("device_id,lat,lon\na,91,25\n", "line 2: has no valid lat and lon"),
        ("device_id,lat,lon\na,0,0\n", "line 2: has no valid lat and lon"),
        ("device_id,lat,lon\na,60\n", "line 2: has no valid lat and lon"),
        ("device_id,lat,lon\na,nan,25\n", "line 2: has no valid lat and lon"),
        ("device_id,lat,lon\na,60,25\na,60,26\n", "line 3: lists a device again"),
        ('device_id,lat,lon\n"a,60,25\n', "is not a csv file in UTF-8"),
    ],
)
def test_a_registry_that_cannot_be_trusted_is_refused_by_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = registry(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_registry(path)
    assert str(caught.value) == f"{path}: {problem}"


def test_a_missing_file_and_one_in_another_encoding_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_registry(tmp_path / "none.csv")
    path = registry(tmp_path, "device_id,lat,lon\nü,60,25\n", encoding="latin-1")
    with pytest.raises(InputError, match="is not a csv file in UTF-8"):
        read_registry(path)
