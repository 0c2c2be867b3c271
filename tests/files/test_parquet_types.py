"""Parquet columns of types that no csv has: unused ones never matter, bytes and UUIDs are text."""

import base64
import uuid
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import anonymizer
from anonymizer.errors import InputError
from anonymizer.files.tables import read_table
from tests.cli.support import anonymizer as command

MADE_BY_DUCKDB = base64.b64decode(
    "UEFSMRUAFRwVLiwVBBUAFQYVBgAAKLUv/SAOcQAAAgAAAAQBAAAAAAEAAAAVABU8FTwsFQQVABUGFQYAACi1L/0gHq0A"
    "AHgCAAAABAEAAQAAAAAAAAABAB0wAhUAFTwVMCwVBBUAFQYVBgAAKLUv/SAefQAAOAIAAAAEAQACADA5MIARFQAVTBU+"
    "LBUEFQAVBhUGAAAotS/9ICa1AABgAgAAAAQBAEAAgAABAwAzCwCYtMAIFQAVJBU2LBUEFQAVBhUGAAAotS/9IBKRAAAC"
    "AAAABAECAAAAbjACAAAAbjEVABUsFT4sFQQVABUGFQYAACi1L/0gFrEAAAIAAAAEAAIAAAAEAgEAAABhAQAAAGEVABU4"
    "FUIsFQQVABUGFQYAACi1L/0gHMUAAIACAAAABAADAAEAAAAAAAAAAgC4xGlLERUAFTgVQiwVBBUAFQYVBgAAKLUv/SAc"
    "xQAAcAIAAAAEAAEAAAAAAAAAAwA4AZQAuUoRFQIZ3DUAGA1kdWNrZGJfc2NoZW1hFQ4AFQIlAhgDYWdlJSIAFQ4VGBUC"
    "GARoZWxkJSoAFQ4VGBUCGAhoZWxkX3RvbyUqABUOFSAVAhgDd2hvbOwAAAAVDCUCGAR3b3JkADUCGAFtFQIVAgA1BBgJ"
    "a2V5X3ZhbHVlFQQAFQwlABgDa2V5JQAAFQQlAhgFdmFsdWUlJAA1ABgBbBUCFQYANQQYBGxpc3QVAgAVBCUCGAdlbGVt"
    "ZW50JSQAFgQZHBmMJgAcFQIZFQAZGANhZ2UVDBYEFj4WUCYIPBgEAQAAABgEAAAAABYAKAQBAAAAGAQAAAAAEREAGRwV"
    "ABUAFQIAAAAmABwVDhkVABkYBGhlbGQVDBYEFl4WXiZYSRwVABUAFQIAAAAmABwVDhkVABkYCGhlbGRfdG9vFQwWBBZe"
    "FlImtgFJHBUAFQAVAgAAACYAHBUOGRUAGRgDd2hvFQwWBBZuFmAmiAI8GBAAAAAAAABAAIAAAAAAAAABGBAAAAAAAABA"
    "AIAAAAAAAAAAFgAoEAAAAAAAAEAAgAAAAAAAAAEYEAAAAAAAAEAAgAAAAAAAAAAREQAZHBUAFQAVAgAAACYAHBUMGRUA"
    "GRgEd29yZBUMFgQWRhZYJugCPBgCbjEYAm4wFgAoAm4xGAJuMBERABkcFQAVABUCAAAAJgAcFQwZFQAZOAFtCWtleV92"
    "YWx1ZQNrZXkVDBYEFk4WYCbAAzwYAWEYAWEWACgBYRgBYRERABkcFQAVABUCAAAAJgAcFQQZFQAZOAFtCWtleV92YWx1"
    "ZQV2YWx1ZRUMFgQWWhZkJqAEPBgIAQAAAAAAAAAYCAAAAAAAAAAAFgAoCAEAAAAAAAAAGAgAAAAAAAAAABERABkcFQAV"
    "ABUCAAAAJgAcFQQZFQAZOAFsBGxpc3QHZWxlbWVudBUMFgQWWhZkJoQFPBgIAQAAAAAAAAAYCAAAAAAAAAAAFgAoCAEA"
    "AAAAAAAAGAgAAAAAAAAAABERABkcFQAVABUCAAAAFrAFFgQmCBbgBQAZHBgcZHVja2RiLmludGVydmFsX2Jsb29tX2Zp"
    "bHRlchgNbm9ybWFsaXplZC12MQAYKER1Y2tEQiB2ZXJzaW9uIHYyLjAuMSAoYnVpbGQgOGQ3ODExNGU5MCkZjBwAABwA"
    "ABwAABwAABwAABwAABwAABwAAAB6AwAAUEFSMQ=="
)
"""Two rows: age, the intervals held and held_too, a UUID who, the bytes word, a map m, a list l."""
IDS = [f"00000000-0000-4000-8000-{i:012}" for i in range(2)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    path.write_bytes(MADE_BY_DUCKDB)
    return path


def test_columns_are_read_beside_intervals_maps_and_lists(path: Path) -> None:
    assert read_table(path, ["age"]).frame["age"].to_list() == [0, 1]
    assert read_table(path, ["who", "word"]).frame.rows() == [(IDS[0], "n0"), (IDS[1], "n1")]
    held = read_table(path, ["held", "held_too"]).frame
    assert held.n_unique("held") == held.n_unique("held_too") == 2
    assert {len(cell) for cell in held["held"]} == {24}  # twelve bytes


def test_a_profile_looks_at_what_can_be_read_and_names_the_rest(path: Path) -> None:
    found = anonymizer.profile(path)
    assert found.not_read == ("m", "l")
    assert [each.name for each in found.columns] == ["age", "held", "held_too", "who", "word"]
    assert found.columns[3].suggestion == "identifier"
    done = command("profile", path)
    assert done.returncode == 0
    assert done.stdout.count("not read") == 2
    assert not done.stderr
    done = command("profile", path, "--qi", "age,m")
    assert done.returncode == 2
    assert "column m: must hold text or numbers" in done.stderr


@pytest.mark.parametrize("damage", [-9, -40, -200])
def test_a_damaged_footer_is_told_in_one_line(path: Path, damage: int) -> None:
    path.write_bytes(MADE_BY_DUCKDB[:damage] + b"\xff" + MADE_BY_DUCKDB[damage + 1 :])
    try:
        read_table(path, ["age"])
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017  a damaged name may be of no importance


def persons() -> list[uuid.UUID]:
    return [uuid.UUID(int=i // 2) for i in range(40)]


@pytest.mark.parametrize("kind", ["polars objects", "pandas objects", "bytes", "text"])
def test_uuids_name_persons_in_any_type(kind: str) -> None:
    ages, ill = [20 + i % 4 for i in range(40)], ["a", "b"] * 20
    ids: list[object] = [*persons()]
    if kind == "pandas objects":
        frame = pd.DataFrame({"who": ids, "age": ages, "ill": ill})
    else:
        cells = {
            "polars objects": pl.Series("who", ids, dtype=pl.Object),
            "bytes": pl.Series("who", [each.bytes for each in persons()]),
            "text": pl.Series("who", [str(each) for each in persons()]),
        }[kind]
        frame = pl.DataFrame({"age": ages, "ill": ill}).with_columns(cells)
    made = anonymizer.anonymize(frame, k=5, d=1, qi=["age"], sa=["ill"], id="who", model="kd")
    assert made.report.n == 40
    assert made.report.k >= 5
