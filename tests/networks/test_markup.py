"""No tag, comment or declaration of a road file is endless."""

import gzip
from pathlib import Path
from xml.parsers import expat

import pytest

from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.networks.markup import MOST_BYTES, parse

ROOTS = {"osm": "osm", "graphml": "graphml", "net.xml": "net"}
LONG = "x > " * (MOST_BYTES // 3)
PIECES = {
    "an attribute": ("<# a='", LONG, "'>"),
    "a tag's name": ("<#><a", "x" * (MOST_BYTES + MOST_BYTES // 3), "/>"),
    "a comment": ("<#><!--", LONG, "-->"),
    "an instruction": ("<#><?a ", LONG, "?>"),
    "a comment before all": ("<!--", LONG, "--><#>"),
    "an entity": ("<!DOCTYPE # [<!ENTITY a '", LONG, "'>]><#>"),
}


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("form", ROOTS)
@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_of_markup_that_does_not_end_is_refused(
    piece: str, form: str, packed: str, tmp_path: Path
) -> None:
    text = "".join(PIECES[piece]).replace("#", ROOTS[form]) + f"</{ROOTS[form]}>"
    path = tmp_path / f"roads.{form}{packed}"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(InputError, match=r"has more than 1,048,576 bytes: see line 1"):
        load_network(str(path))


def test_text_and_pieces_that_end_have_any_length(tmp_path: Path) -> None:
    path = tmp_path / "long.xml"
    path.write_text(
        "<a>" + "text " * MOST_BYTES + f"<b c='{'x' * (MOST_BYTES // 2)}'/>" * 4 + "</a>"
    )
    seen = list[str]()
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, _: seen.append(name)
    with path.open("rb") as file:
        parse(file, parser)
    assert seen == ["a", "b", "b", "b", "b"]
