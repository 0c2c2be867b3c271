"""What a search has found so far, on disk: one that was ended goes on where it was."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from anonymizer.app.tuning.space import Configuration
from anonymizer.app.tuning.trial import Trial
from anonymizer.errors import InputError


class _Line(BaseModel):
    """A trial, and the digest of the bench that it was found on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bench: str
    trial: Trial


class Journal:
    """JSON lines of trials.

    Parameters
    ----------
    path
        Made where it is not there. Lines of other benches stay and are not looked at.
    bench
        `Bench.digest`.

    Raises
    ------
    InputError
        If the file cannot be read.

    Notes
    -----
    A line that was not written to its end is none: what it was to tell is found again.
    """

    def __init__(self, path: Path, bench: str) -> None:
        self._path, self._bench = path, bench
        self.known: dict[Configuration, Trial] = {}
        """What was found, the newest of each."""
        try:
            told = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        self._torn = bool(told) and not told.endswith(b"\n")
        for line in told.splitlines():
            self._take(line)

    def add(self, trials: Iterable[Trial]) -> None:
        """Write down what was found.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        lines = [_Line(bench=self._bench, trial=trial).model_dump_json() for trial in trials]
        text = "\n" * self._torn + "".join(f"{line}\n" for line in lines)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from None
        self._torn = False

    def _take(self, line: bytes) -> None:
        try:
            read = _Line.model_validate_json(line)
        except ValidationError:
            return
        if read.bench == self._bench:
            self.known[read.trial.configuration] = read.trial
