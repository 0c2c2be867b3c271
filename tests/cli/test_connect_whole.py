"""`anonymizer connect` writes all of its files or none: a refusal leaves the folder as it was."""

from collections.abc import Callable
from pathlib import Path

import pytest

from anonymizer.transport.local_brokers import free_port
from tests.cli.support import anonymizer

NETWORK = "grid:20x20"
Before = Callable[[Path], None]


def nothing(_: Path) -> None:
    """There is no folder, nor one above it."""


def passwords(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "analyst.password").write_text("of another broker\n")
    (folder / "passwords").write_text("mine")


def folder_named(name: str) -> Before:
    return lambda folder: (folder / name).mkdir(parents=True)


def file_above(folder: Path) -> None:
    folder.parent.write_text("no folder")


def no_text(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "gateway.password").write_bytes(b"\xff\xfe")


def what_is_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("words", "before", "why"),
    [
        (["owntracks", "--network", "nowhere.osm.pbf"], nothing, "nowhere.osm.pbf"),
        (["owntracks", "--network", "nowhere.osm.pbf"], passwords, "nowhere.osm.pbf"),
        (["hsl", "--network", "nowhere"], nothing, "nowhere"),
        (["kafka", "--network", "nowhere.osm.pbf"], nothing, "nowhere.osm.pbf"),
        (["kafka", "--network", "garbage.graphml"], passwords, "garbage.graphml"),
        (["owntracks", "--network", "garbage.graphml"], nothing, "garbage.graphml"),
        (["owntracks", "--network", "folder.graphml"], nothing, "folder.graphml"),
        (["ttn", "--ca-file", "no.pem", "--broker", "mqtts://x.example"], nothing, "no.pem"),
        (
            ["ttn", "--ca-file", "text.pem", "--broker", "mqtts://x.example"],
            nothing,
            "broker.ca_file",
        ),
        (["kafka", "--ca-file", "no.pem"], nothing, "--ca-file: no.pem"),
        (["traccar", "--broker", "mqtt://x.example"], nothing, "must be mqtts://"),
        (["traccar"], folder_named("mosquitto.acl"), "mosquitto.acl: cannot be written"),
        (["traccar"], folder_named("traccar.password"), "is no file with a password"),
        (["traccar"], no_text, "is no file with a password"),
        (["kafka"], folder_named("setup.sh"), "setup.sh: cannot be written"),
        (["traccar"], file_above, "cannot be written"),
        (["kafka"], file_above, "cannot be written"),
    ],
)
def test_a_refusal_leaves_everything_as_it_was_and_is_repeated(
    words: list[str], before: Before, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before(tmp_path / "above" / "it")
    Path("folder.graphml").mkdir()
    for each in ("garbage.graphml", "text.pem"):
        Path(each).write_text("neither roads nor a certificate")
    was = what_is_in(tmp_path)
    for _ in range(2):
        told = anonymizer("connect", "--out", "above/it", "--network", NETWORK, *words)
        assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
        assert why in told.stderr
        assert "--try" not in told.stderr
        assert what_is_in(tmp_path) == was


def test_what_the_environment_makes_unusable_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    told = anonymizer(
        "connect", "traccar", "--out", tmp_path / "it", "--network", NETWORK,
        environment={"ANONYMIZER__NETWORK__SOURCE": "nowhere.pbf"},
    )  # fmt: skip
    assert told.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_after_a_trial_that_failed_the_files_stay_and_are_tried_as_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    told = anonymizer(
        "connect", "traccar", "--out", folder, "--network", NETWORK,
        "--broker", f"mqtt://127.0.0.1:{free_port()}",
    )  # fmt: skip
    assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
    advice = told.stderr.rpartition("then anonymizer ")[2].split()
    assert advice == ["connect", "traccar", "--out", str(folder), "--try"]
    again = anonymizer(*advice)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "does not let gateway in" in again.stderr


def test_an_empty_file_of_a_password_gets_one(tmp_path: Path) -> None:
    (tmp_path / "traccar.password").touch()
    told = anonymizer(
        "connect", "traccar", "--out", tmp_path, "--network", NETWORK, "--port", str(free_port())
    )
    assert told.returncode == 0, told.stderr
    assert len((tmp_path / "traccar.password").read_text()) > 24
