"""Runs a page of the documentation: its commands, programs, settings and data, from top to bottom.

What a page says is tried in an empty folder, in a process of its own where it is a program:

- ```console: lines that begin with `$ ` are run by bash, `> ` continues one. Lines below a
  command are what it must print, `...` standing for anything; no such line: it may print what it
  likes. Exit code 0 is expected, or what `# exit 1` behind the command says. A command that ends
  with `&` runs on, and is told to end at the end of the page.
- ```python: run in one namespace a page.
- ```toml: a settings file of the gateway, or a part of one, that must be right.
- ```json and ```jsonl: must be read.
- A block with `title="FILE"` is written to FILE for what follows.
- ```text is for the eye alone; a block in any other language is a mistake.

The broker at 127.0.0.1:1883 and the gateway at 127.0.0.1:8080 become ones that are free.
"""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from anonymizer.cli.main import main as anonymizer
from anonymizer.settings import Settings
from simulator.__main__ import main as simulator
from tests.cli.support import in_process
from tests.preloaded import ran

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`]*)$")
_DEADLINE_S = 1500.0
"""For a command, which may be the first in a fresh checkout and compile its kernels."""
_ENDING_S = 60.0

OURS = {"anonymizer", "simulator"}
TOOLS = {"cat", "curl", "head", "ls", "sleep", "tail", "wc"}
ELSEWHERE = {
    ".": "the runner has the programs on its path",
    "apt-get": "needs a system to install to",
    "docker": "needs a container engine",
    "git": "needs a server",
    "grafana": "is started by tests/deploy",
    "journalctl": "needs systemd",
    "kubectl": "needs a cluster",
    "mosquitto": "is started by tests/deploy",
    "mosquitto_passwd": "is run by tests/deploy",
    "promtool": "is run by tests/deploy",
    "sudo": "needs a system to change",
    "systemctl": "needs systemd",
}
"""Programs that a page may name and that are not run with it, and why."""
_MAIN: dict[str, Callable[[], None]] = {"anonymizer": anonymizer, "simulator": simulator}
_ENDS_SOON = {
    "anonymize", "audit", "check", "cloak", "connect", "experiment", "hierarchy", "init", "network",
    "profile", "report", "schema", "trace", "traffic", "trips", "tune",
}  # fmt: skip
"""Commands that neither serve nor send."""
_SEND = {"records", "run", "tolls"}
"""Commands of the simulator, which take signals."""


class Block(NamedTuple):
    """A fenced block."""

    page: str
    line: int
    language: str
    title: str | None
    text: str

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """A command of a `console` block, and what it is to print; None: nothing is said of it."""

    line: int
    text: str
    prints: str | None


def pages() -> list[Path]:
    """Return all pages whose commands are run."""
    own = [ROOT / "README.md", ROOT / "notes" / "reproduction.md"]
    return sorted([*own, *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    name = str(page.relative_to(ROOT))
    lines = iter(enumerate(page.read_text().splitlines(), 1))
    for number, line in lines:
        opened = _FENCE.match(line)
        if opened is None:
            continue
        indent, info = opened["indent"], opened["info"].strip()
        body = []
        for _, inner in lines:
            if inner.strip() == "```":
                break
            body.append(inner.removeprefix(indent))
        else:
            raise AssertionError(f"{name}:{number}: a block does not end")
        title = re.search(r'title="([^"]+)"', info)
        language = info.split(maxsplit=1)[0] if info else ""
        text = "\n".join(body) + "\n"
        yield Block(name, number, language, title[1] if title else None, text)


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a `console` block."""
    command: Command | None = None
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        if line.startswith("$ "):
            if command:
                yield command
            command = Command(number, line[2:], None)
        elif command is None:
            raise AssertionError(f"{block.page}:{number}: no command stands before this")
        elif line.startswith("> ") and command.prints is None:
            command = command._replace(text=f"{command.text}\n{line[2:]}")
        else:
            command = command._replace(prints=f"{command.prints or ''}{line}\n")
    if command:
        yield command


def program_of(command: str) -> str:
    """Return the name of the program that a command line starts."""
    words = shlex.split(command, comments=True)
    return next(word for word in words if not re.match(r"[A-Z_0-9]+=", word))


def fits(printed: str, wanted: str) -> bool:
    """Return whether it is what is wanted; `...` stands for anything, space is space."""
    parts = [re.escape(" ".join(part.split())) for part in wanted.split("...")]
    pattern = r"\s*.*?\s*".join(parts)
    return re.fullmatch(pattern, " ".join(printed.split()), re.DOTALL) is not None


@dataclass
class Runner:
    """Runs the blocks of one page in a folder."""

    folder: Path
    broker_url: str
    http_port: int
    _names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    _running: list[tuple[str, subprocess.Popen[str]]] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Run a block; AssertionError where the page is wrong."""
        deploy = self.folder / "deploy"  # what a page may name of the project
        if not deploy.exists():
            deploy.symlink_to(ROOT / "deploy")
        if block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        checks: dict[str, Callable[[Block], object]] = {
            "console": self._console,
            "python": self._python,
            "toml": lambda block: Settings.model_validate(tomllib.loads(block.text)),
            "json": lambda block: json.loads(block.text),
            "jsonl": lambda block: [json.loads(line) for line in block.text.splitlines()],
            "csv": lambda _: None,
            "text": lambda _: None,
        }
        assert block.language in checks, f"{block.where}: what is a block of {block.language!r}?"
        checks[block.language](block)

    def end(self) -> None:
        """Tell what runs on to end; all must have ended well."""
        for where, process in reversed(self._running):
            process.terminate()
            try:
                _, told = process.communicate(timeout=_ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise AssertionError(f"{where}: does not end") from None
            assert process.returncode == 0, f"{where}: exit {process.returncode}\n{told}"

    def _console(self, block: Block) -> None:
        for command in commands(block):
            self._command(block, command)

    def _python(self, block: Block) -> None:
        code = compile("\n" * block.line + block.text, block.page, "exec")
        here = Path.cwd()
        os.chdir(self.folder)
        try:
            exec(code, self._names)  # noqa: S102  the very point
        finally:
            os.chdir(here)

    def _command(self, block: Block, command: Command) -> None:
        where = f"{block.page}:{command.line}"
        program = program_of(command.text)
        if program in ELSEWHERE:
            return
        if program == "make":
            makefile = (ROOT / "Makefile").read_text()
            target = next(w for w in shlex.split(command.text)[1:] if "=" not in w)
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{where}: no such target"
            return
        assert program in OURS | TOOLS, f"{where}: {program}: is not run, and not in ELSEWHERE"
        text = command.text.replace("127.0.0.1:8080", f"127.0.0.1:{self.http_port}")
        if text.endswith("&"):
            self._start(where, text.removesuffix("&").strip())
            return
        code = int(said[1]) if (said := re.search(r"# exit (\d+)", text)) else 0
        done = self._done(text)
        assert done.returncode == code, (
            f"{where}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
        printed = done.stdout if done.stdout.strip() else done.stderr
        assert command.prints is None or fits(printed, command.prints), (
            f"{where}: printed\n{printed}"
        )

    def _done(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end; where ours is loaded already, if it can be."""
        words = shlex.split(text.replace("\\\n", ""), comments=True)
        is_plain = not set(text) & set("|<>$`;&")
        if words[0] in _MAIN and words[1] in _ENDS_SOON and is_plain:
            with contextlib.chdir(self.folder):
                return in_process(_MAIN[words[0]], *words, environment=self._environment())
        if words[0] == "simulator" and words[1] in _SEND and is_plain:
            return ran(*words, folder=self.folder, environment=self._environment())
        return subprocess.run(
            ["bash", "-c", f"{text}\nexit"],  # a bash that stays: completion asks who its parent is
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_DEADLINE_S,
        )

    def _start(self, where: str, text: str) -> None:
        process = subprocess.Popen(
            shlex.split(text),
            cwd=self.folder,
            env=self._environment()
            | {
                "ANONYMIZER__BROKER__URL": self.broker_url,
                "ANONYMIZER__HTTP__PORT": str(self.http_port),
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._running.append((where, process))
        if program_of(text) == "anonymizer":
            self._until_ready(where, process)

    def _until_ready(self, where: str, process: subprocess.Popen[str]) -> None:
        ready = ["curl", "-sf", f"http://127.0.0.1:{self.http_port}/readyz"]
        deadline = time.monotonic() + _DEADLINE_S
        while subprocess.run(ready, capture_output=True, check=False).returncode:
            assert process.poll() is None, f"{where}: {process.communicate()[1]}"
            assert time.monotonic() < deadline, f"{where}: is not ready in {_DEADLINE_S:.0f} s"
            time.sleep(0.1)  # between two looks at another process

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SIMULATOR_BROKER": self.broker_url,
            "COLUMNS": "100",
        }
