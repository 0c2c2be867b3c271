"""Stages that live in one place, for tests."""

from collections.abc import Iterator, Mapping

from anonymizer.cluster.resident import (
    Input,
    Place,
    Resident,
    StageEvents,
)
from anonymizer.cluster.stage import Send
from tests.cluster.stages import Sums


class Cells(dict[str, bytes]):
    """What is stored, as a dictionary."""

    def store(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.pop(name, None)
        else:
            self[name] = value


class Inputs:
    """A journal: its inputs, where they are, and what is stored; each input is committed."""

    name = "sums"

    def __init__(self, state: Cells | None = None, origin: str = "kafka/topic") -> None:
        self.inputs: list[Input] = []
        self.origin = origin
        self.state = Cells() if state is None else state
        self.end = 1 << 40
        self.asked: list[tuple[int, int]] = []

    def place(self) -> Place:
        return Place(self.origin, self.end)

    def between(self, after: int, before: int) -> Iterator[Input]:
        self.asked.append((after, before))
        return (each for each in self.inputs if after < each.offset < before)

    def stored(self) -> Mapping[str, bytes]:
        return self.state

    def store(self, name: str, value: bytes | None) -> None:
        self.state.store(name, value)


def said(given: Input, why: str) -> list[Send]:
    return [Send("dropped", given.offset, why.encode())]


def resident_of(journal: Inputs | None = None, counts: StageEvents | None = None) -> Resident:
    return Resident(Sums, journal or Inputs(), said, counts or StageEvents())
