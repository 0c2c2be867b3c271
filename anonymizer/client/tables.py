"""Tables of results, with or without geometries, as data frames and as files for maps."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.client.network import Geometry
from anonymizer.errors import InputError
from anonymizer.extras import extra
from anonymizer.files.feature_collection import feature_collection

Column: TypeAlias = NDArray[Any] | Sequence[Any]
_WKB = {"Point": 1, "LineString": 2, "Polygon": 3, "MultiLineString": 5, "MultiPolygon": 6}
"""Numbers of the types of geometries in well-known binary."""
_PARTS = {"MultiLineString": "LineString", "MultiPolygon": "Polygon"}


class Table:
    """Columns of equal length, with or without a geometry for each row.

    Columns whose values are numpy datetimes are times in UTC.

    Parameters
    ----------
    columns
        By name.
    geometry
        GeoJSON geometry of each row, in WGS84 degrees; None: no geometries.
    """

    def __init__(
        self, columns: Mapping[str, Column], geometry: Sequence[Geometry] | None = None
    ) -> None:
        self._columns = dict(columns)
        self._geometry = geometry

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self._columns.values())))

    def __repr__(self) -> str:
        """Return the number of rows and the names of the columns."""
        return f"{type(self).__name__}({len(self):,} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        from anonymizer.notebooks import html_table  # noqa: PLC0415  only notebooks ask

        columns = [self._columns[name] for name in self.columns]
        return html_table(self.columns, zip(*columns, strict=True), n=len(self))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column."""
        column = self._columns[name]
        return column if isinstance(column, np.ndarray) else np.array(column, dtype=object)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without the geometry."""
        return list(self._columns)

    def to_pandas(self) -> Any:  # noqa: ANN401  pandas has no types
        """Return a `pandas.DataFrame`.

        Raises
        ------
        MissingExtraError
            If the extra `client` is not installed.
        """
        with extra("client"):
            import pandas as pd  # noqa: PLC0415  an extra

        frame = pd.DataFrame({name: _plain(column) for name, column in self._columns.items()})
        for name, column in self._columns.items():
            if _is_time(column):
                frame[name] = frame[name].dt.tz_localize("UTC")
        return frame

    def to_polars(self) -> Any:  # noqa: ANN401  polars is an extra
        """Return a `polars.DataFrame`.

        Raises
        ------
        MissingExtraError
            If the extra `tables` is not installed.
        """
        with extra("tables"):
            import polars as pl  # noqa: PLC0415  an extra

        return pl.DataFrame(
            [
                pl.Series(name, column).dt.replace_time_zone("UTC")
                if _is_time(column)
                else pl.Series(name, column, nan_to_null=True)
                for name, column in self._columns.items()
            ]
        )

    def to_geopandas(self) -> Any:  # noqa: ANN401  geopandas has no types
        """Return a `geopandas.GeoDataFrame` in WGS84.

        Raises
        ------
        InputError
            If the table has no geometries.
        MissingExtraError
            If the extra `client` is not installed.
        """
        with extra("client"):
            import geopandas as gpd  # noqa: PLC0415  an extra
            import shapely  # noqa: PLC0415  likewise

        shapes = shapely.from_wkb(_all_wkb(self._places()))
        return gpd.GeoDataFrame(self.to_pandas(), geometry=shapes, crs="EPSG:4326")

    def write(self, path: str | PathLike[str], *, once: bool = False) -> None:
        """Write a file for maps: `*.geojson`, `*.parquet` (GeoParquet) or `*.csv`.

        A csv has the middle of each geometry as `latitude` and `longitude`. Times are ISO 8601.
        A name without an ending is a folder of GeoParquet by the day of `time`, in UTC:
        `day=2026-11-26/part.parquet`. What is there of other days stays.

        Parameters
        ----------
        once
            Whether a file that is there and says something else is kept: two releases of the same
            hours can be played against each other.

        Raises
        ------
        InputError
            For another ending, for `*.geojson` if the table has no geometries, or if a file
            cannot be written, or is to be kept.
        MissingExtraError
            If the extra `tables` is not installed, for csv and parquet.
        """
        path = Path(path)
        by_day = not path.suffix and "time" in self._columns
        if by_day:
            contents = self._days(path)
        else:
            makers = {".geojson": self._geojson, ".parquet": self._parquet, ".csv": self._csv}
            if path.suffix not in makers:
                raise InputError(f"{path}: must end in {', '.join(makers)}")
            contents = {path: makers[path.suffix]()}
        for each, content in contents.items():
            if once and each.exists() and each.read_bytes() != content:
                raise InputError(
                    f"{each}: is there and says something else; two releases of the same hours"
                    " can be played against each other. Delete it if nobody has seen it"
                )
        from anonymizer.files.atomic_write import of_content, write_whole  # noqa: PLC0415  few write

        for each in contents if by_day else ():
            each.parent.mkdir(parents=True, exist_ok=True)
        write_whole({each: of_content(content) for each, content in contents.items()})

    def _days(self, folder: Path) -> dict[Path, bytes]:
        day = self["time"].astype("datetime64[D]")
        return {
            folder / f"day={at}" / "part.parquet": self._rows(np.flatnonzero(day == at))._parquet()  # noqa: SLF001  a table like this one
            for at in np.unique(day)
        }

    def _rows(self, rows: NDArray[np.int64]) -> "Table":
        def taken(column: Column) -> Column:
            if isinstance(column, np.ndarray):
                return column[rows]
            return [column[row] for row in rows.tolist()]

        columns = {name: taken(column) for name, column in self._columns.items()}
        return Table(columns, self._geometry and list(taken(self._geometry)))

    def _places(self) -> Sequence[Geometry]:
        if self._geometry is None:
            raise InputError("the table has no geometries: the network of its regions is not known")
        return self._geometry

    def _geojson(self) -> bytes:
        return feature_collection(self._columns, self._places())

    def _parquet(self) -> bytes:
        frame = self.to_polars()
        out = BytesIO()
        if self._geometry is None:
            frame.write_parquet(out)
            return out.getvalue()
        import polars as pl  # noqa: PLC0415  to_polars has checked that it is there

        column = {
            "encoding": "WKB",
            "geometry_types": sorted({each["type"] for each in self._geometry}),
        }
        geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
        shapes = pl.Series("geometry", _all_wkb(self._geometry), dtype=pl.Binary)
        frame.with_columns(shapes).write_parquet(out, metadata={"geo": json.dumps(geo)})
        return out.getvalue()

    def _csv(self) -> bytes:
        frame = self.to_polars()
        import polars as pl  # noqa: PLC0415  to_polars has checked that it is there

        lists = [name for name, kind in frame.schema.items() if kind == pl.List]
        frame = frame.with_columns(
            pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists
        )
        if self._geometry is not None:
            places = np.array([middle(each) for each in self._geometry]).reshape(-1, 2)
            frame = frame.with_columns(
                pl.Series("latitude", places[:, 1]), pl.Series("longitude", places[:, 0])
            )
        text: str = frame.write_csv(datetime_format="%Y-%m-%dT%H:%M:%S%.3fZ")
        return text.encode()


def times(seconds: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Return unix seconds as datetimes, `NaT` where they are infinite."""
    known = np.isfinite(seconds)
    whole = np.round(np.where(known, seconds, 0.0) * 1000).astype("datetime64[ms]")
    found: NDArray[np.datetime64] = np.where(known, whole, np.datetime64("NaT", "ms"))
    return found


def _is_time(column: Column) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "M"


def _plain(column: Column) -> Column:
    return column if isinstance(column, np.ndarray) else list(column)


def _wkb(geometry: Geometry) -> bytes:
    """Return a geometry as little-endian well-known binary."""
    kind, places = geometry["type"], geometry["coordinates"]
    head = struct.pack("<BI", 1, _WKB[kind])
    if kind == "Point":
        return head + struct.pack("<dd", *places[:2])
    if kind == "LineString":
        return head + _wkb_points(places)
    head += struct.pack("<I", len(places))
    if kind == "Polygon":
        return head + b"".join(map(_wkb_points, places))
    return head + b"".join(_wkb({"type": _PARTS[kind], "coordinates": each}) for each in places)


def _all_wkb(geometries: Sequence[Geometry]) -> list[bytes]:
    """Return each geometry as well-known binary; those that many rows share are encoded once."""
    distinct = {id(each): each for each in geometries}
    encoded = {key: _wkb(each) for key, each in distinct.items()}
    return [encoded[id(each)] for each in geometries]


def _wkb_points(places: Sequence[Sequence[float]]) -> bytes:
    points = np.array([place[:2] for place in places], "<f8")
    return struct.pack("<I", len(points)) + points.tobytes()


def middle(geometry: Geometry) -> tuple[float, float]:
    """Return longitude and latitude of the middle of the box around a geometry."""
    points = np.array(list(_points(geometry["coordinates"])))
    lon, lat = (points.min(axis=0) + points.max(axis=0)) / 2
    return float(lon), float(lat)


def _points(places: Any) -> Iterator[Sequence[float]]:  # noqa: ANN401  nested lists of any depth
    if isinstance(places[0], float | int):
        yield places[:2]
        return
    for each in places:
        yield from _points(each)
