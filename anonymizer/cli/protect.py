"""Command `anonymizer protect`: somebody's own rides, without where they begin and end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anonymizer.cli.terminal import printable
from anonymizer.errors import InputError, SettingsError
from anonymizer.extras import require

if TYPE_CHECKING:
    import polars as pl


def protect(
    rides: Annotated[
        list[Path],
        typer.Argument(
            help="One person's rides: GPX, FIT, csv and what else `anonymizer attack` reads."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="FILE.gpx or FILE.csv to write.")],
    zone: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LAT,LON",
            help="A further place to hide; may be repeated. Only its name is ever printed.",
        ),
    ] = None,
    cell: Annotated[
        float, typer.Option(min=200, help="Metres of the side of a cell that is hidden.")
    ] = 1000.0,
    margin: Annotated[
        float, typer.Option(min=0, help="Metres around a cell that are hidden, too.")
    ] = 400.0,
    columns: Annotated[
        str | None, typer.Option(metavar="NAMES", help="As of `anonymizer attack`.")
    ] = None,
) -> None:
    """Hide where rides begin and end so that averaging over many of them does not find it.

    Protect all rides that will be public together: the cells of all of them are hidden from each.
    The file has times and places alone, and a new track where something is hidden.

    [bold]Example[/bold]

        anonymizer protect rides/*.gpx --out public.gpx --zone school=48.1,11.5
    """
    require("tables")
    import numpy as np
    import polars as pl

    from anonymizer.algorithms.positions.protection.hidden_cells import shown_rows
    from anonymizer.audit.foreign.forms.form import check_stated, points
    from anonymizer.audit.foreign.registry import read_files
    from anonymizer.cli.attack import stated_columns
    from anonymizer.files.atomic_write import check_distinct, of_content, write_whole

    if out.suffix.lower() not in {".gpx", ".csv"}:
        raise InputError(f"{out}: must end in .gpx or .csv")
    check_distinct([out], read=rides)
    zones = dict(map(_zone, zone or ()))
    frame = read_files(rides).with_columns(pl.lit("me").alias("_who"))
    stated = {**stated_columns(columns), "id": "_who"}
    check_stated(rides[0], frame, stated)
    trace = points(rides[0], frame, stated, "rides").trace
    places = np.array(list(zones.values()), np.float64).reshape(-1, 2)
    shown = shown_rows(trace, (places[:, 0], places[:, 1]), cell_m=cell, margin_m=margin)
    if not shown.any():
        raise InputError(
            f"{rides[0]}: nothing would be left: each position is in a cell where a ride begins or "
            "ends. A smaller --cell or --margin hides less"
        )
    piece = np.cumsum(~shown)[shown]
    track = np.unique(piece, return_inverse=True)[1] + 1
    public = pl.DataFrame(
        {
            "device_id": [f"ride-{each}" for each in track.tolist()],
            "ts": trace.ts[shown],
            "lat": trace.lat[shown],
            "lon": trace.lon[shown],
        }
    )
    text = public.write_csv() if out.suffix.lower() == ".csv" else _gpx(public)
    write_whole({out: of_content(text)})
    hidden = trace.n_rows - len(public)
    said = (
        f"{out}: {len(public):,} of {trace.n_rows:,} positions in {track.max(initial=0):,} pieces"
    )
    said += f"; {hidden:,} in cells where rides begin or end are left out"
    said += f"; hidden besides: {', '.join(zones)}" if zones else ""
    typer.echo(printable(said))


def _zone(text: str) -> tuple[str, tuple[float, float]]:
    name, _, place = text.partition("=")
    try:
        lat, lon = (float(each) for each in place.split(","))
    except ValueError:
        raise SettingsError("--zone: state it as NAME=LAT,LON") from None
    if not (name and abs(lat) <= 90 and abs(lon) <= 180):
        raise SettingsError("--zone: state it as NAME=LAT,LON, in degrees")
    return name, (lat, lon)


def _gpx(frame: "pl.DataFrame") -> str:
    from datetime import UTC, datetime

    tracks = []
    for (name,), part in frame.group_by(["device_id"], maintain_order=True):
        points = "".join(
            f'<trkpt lat="{lat:.7f}" lon="{lon:.7f}"><time>'
            f"{datetime.fromtimestamp(ts, UTC).isoformat().replace('+00:00', 'Z')}</time></trkpt>\n"
            for ts, lat, lon in part.select("ts", "lat", "lon").iter_rows()
        )
        track = f"<trk><name>{name}</name><trkseg>\n{points}</trkseg></trk>\n"
        tracks.append(track)
    space = "http://www.topografix.com/GPX/1/1"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<gpx version="1.1" creator="anonymizer" xmlns="{space}">\n{"".join(tracks)}</gpx>\n'
    )
