"""Figures of the house: files, lines, import closures, options, settings, metrics and pages.

`python -m tools.figures` prints them as a table, to be compared between two versions. An import
closure is what a new process has loaded of this package. What a tick enters are the files of which
a function runs while a `PositionFlow` makes a release of two positions; compiled kernels call each
other unseen, so their files are not among them.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup

from anonymizer.cli.main import app
from anonymizer.settings.json_schema import json_schema, tables
from tools.manual import GENERATED, metrics_page

ROOT = Path(__file__).parents[1]
OWN = ROOT / "anonymizer"
_CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:\[]", re.MULTILINE)
"""A class whose name is public."""
_LOADED = {
    "client": "from anonymizer.client import listen, read",
    "tables": "import anonymizer.api.anonymizing",
    "settings": "from anonymizer.settings import Settings",
    "MQTT": "from anonymizer.transport import MqttLink",
    "positions": "import anonymizer.pipeline.positions.tick.flow",
}
"""What a reader wants, and the statement that loads it."""
_TELL_LOADED = """
import json, sys
print(json.dumps([getattr(m, "__file__", None) for m in list(sys.modules.values())]))
"""
_TELL_ENTERED = """
import json, sys
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.flow import PositionFlow
from anonymizer.pipeline.positions.tick.inbox import Inbox
from anonymizer.settings import Settings, zones_of

network, ledger = load_network("grid:5x5"), Ledger()
settings = Settings.model_validate({"adka": {"density_steps": [], "k_values": [2]}})
zoned = with_zones(network, zones_of(settings.zones))
flow = PositionFlow(settings, zoned, ledger, secret=b"of this figure", monotonic=lambda: 0.0)
entered = {}

def note(frame, event, _):
    entered.setdefault(frame.f_code.co_filename)

for second in range(2):
    inbox = Inbox(9, ledger)
    told = json.dumps({"lat": network.lat[12], "lon": network.lon[12]}).encode()
    arrived = [Delivery(f"positions/{name}", told, 0, False) for name in "ab"]
    sys.setprofile(note if second else None)
    inbox.put(arrived, at_s=0.0)
    output = flow.tick(inbox.take(), now=1_800_000_000.0 + second)
    flow.settle(output, [True] * len(output.messages), seconds=0.0)
    sys.setprofile(None)
print(json.dumps(list(entered)))
"""


def figures() -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each figure."""
    for package in ("anonymizer", "simulator", "experiments", "tests", "tools", "benchmarks"):
        yield package, _size((ROOT / package).rglob("*.py"))
    for wanted in _LOADED:
        yield f"import closure: {wanted}", _size(loaded(wanted))
    yield "entered by one tick of positions", _size(files_entered())
    yield "names of two public classes", str(len(names_of_two_classes()))
    yield "options of the command line", str(_n_options(app))
    yield "keys of the settings", str(n_keys(json_schema()))
    families = metrics_page().partition("## Outcomes and reasons")[0].count("\n| `anonymizer_")
    yield "families of metrics", str(families)
    yield "pages", f"{len(pages())} files, {n_bytes_of_pages() / 1e3:.0f} kB"
    yield "notes", f"{n_bytes_of_notes() / 1e3:.0f} kB"


def pages() -> list[Path]:
    """Return the pages for readers that somebody writes.

    Those that are generated grow by code, and the changelog by a line for each change.
    """
    written = (page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED)
    return [*written, *(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md")]


def n_bytes_of_pages() -> int:
    """Return the size of all pages."""
    return sum(page.stat().st_size for page in pages())


def n_bytes_of_notes() -> int:
    """Return the size of all notes, pictures included."""
    return sum(note.stat().st_size for note in (ROOT / "notes").rglob("*") if note.is_file())


def files_entered() -> list[Path]:
    """Return the files of which a function runs while a tick makes a release, in this order."""
    return _told(_TELL_ENTERED)


def names_of_two_classes() -> list[str]:
    """Return the names that two public classes of the package share."""
    n_of = Counter(name for path in OWN.rglob("*.py") for name in _CLASS.findall(path.read_text()))
    return sorted(name for name, n in n_of.items() if n > 1)


def n_lines_loaded(wanted: str) -> int:
    """Return the lines of this package that a new process loads for what a reader wants."""
    return _n_lines(loaded(wanted))


def loaded(wanted: str) -> list[Path]:
    """Return the files of this package that a new process loads for what a reader wants."""
    return sorted(_told(f"{_LOADED[wanted]}\n{_TELL_LOADED}"))


def _size(files: Iterable[Path]) -> str:
    found = list(files)
    return f"{len(found)} files, {_n_lines(found):,} lines"


def _n_lines(files: Iterable[Path]) -> int:
    return sum(len(file.read_bytes().splitlines()) for file in files)


def _told(program: str) -> list[Path]:
    """Return the files of this package that a program names in a process of its own, in order."""
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603  ours
    named = dict.fromkeys(Path(name).resolve() for name in json.loads(run.stdout) if name)
    return [file for file in named if file.is_relative_to(OWN)]


def _n_options(commands: typer.Typer) -> int:
    """Return the number of options and arguments of all commands."""
    left = [typer.main.get_command(commands)]
    n_options = 0
    while left:
        command = left.pop()
        n_options += sum(1 for each in command.params if each.name != "help")
        if isinstance(command, TyperGroup):
            left += command.commands.values()
    return n_options


def n_keys(schema: Mapping[str, Any], table: Mapping[str, Any] | None = None) -> int:
    """Return the number of keys in a table and those in it that are no tables themselves."""
    inner = tables(schema, table)
    own = (schema if table is None else table)["properties"].keys() - inner.keys()
    return len(own) + sum(n_keys(schema, deeper) for deeper, _ in inner.values())


if __name__ == "__main__":
    for name, value in figures():
        print(f"{name:34}{value}")  # noqa: T201  what it is for
