"""Traces of SUMO as its option `--fcd-output` writes them: where each vehicle is at each step.

References
----------
.. [1] SUMO documentation, "FCDOutput": `<timestep time>` with `<vehicle id x y angle speed>`.
"""

import gzip
import zlib
from pathlib import Path
from xml.parsers import expat

import numpy as np
import polars as pl

from anonymizer.domain.trace import Trace
from anonymizer.errors import InputError
from anonymizer.files.traces import trace_of
from anonymizer.networks.sumo import lat_lon_of
from anonymizer.unfolding import UnfoldingError, check_unfolding

ENDINGS = (".xml", ".xml.gz")
_COLUMN_OF = {
    "id": "device_id", "x": "x", "y": "y", "angle": "heading_deg", "speed": "speed_mps",
}  # fmt: skip
"""Attributes of a vehicle that are read; SUMO's angles are clockwise from north, as ours."""


def is_fcd(path: Path) -> bool:
    """Return whether a trace is SUMO's, by its name."""
    return path.name.lower().endswith(ENDINGS)


def read_fcd(path: Path, network: Path | None) -> Trace:
    """Read the vehicles of an FCD file; persons and containers are left out.

    Parameters
    ----------
    path
        Ends in .xml or .xml.gz.
    network
        The `.net.xml` in whose plane positions are. None: they are degrees, as with
        `--fcd-output.geo`.

    Raises
    ------
    InputError
        If a file cannot be read, or positions are no degrees and there is no network.

    Notes
    -----
    `ts` are seconds of the simulation. In memory; O(n log n).
    """
    columns = _columns(path)
    try:
        frame = pl.DataFrame(
            {name: pl.Series(values, dtype=pl.String) for name, values in columns.items()}
        ).with_columns(pl.col("ts", "x", "y", "heading_deg", "speed_mps").cast(pl.Float64))
    except pl.exceptions.PolarsError:  # its message may quote a row
        raise InputError(f"{path}: an attribute that must be a number is none") from None
    xy = frame.select(pl.col("x", "y").fill_null(np.nan)).to_numpy()
    if network is not None:
        lat, lon = lat_lon_of(network, xy)
    else:
        lon, lat = xy.T
        if (np.abs(lon) > 180).any() or (np.abs(lat) > 90).any():
            raise InputError(
                f"{path}: positions are not degrees: give the network of the simulation, or write "
                "the trace with --fcd-output.geo"
            )
    return trace_of(frame.with_columns(lat=lat, lon=lon), path=path)


def _columns(path: Path) -> dict[str, list[str | None]]:
    """Return the texts of all vehicles, by column; None where an attribute is missing."""
    columns: dict[str, list[str | None]] = {name: [] for name in ("ts", *_COLUMN_OF.values())}
    now: str | None = None

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal now
        if tag == "timestep":
            now = attributes.get("time")
        elif tag == "vehicle":
            columns["ts"].append(now)
            for attribute, name in _COLUMN_OF.items():
                columns[name].append(attributes.get(attribute))

    def refuse(*_: object) -> None:
        raise InputError(f"{path}: declares entities, which no trace of SUMO does")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    try:
        check_unfolding(path)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            parser.ParseFile(file)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnfoldingError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, EOFError, zlib.error):
        raise InputError(f"{path}: cannot be read: damaged") from None
    except expat.ExpatError:
        raise InputError(f"{path}: is not well-formed XML") from None
    return columns
