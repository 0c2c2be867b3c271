"""Module map: the rooms of the code, their modules, and what each room may import.

The texts are the first docstring lines of the source files; what a room may import is read from
the contracts in `pyproject.toml` that import-linter checks. Nothing is imported.

`make docs` puts it into the site; `python -m tools.module_map` prints it.
"""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_HEAD = """\
# Modules

A *room* is a package; its text and those of its modules are
the first lines of their docstrings. What a room may import is read from the contracts in
`pyproject.toml`, which `make check` enforces; packages of `anonymizer` are named there without the
`anonymizer.` in front. [The architecture](architecture.md) explains the layers and follows a table
and a position through the rooms."""


@dataclass(frozen=True, slots=True)
class Room:
    """A package: its dotted name, its text, and the text of each of its modules by name."""

    name: str
    text: str
    modules: dict[str, str]


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of the code, highest first; packages in one layer do not import each other."""

    packages: Sequence[Sequence[str]]

    def below(self, room: str) -> list[str] | None:
        """Return the packages that a room may import besides its own; None: not in any layer."""
        level = next(
            (i for i, layer in enumerate(self.packages) if _top_of(room, layer) is not None), None
        )
        if level is None:
            return None
        return [package for layer in self.packages[level + 1 :] for package in layer]

    def place_of(self, room: str) -> tuple[int, str]:
        """Return a sort key: the root of the layers, higher layers, lower ones, other rooms."""
        for level, layer in enumerate(self.packages):
            if _top_of(room, layer) is not None:
                return level, room
            if any(package.startswith(f"{room}.") for package in layer):
                return -1, room
        return len(self.packages), room


@dataclass(frozen=True, slots=True)
class Prohibition:
    """A contract that forbids some packages to import others."""

    name: str
    sources: Sequence[str]
    forbidden: Sequence[str]

    def binds(self, room: str) -> bool:
        """Return whether the contract is about this room, or about a package that it is in."""
        return _top_of(room, self.sources) is not None


def modules_page() -> str:
    """Return the module map, as Markdown."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    linter = config["tool"]["importlinter"]
    layers, prohibitions = _contracts(linter["contracts"])
    roots = linter["root_packages"]
    found = [room for package in roots for room in _rooms(ROOT / package)]
    lines = [_HEAD, "", *_layers_section(layers), "", *_rules_section(prohibitions)]
    particular = [each for each in prohibitions if not set(roots) <= set(each.sources)]
    for room in sorted(found, key=lambda room: layers.place_of(room.name)):
        lines += _section(room, layers, particular)
    return "\n".join(lines) + "\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the map into the site: a hook of mkdocs."""
    files.append(File.generated(config, "modules.md", content=modules_page()))
    return files


def _contracts(contracts: Sequence[dict[str, object]]) -> tuple[Layers, list[Prohibition]]:
    layers: list[list[str]] = []
    prohibitions = []
    for contract in contracts:
        if contract["type"] == "layers":
            layers = [
                [name.strip() for name in text.split("|")] for text in _texts(contract["layers"])
            ]
        else:
            prohibitions.append(
                Prohibition(
                    name=str(contract["name"]),
                    sources=_texts(contract["source_modules"]),
                    forbidden=_texts(contract["forbidden_modules"]),
                )
            )
    return Layers(layers), prohibitions


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _rooms(folder: Path) -> Iterator[Room]:
    """Yield a package and the packages in it."""
    files = sorted(folder.glob("*.py"))
    inner = [each for each in sorted(folder.iterdir()) if (each / "__init__.py").is_file()]
    yield Room(
        name=".".join(folder.relative_to(ROOT).parts),
        text=_first_line(folder / "__init__.py"),
        modules={file.stem: _first_line(file) for file in files if file.stem != "__init__"},
    )
    for each in inner:
        yield from _rooms(each)


def _first_line(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("|", "\\|")


def _layers_section(layers: Layers) -> list[str]:
    rows = [f"| {', '.join(f'`{name}`' for name in layer)} |" for layer in layers.packages]
    return [
        "## Layers",
        "",
        "A layer may import the layers below it, never one above. Packages in one row do not",
        "import each other.",
        "",
        "| layers, highest first |",
        "|---|",
        *rows,
    ]


def _rules_section(prohibitions: Sequence[Prohibition]) -> list[str]:
    rows = [
        f"| {each.name} | {_names(each.sources)} | {_names(each.forbidden)} |"
        for each in prohibitions
    ]
    return [
        "Further contracts:",
        "",
        "| contract | for | must not import |",
        "|---|---|---|",
        *rows,
    ]


def _section(room: Room, layers: Layers, prohibitions: Sequence[Prohibition]) -> Iterator[str]:
    yield from ("", f"## `{room.name}`", "", room.text)
    below = layers.below(room.name)
    if below is not None:
        yield from ("", f"May import: {_names(below) or 'no other room'}.")
    for each in prohibitions:
        if each.binds(room.name):
            yield from ("", f"Contract: {each.name}.")
    if room.modules:
        yield from ("", "| module | what it is |", "|---|---|")
        yield from (f"| `{name}` | {text} |" for name, text in room.modules.items())


def _top_of(room: str, layer: Sequence[str]) -> str | None:
    """Return the package of a layer that the room is, or is in; None: it is in none of them."""
    return next((name for name in layer if f"{room}.".startswith(f"{name}.")), None)


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name.removeprefix('anonymizer.')}`" for name in names)


if __name__ == "__main__":
    print(modules_page(), end="")  # noqa: T201  what it is for
