"""A page of evidence names no file that none of its audits has judged."""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from typer.testing import CliRunner

from anonymizer.audit.judged_files import judging
from anonymizer.cli.main import app
from anonymizer.errors import InputError
from tests.app.gateway.records import write_records_settings
from tests.audit.test_windows_audit import TOPIC, recorded, write
from tests.cli.support import anonymizer

TABLE = ("--qi", "age,zip", "--sa", "illness")
GRID = ("--network", "grid:5x5")


class Asked(NamedTuple):
    """An audit: its arguments, the published file that it judges, and those that stay secret."""

    words: tuple[str, ...]
    role: str
    published: str
    raw: tuple[str, ...]


AUDITS = {
    "stream": Asked(
        ("trace.csv", "pub.jsonl", *GRID, "--auditor-map", "map.jsonl", "--placebo", "other.jsonl"),
        "release", "pub.jsonl", ("trace.csv", "map.jsonl"),
    ),
    "table": Asked(
        ("people.csv", "pub.csv", *TABLE, "-k", "4", "--auditor-map", "map.csv"),
        "release", "pub.csv", ("people.csv", "map.csv"),
    ),
    "release": Asked(("pub.csv", *TABLE, "-k", "4"), "release", "pub.csv", ()),
    "windows": Asked(
        ("published.jsonl", "truth.jsonl", "-c", "gateway.toml"),
        "published", "published.jsonl", ("truth.jsonl", "gateway.toml"),
    ),
}  # fmt: skip
NONE_PUBLISHED = {"counts": "attacks what settings would publish: there is no file yet"}


def _sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make each kind of release, and another one beside it."""
    folder = tmp_path_factory.mktemp("judged")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    places = [f"d{i},{t},{i % 9}" for t in range(3) for i in range(40)]
    Path("trace.csv").write_text("\n".join(["device_id,ts,node", *places]) + "\n")
    rows = [f"{20 + i % 4},{1000 + i % 2},{'flu' if i % 3 else 'cold'}" for i in range(40)]
    Path("people.csv").write_text("\n".join(["age,zip,illness", *rows]) + "\n")
    for seed, out in (("2", "other.jsonl"), ("1", "pub.jsonl")):  # the map is of the last
        _done("cloak", "trace.csv", *GRID, "--out", out, "--auditor-map", "map.jsonl",
              "--seed", seed)  # fmt: skip
    _done("anonymize", "people.csv", *TABLE, "-k", "4", "--out", "pub.csv",
          "--auditor-map", "map.csv")  # fmt: skip
    lines = recorded("enforce")
    is_published = [TOPIC in line for line in lines]
    for name, wanted in (("published.jsonl", True), ("truth.jsonl", False)):
        write(Path(name), [x for x, out in zip(lines, is_published, strict=True) if out is wanted])
    write(Path("all.jsonl"), lines)
    write_records_settings(Path("gateway.toml"), "mqtt://127.0.0.1:1", store=folder / "s")
    yield
    patch.undo()


def _done(*words: str) -> str:
    done = anonymizer(*words)
    assert done.returncode in {0, 1}, (words, done.stderr)  # 1: a promise is broken
    return done.stdout


def _audit(name: str, words: tuple[str, ...]) -> str:
    """Return what an audit writes as JSON."""
    if name == "release":  # prints it
        return _done("audit", name, *words, "--json")
    _done("audit", name, *words, "--json", "audit.json")
    return Path("audit.json").read_text()


def _report(*words: str) -> dict[str, str]:
    """Return the files that a page of evidence names."""
    ended = CliRunner().invoke(app, ["report", *words, "--out", "page.html"])
    if isinstance(ended.exception, InputError):
        raise ended.exception
    found: dict[str, str] = json.loads(Path("page.json").read_text())["files"]
    return found


def test_every_audit_that_writes_a_json_is_tried_here() -> None:
    group = typer.main.get_command(app).commands["audit"]  # type: ignore[attr-defined]
    writes = {
        name
        for name, command in group.commands.items()
        if any("--json" in each.opts for each in command.params)
    }
    assert writes == {*AUDITS, *NONE_PUBLISHED}


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_names_the_published_file_that_it_judged_and_no_raw_one(name: str) -> None:
    asked = AUDITS[name]
    told = _audit(name, asked.words)
    assert json.loads(told)["judged"] == {asked.role: _sha256(asked.published)}
    for each in (*asked.raw, "other.jsonl"):
        assert _sha256(each) not in told, each


@pytest.mark.parametrize("name", sorted(AUDITS.keys() - {"release"}))  # no page is made of it
def test_a_page_names_what_its_audit_judged_and_refuses_every_other_file(name: str) -> None:
    asked = AUDITS[name]
    _audit(name, asked.words)
    assert _report("audit.json", "--file", asked.published) == {
        asked.published: _sha256(asked.published)
    }
    renamed = Path("renamed")
    renamed.write_bytes(Path(asked.published).read_bytes())
    assert _report("audit.json", "--file", "renamed") == {"renamed": _sha256(asked.published)}
    renamed.write_bytes(Path(asked.published).read_bytes() + b"\n")
    for other in ("renamed", "other.jsonl", "gateway.toml", *asked.raw):
        with pytest.raises(InputError, match=r"no audit given here has judged this file: audit it"):
            _report("audit.json", "--file", asked.published, "--file", other)


def test_an_audit_that_does_not_say_what_it_judged_binds_no_file() -> None:
    found = json.loads(_audit("table", AUDITS["table"].words))
    del found["judged"]
    Path("audit.json").write_text(json.dumps(found))
    assert _report("audit.json") == {}
    with pytest.raises(InputError, match="run `anonymizer audit` on the file again"):
        _report("audit.json", "--file", "pub.csv")


def test_settings_are_named_with_the_page_but_are_no_release() -> None:
    _audit("table", AUDITS["table"].words)
    named = _report("audit.json", "--file", "pub.csv", "-c", "gateway.toml")
    assert named == {each: _sha256(each) for each in ("pub.csv", "gateway.toml")}


def test_a_recording_that_is_also_the_truth_is_never_told_by_its_digest() -> None:
    Path("copy.jsonl").write_bytes(Path("all.jsonl").read_bytes())
    for truth in ("all.jsonl", "copy.jsonl"):
        words = ("all.jsonl", truth, "-c", "gateway.toml", "--page", "whole.html")
        told = _audit("windows", words)
        assert json.loads(told)["judged"] == {"published": None}
        page = Path("whole.json").read_text() + Path("whole.html").read_text()
        assert _sha256("all.jsonl") not in told + page
    with pytest.raises(InputError, match="audit a file with what is published, alone"):
        _report("audit.json", "--file", "all.jsonl")


def test_what_comes_through_a_pipe_has_no_digest() -> None:
    read, write_end = os.pipe()
    os.write(write_end, Path("pub.jsonl").read_bytes())
    os.close(write_end)
    pipe = f"/dev/fd/{read}"
    words = ("trace.csv", pipe, *AUDITS["stream"].words[2:], "--page", "piped.html")
    assert json.loads(_audit("stream", words))["judged"] == {"release": None}
    assert json.loads(Path("piped.json").read_text())["files"] == {}
    with pytest.raises(InputError, match="audit a file with what is published, alone"):
        _report("audit.json", "--file", "pub.jsonl")
    with pytest.raises(InputError, match="is no regular file: name and audit a file"):
        _report("audit.json", "--file", pipe)
    os.close(read)


def test_a_file_that_changes_while_it_is_audited_is_not_judged() -> None:
    path = Path("changing")
    path.write_text("one")
    changed = pytest.raises(InputError, match="was changed while it was audited: audit it again")
    with changed, judging("release", path):
        path.write_text("two")
