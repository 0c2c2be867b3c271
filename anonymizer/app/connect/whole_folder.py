"""Whole folders: all files of a source are checked and then written, or none is."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from anonymizer.app.connect.broker_files import new_password
from anonymizer.app.gateway.preflight import check_files
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import FileToWrite, naming, of_content, write_whole
from anonymizer.settings import Settings, load_settings


class Startable(NamedTuple):
    """Settings that would start, apart from their passwords, and the network that they name."""

    settings: Settings
    network: RoadNetwork


def startable(text: str) -> Startable:
    """Return the settings that a text would be, with those of the environment, and their network.

    Raises `SettingsError` if the gateway would not start with them.
    """
    with tempfile.TemporaryDirectory(prefix="anonymizer-") as folder:
        path = Path(folder) / "gateway.toml"
        with naming(path):
            path.write_text(text, encoding="utf-8")
        settings = load_settings(path)
    unwritten = settings.broker.model_copy(update={"password_file": None})
    checked = check_files(settings.model_copy(update={"broker": unwritten}))
    return Startable(settings, checked.network)


def kept_password(path: Path) -> str:
    """Return the password in a file, or a new one where there is none.

    Raises `InputError` if the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        lines = []
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path}: is no file with a password: delete it for a new one") from None
    return lines[0] if lines and lines[0] else new_password()


def write_folder(
    folder: Path, public: Mapping[str, Sequence[str]], private: Mapping[str, Sequence[str]]
) -> None:
    """Write the lines of files into a folder, by name; `private` ones are the owner's alone.

    Raises `InputError` if one cannot be written. Then the folder is as before, or is not there.
    """
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    parts = {
        folder / name: _file(lines, private=files is private)
        for files in (private, public)
        for name, lines in files.items()
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(parts)
    except (OSError, InputError) as error:
        for each in new:
            with suppress(OSError):
                each.rmdir()
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None


def _file(lines: Sequence[str], *, private: bool) -> FileToWrite:
    return of_content("".join(f"{line}\n" for line in lines), private=private)
