"""A stage of a distributed flow: a deterministic state machine over its inputs.

What a stage sends depends on the inputs that it took, in their order, and on nothing else. Whoever
runs it can therefore go back to a snapshot, let it take the inputs since again, and drop what it
sends meanwhile.
"""

from typing import NamedTuple, Protocol


class Send(NamedTuple):
    """A message of a stage.

    Attributes
    ----------
    to
        Where it goes: the name of another kind of stage, or of an output.
    number
        Which of the stages of that kind takes it.
    value
        Its content.
    """

    to: str
    number: int
    value: bytes

    def __repr__(self) -> str:
        """Reveal no content."""
        return f"Send({self.to!r}, {self.number}, {len(self.value)} bytes)"


class Stage(Protocol):
    """Takes inputs one by one, and sends messages."""

    def take(self, value: bytes, *, at_s: float) -> list[Send]:
        """Take an input; return what is to be sent because of it.

        Parameters
        ----------
        value
            The input.
        at_s
            When it was written, unix seconds. Time goes on with the inputs alone.
        """
        ...

    def snapshot(self) -> bytes:
        """Return the whole state. It holds raw data: store it like the inputs."""
        ...

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same stage, in place of the present state."""
        ...
