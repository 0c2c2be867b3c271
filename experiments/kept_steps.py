"""Results of an experiment's steps, each in a file as soon as it is found.

What is interrupted is not lost: a second run in the same folder goes on from there. A line of the
file is a step and its result; it counts only where options, versions and programs are the same.
"""

import hashlib
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

import anonymizer
import experiments
from anonymizer.errors import InputError
from experiments.result_files import Row, manifest

FILE = "steps.jsonl"
_TIMES = 10.0
"""Time until partial results are written again, as a multiple of what the last writing took."""
_LEAST_S = 5.0

Result = TypeVar("Result")
Progress = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and the name of the current step."""


class KeptSteps:
    """The steps that are done, in the file `steps.jsonl` of a folder.

    Parameters
    ----------
    folder
        Folder of the results; made if it does not exist. None: nothing is kept.
    depends_on
        What each step depends on beside itself, as plain data. Results of anything else are
        dropped from the file, as is a line that was not written whole.

    Raises
    ------
    InputError
        If the file cannot be read or written.
    """

    def __init__(self, folder: Path | None, depends_on: Row) -> None:
        self._done: dict[str, bytes] = {}
        self._file: Path | None = None if folder is None else folder / FILE
        self._of = _digest(depends_on)
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            lines = self._file.read_bytes().splitlines() if self._file.exists() else []
            usable = [(line, *found) for line in lines if (found := self._read(line)) is not None]
            if len(usable) < len(lines) or not lines:
                self._file.write_bytes(b"".join(line + b"\n" for line, _, _ in usable))
        except OSError as error:
            raise _unwritable(self._file, error) from None
        self._done = {step: result for _, step, result in usable}

    @property
    def n_kept(self) -> int:
        """Number of steps whose result is known."""
        return len(self._done)

    def result(self, kind: type[Result], step: str, find: Callable[[], Result]) -> Result:
        """Return the result of a step: the one that is kept, or else found now and kept.

        Parameters
        ----------
        kind
            Type of the result: plain data, or dataclasses of such.
        step
            What the result is of; equal steps have equal results.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        if step not in self._done:
            encoded = msgspec.json.encode(find(), enc_hook=_plain)
            if self._file is not None:
                raw = {"of": self._of, "step": step, "result": msgspec.Raw(encoded)}
                try:
                    with self._file.open("ab") as file:
                        file.write(msgspec.json.encode(raw) + b"\n")
                except OSError as error:
                    raise _unwritable(self._file, error) from None
            self._done[step] = encoded
        return msgspec.json.decode(self._done[step], type=kind)

    def _read(self, line: bytes) -> tuple[str, bytes] | None:
        try:
            found = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            return None
        return (found.step, bytes(found.result)) if found.of == self._of else None


class _Line(msgspec.Struct):
    of: str
    step: str
    result: msgspec.Raw


class PartialResults(Generic[Result]):
    """Writes what is found so far: now and then, and when the user interrupts.

    Parameters
    ----------
    write
        Writes results. It is called as soon as ten times what it took has passed, so that it takes
        at most a tenth of the time.
    clock
        Returns seconds.
    """

    def __init__(
        self, write: Callable[[Result], Any], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._next_s = clock() + _LEAST_S
        self._latest: Result | None = None

    def __call__(self, found: Result) -> None:
        """Take results so far, and write them if it is time."""
        self._latest = found
        began_s = self._clock()
        if began_s >= self._next_s:
            self._write(found)
            now_s = self._clock()
            self._next_s = now_s + max(_LEAST_S, _TIMES * (now_s - began_s))

    def __enter__(self) -> Self:
        """Write when the block is interrupted."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        if kind is KeyboardInterrupt and self._latest is not None:
            self._write(self._latest)


def _digest(depends_on: Row) -> str:
    """Return a digest of options, of the versions of libraries, and of the programs."""
    versions = manifest({})["versions"]
    told = json.dumps([depends_on, versions, _programs()], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


@cache
def _programs() -> str:
    """Return a digest of all modules: what another program found is not taken for its result."""
    digest = hashlib.sha256()
    for package in (anonymizer, experiments):
        folder = Path(str(package.__file__)).parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:  # noqa: ANN401  a number of numpy, or a mapping that is read only
    return value.item() if hasattr(value, "item") else dict(value)


def _unwritable(file: Path, error: OSError) -> InputError:
    return InputError(f"{error.filename or file}: cannot be written: {error.strerror}")
