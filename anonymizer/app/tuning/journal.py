"""Journal of a search on disk, from which an interrupted search continues."""

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from anonymizer.app.tuning.space import Configuration
from anonymizer.app.tuning.trial import Trial
from anonymizer.errors import InputError


class _Line(BaseModel):
    """A trial, and the digest of the bench that it was tried on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bench: str
    trial: Trial


class TrialJournal:
    """JSON lines of trials.

    Parameters
    ----------
    path
        Created if it does not exist. Lines of other benches are kept and ignored.
    bench
        `Bench.digest`.

    Raises
    ------
    InputError
        If the file cannot be read.

    Notes
    -----
    An incomplete last line is ignored, and its configuration is tried again.
    """

    def __init__(self, path: Path, bench: str) -> None:
        self._path, self._bench = path, bench
        self.known: dict[Configuration, Trial] = {}
        """The newest trial of each configuration."""
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        self._incomplete = bool(content) and not content.endswith(b"\n")
        for line in content.splitlines():
            self._read(line)

    def add(self, trials: Iterable[Trial]) -> None:
        """Append trials.

        Raises `InputError` if the file cannot be written.
        """
        lines = [_Line(bench=self._bench, trial=trial).model_dump_json() for trial in trials]
        text = "\n" * self._incomplete + "".join(f"{line}\n" for line in lines)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from None
        self._incomplete = False

    def _read(self, line: bytes) -> None:
        try:
            read = _Line.model_validate_json(line)
        except ValidationError:
            return
        if read.bench == self._bench:
            self.known[read.trial.configuration] = read.trial
