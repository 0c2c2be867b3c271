"""Files and messages nested deeper than the interpreter's stack are refused as any other."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from anonymizer.client.cells import _read_zones
from anonymizer.client.messages import Collector
from anonymizer.client.network import _from_geojson, from_parts
from anonymizer.errors import InputError
from anonymizer.files.release_lines import read_release
from anonymizer.networks import load_network

DEEP = 100_000
OPEN, CLOSED = '{"a":' * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP
"""Of an object whose fields a reader skips."""
LISTS = "[" * DEEP
NETWORK = load_network("grid:2x2")


def _zones(path: Path) -> object:
    return _read_zones(path, "name")


READERS: dict[str, Callable[[Path], object]] = {
    "release": partial(read_release, network=NETWORK),
    "network": _from_geojson,
    "zones": _zones,
    "parts": lambda path: from_parts("v", [path.read_bytes()]),
}


@pytest.mark.parametrize("content", [OPEN, CLOSED, LISTS], ids=["open", "closed", "lists"])
@pytest.mark.parametrize("reader", READERS)
def test_a_deep_file_is_refused(reader: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text(content)
    with pytest.raises(InputError):
        READERS[reader](path)


@pytest.mark.parametrize("content", [OPEN, CLOSED, LISTS], ids=["open", "closed", "lists"])
def test_a_deep_message_is_left_out(content: str) -> None:
    collector = Collector()
    assert not collector.take(content.encode())
    assert collector.left_out.total() == 1
