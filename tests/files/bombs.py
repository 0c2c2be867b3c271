"""Small files that become large when they are read, by format, generated from numbers.

`python -m tests.files.bombs make FORMAT FOLDER FIRST LAST` writes the bombs of these numbers,
`read` reads one after the other, and prints what became of each: read, or refused by a sentence;
and last the most memory that it had, in KiB.
"""

import bz2
import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from anonymizer.errors import InputError
from anonymizer.files.device_registry import read_registry
from anonymizer.files.hierarchies import read_hierarchies, read_hierarchy
from anonymizer.files.release_lines import read_release
from anonymizer.files.tables import read_table
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network

T = TypeVar("T")
MB = 1_000_000
GRID = load_network("grid:5x5")
_LAUGHS = "".join(
    f'<!ENTITY l{i} "{"".join(f"&l{i - 1};" for _ in range(10))}">' for i in range(1, 10)
)
_DOCTYPE = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "laugh">{_LAUGHS}]>'


def _chosen(rng: random.Random, made: Sequence[Callable[[], T]]) -> T:
    return rng.choice(made)()


def _many(rng: random.Random, piece: str, n_bytes: int) -> str:
    return piece * (int(n_bytes * rng.uniform(0.3, 1)) // len(piece))


def _csv(rng: random.Random, n_bytes: int) -> str:
    header = "device_id,ts,lat,lon\n"
    return _chosen(
        rng,
        [
            lambda: header + _many(rng, "a,1,2,3\n", n_bytes),
            lambda: header + _many(rng, "\n", n_bytes),
            lambda: header + _many(rng, ",,,\n", n_bytes),
            lambda: (
                ",".join(f"c{i}" for i in range(n_bytes // 20)) + "\n" + _many(rng, ",", n_bytes)
            ),
            lambda: header + '"' + _many(rng, "x", n_bytes),
            lambda: header + _many(rng, '"",1,1,1\n', n_bytes),
            lambda: (
                header + "x" * (n_bytes // 2) + ",1,2,3\n" + _many(rng, "a,1,2,3\n", n_bytes // 2)
            ),
            lambda: header + _many(rng, f"{'9' * 300},{'9' * 300},1,1\n", n_bytes),
            lambda: _many(rng, ";", n_bytes),
            lambda: _many(rng, "a", n_bytes),
            lambda: "a\n" + _many(rng, "1\n", n_bytes),
        ],
    )


def _frame(rng: random.Random) -> pl.DataFrame:
    text = "x" * rng.choice([1, 100, 10_000, 1_000_000])
    # To write more than that would take minutes.
    n_rows = min(rng.choice([500, 5_000, 50_000]), 500 * MB // len(text))
    same = pl.repeat(text, n_rows)
    columns: dict[str, pl.Expr] = _chosen(
        rng,
        [
            lambda: {"device_id": same, "ts": pl.repeat(1.0, n_rows)},
            lambda: dict.fromkeys(("device_id", "u"), same.cast(pl.Categorical)),
            lambda: dict.fromkeys(("device_id", "v"), same.cast(pl.Enum([text]))),
            lambda: {f"c{i}": pl.repeat(1.0, n_rows) for i in range(60)},
            lambda: {f"c{i}": pl.repeat(None, n_rows) for i in range(60)},
            lambda: {"a": pl.repeat(True, n_rows), "b": pl.repeat(1, n_rows, dtype=pl.Int8)},
            lambda: {"a": pl.concat_list(same, same), "b": same},
            lambda: {"a": pl.struct(a=same, b=same)},
        ],
    )
    numbers = dict.fromkeys(("ts", "lat", "lon", "length_m"), pl.repeat(1.0, n_rows))
    texts = dict.fromkeys(("device_id", "node_id", "u", "v"), same)
    columns = {**numbers, **texts, **columns}
    return pl.select(*(each.alias(name) for name, each in columns.items()))


def _parquet(rng: random.Random, path: Path) -> None:
    part = _frame(rng)
    times = rng.choice([1, 8, 100]) if part.estimated_size() < MB else rng.choice([1, 4])
    pl.concat([part.lazy()] * times).sink_parquet(path, compression="zstd")


def _xml(rng: random.Random, n_bytes: int, root: str, pieces: list[str]) -> str:
    kind = rng.randrange(5)
    if kind == 0:
        return f"{_DOCTYPE}<{root}><node id='&l9;'/>&l9;</{root}>"
    if kind == 1:
        return f"<{root}>" + "<a>" * (n_bytes // 3)
    if kind == 2:
        return f"<{root} a='{'x' * n_bytes}'></{root}>"
    piece = rng.choice(pieces)
    body = "".join(piece.replace("#", str(i)) for i in range(n_bytes // (len(piece) + 6)))
    return f"<{root}>{body}</{root}>"


_GRAPHML = [
    '<graph edgedefault="directed"><node id="#"/></graph>',
    '<node id="#"/>',
    '<node id="#"><data key="x">1</data></node>',
    '<edge source="#" target="#"/>',
]
_OSM = [
    '<node id="#" lat="1" lon="1"/>',
    '<node id="#" lat="1" lon="1"><tag k="highway" v="x"/></node>',
    '<way id="#"><nd ref="1"/><nd ref="2"/><tag k="highway" v="residential"/></way>',
    '<relation id="#"><member type="way" ref="1" role=""/></relation>',
]
_SUMO = [
    '<edge id="#" from="a" to="b"><lane id="#_0" speed="1" length="1" shape="0,0 1,1"/></edge>',
    '<junction id="#" type="priority" x="0" y="0" incLanes="" intLanes="" shape="0,0"/>',
    '<location netOffset="0,0" convBoundary="0,0,1,1" projParameter="!"/>',
]


def _json(rng: random.Random, n_bytes: int) -> str:
    n = int(n_bytes * rng.uniform(0.3, 1))
    return _chosen(
        rng,
        [
            lambda: "[" * n,
            lambda: '{"a":' * (n // 5),
            lambda: "[" + "[]," * (n // 3) + "[]]",
            lambda: '{"a":[' + '"x",' * (n // 4) + '"x"]}',
            lambda: json.dumps({"a": {str(i): ["x"] for i in range(n // 14)}}),
            lambda: '"' + "x" * n + '"',
            lambda: json.dumps({"pseudonym": "p", "time": 1, "region": [0] * (n // 3), "k": 2}),
            lambda: '{"pseudonym":"p","time":1,"region":[],"k":2}\n' * (n // 45),
        ],
    )


def _packed(path: Path, text: str) -> Path:
    data = text.encode()
    if path.name.endswith(".gz"):
        data = gzip.compress(data, 1)
    elif path.name.endswith(".bz2"):
        data = bz2.compress(data, 1)
    path.write_bytes(data)
    return path


def _text_bomb(ending: str, made: Callable[[random.Random], str]) -> Callable[..., Path]:
    def bomb(rng: random.Random, folder: Path) -> Path:
        return _packed(folder / f"bomb{ending}", made(rng))

    return bomb


def _parquet_bomb(rng: random.Random, folder: Path) -> Path:
    _parquet(rng, folder / "bomb.parquet")
    return folder / "bomb.parquet"


def _tables_bomb(rng: random.Random, folder: Path) -> Path:
    _parquet(rng, folder / "bomb_edges.parquet")
    _parquet(rng, folder / "bomb_nodes.parquet")
    return folder / "bomb"


def _geojson_bomb(rng: random.Random, folder: Path) -> Path:
    nested = '{"type":"FeatureCollection","features":['
    square = '{"type":"Polygon","coordinates":[[[0,0],[0,1],[1,1],[0,0]]]}'
    path = folder / "bomb.geojson"
    path.write_text(
        _chosen(
            rng,
            [
                lambda: nested * rng.choice([300, 900, 100_000]),
                lambda: nested * 300 + "]}" * 300,
                lambda: nested * 450 + "]}" * 450,
                lambda: (
                    nested + ",".join([f'{{"type":"Feature","geometry":{square}}}'] * 50_000) + "]}"
                ),
                lambda: _json(rng, 10 * MB),
            ],
        )
    )
    return path


def _h3(path: Path) -> object:
    return load_network(f"h3:6:{path}")


def _zeros_bomb(ending: str) -> Callable[..., Path]:
    def bomb(rng: random.Random, folder: Path) -> Path:
        part = gzip.compress(rng.choice([bytes(1 << 24), b"a\n" * (1 << 23), b"<a>" * (1 << 22)]))
        path = folder / f"bomb{ending}"
        path.write_bytes(part * rng.choice([8, 40, 200]))
        return path

    return bomb


FORMATS: dict[str, tuple[Callable[..., Path], tuple[Callable[[Path], object], ...]]] = {
    "csv": (_text_bomb(".csv", lambda r: _csv(r, 30 * MB)), (read_table, read_trace)),
    "csv.gz": (_text_bomb(".csv.gz", lambda r: _csv(r, 60 * MB)), (read_table, read_trace)),
    "zeros": (_zeros_bomb(".csv.gz"), (read_table, read_trace)),
    "parquet": (_parquet_bomb, (read_table, read_trace)),
    "tables": (_tables_bomb, (load_network,)),
    "graphml": (
        _text_bomb(".graphml", lambda r: _xml(r, 10 * MB, "graphml", _GRAPHML)),
        (load_network,),
    ),
    "osm": (_text_bomb(".osm.gz", lambda r: _xml(r, 30 * MB, "osm", _OSM)), (load_network,)),
    "osm.bz2": (_text_bomb(".osm.bz2", lambda r: _xml(r, 20 * MB, "osm", _OSM)), (load_network,)),
    "sumo": (_text_bomb(".net.xml.gz", lambda r: _xml(r, 20 * MB, "net", _SUMO)), (load_network,)),
    "json": (_text_bomb(".json", lambda r: _json(r, 20 * MB)), (read_hierarchies,)),
    "geojson": (_geojson_bomb, (_h3,)),
    "hierarchy": (_text_bomb(".csv", lambda r: _csv(r, 20 * MB)), (read_hierarchy,)),
    "registry": (_text_bomb(".csv", lambda r: _csv(r, 20 * MB)), (read_registry,)),
    "lines": (
        _text_bomb(".jsonl", lambda r: _json(r, 20 * MB)),
        (partial(read_release, network=GRID),),
    ),
}
"""How the bombs of each format are made, and what reads it."""


def make_bombs(form: str, folder: Path, numbers: range) -> Iterator[str]:
    """Write the bombs of these numbers, each into a folder of its own; yield nothing."""
    make, _ = FORMATS[form]
    for number in numbers:
        (folder / str(number)).mkdir()
        make(random.Random(f"{form} {number}"), folder / str(number))  # noqa: S311
    yield from ()


def read_bombs(form: str, folder: Path, numbers: range) -> Iterator[str]:
    _, readers = FORMATS[form]
    for number in numbers:
        path = min((folder / str(number)).iterdir(), key=lambda each: each.name)
        if form == "tables":
            path = path.with_name("bomb")
        for read in readers:
            began = time.process_time()
            try:
                read(path)
                said = "read"
            except InputError as error:
                said = f"refused: {str(error)[:100]}"
            seconds = time.process_time() - began
            yield f"{form} {number} {getattr(read, '__name__', '')} {seconds:.1f} s {said}"


def most_memory_kib() -> int:
    """Return the most memory that this program had; getrusage counts what started it, too."""
    [line] = [
        each for each in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in each
    ]
    return int(line.split()[1])


if __name__ == "__main__":
    does = {"make": make_bombs, "read": read_bombs}[sys.argv[1]]
    for line in does(sys.argv[2], Path(sys.argv[3]), range(int(sys.argv[4]), int(sys.argv[5]))):
        print(line.encode("ascii", "replace").decode(), flush=True)  # noqa: T201
    if does is read_bombs:
        print(most_memory_kib())  # noqa: T201
