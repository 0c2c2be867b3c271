"""`anonymizer protect`: somebody's rides without where they begin and end."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from tests.cli.support import anonymizer

START = 1_780_000_000


def _rides(n: int) -> list[tuple[float, float, float]]:
    """Rides from one home to places 20 km around it, a minute between two points."""
    return [
        (START + 86_400 * ride + 60 * i, 48.05 + (-1) ** ride * i / 200, 11.0 + ride * i / 500)
        for ride in range(n)
        for i in range(41)
    ]


def _gpx(rows: list[tuple[float, float, float]]) -> str:
    points = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><time>{datetime.fromtimestamp(ts, UTC).isoformat()}</time>'
        "<extensions><hr>99</hr></extensions></trkpt>"
        for ts, lat, lon in rows
    )
    return f"<gpx><trk><name>Home to work</name><trkseg>{points}</trkseg></trk></gpx>"


def test_rides_lose_their_ends_names_and_readings_and_are_read_again(tmp_path: Path) -> None:
    rides = _rides(4)
    paths = [tmp_path / f"{i}.gpx" for i in range(4)]
    for i, path in enumerate(paths):
        path.write_text(_gpx(rides[41 * i : 41 * (i + 1)]))
    out, table = tmp_path / "public.gpx", tmp_path / "public.csv"
    done = anonymizer("protect", *paths, "--out", out, "--zone", "school=48.15,11.04")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{out}: ")
    assert done.stdout.endswith("hidden besides: school\n")
    assert "48.1" not in done.stdout
    assert "Home" not in out.read_text()
    assert "<hr>" not in out.read_text()
    done = anonymizer("protect", out, "--out", table)
    assert done.returncode == 0, done.stderr
    shown = pl.read_csv(table)
    assert 0 < len(shown) < len(rides)
    true = {(ts, round(lat, 6), round(lon, 6)) for ts, lat, lon in rides}
    got = {(ts, round(lat, 6), round(lon, 6)) for _, ts, lat, lon in shown.iter_rows()}
    assert got <= true
    lat, lon = shown["lat"].to_numpy(), shown["lon"].to_numpy()
    assert (abs(lat - 48.05) + abs(lon - 11.0)).min() > 0.004


def test_what_cannot_be_done_is_one_sentence(tmp_path: Path) -> None:
    ride = tmp_path / "a.gpx"
    ride.write_text(_gpx(_rides(1)))
    mistakes: list[tuple[list[str | Path], str]] = [
        (["--out", tmp_path / "a.fit"], "must end in .gpx or .csv"),
        (["--out", tmp_path / "b.gpx", "--zone", "home"], "NAME=LAT,LON"),
        (["--out", tmp_path / "b.gpx", "--zone", "home=99,11"], "in degrees"),
        (["--out", ride], "a.gpx"),
    ]
    for arguments, said in mistakes:
        done = anonymizer("protect", ride, *arguments)
        assert done.returncode == 2
        assert said in done.stderr
        assert "99" not in done.stderr.replace(str(tmp_path), "")


def test_nothing_is_written_where_nothing_would_be_left_or_a_column_is_missing(
    tmp_path: Path,
) -> None:
    ride, out = tmp_path / "ride.gpx", tmp_path / "public.csv"
    ride.write_text(_gpx(_rides(1)[:2]))
    done = anonymizer("protect", ride, "--out", out)
    assert done.returncode == 2
    assert "nothing would be left" in done.stderr
    done = anonymizer("protect", ride, "--out", out, "--columns", "lat=nobody")
    assert done.returncode == 2
    assert "no column nobody; there are" in done.stderr
    assert not out.exists()
